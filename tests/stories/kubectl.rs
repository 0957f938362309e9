//! kubectl works as on any cluster: get, logs, exec, port-forward.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use quorate_harness::waiting::PATIENCE;
use quorate_harness::{Disturbs, catalog, pods, tell};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Child;

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_shows_the_node_and_reads_logs_and_runs_commands_in_a_pod() -> Result<()> {
    tell("kubectl", Disturbs::Nothing, async |story| {
        let nodes = story.kubectl(&["get", "nodes"]).await?;
        ensure!(
            nodes.contains("quorate-local") && nodes.contains(" Ready "),
            "{nodes}"
        );

        story.image(catalog::BUSYBOX).await?;
        let command = ["sh", "-c", "echo it begins; exec sleep 3600"];
        story
            .create_pod(pods::restricted("speaker", catalog::BUSYBOX, &command))
            .await?;
        story.pod_is_ready("speaker").await?;

        let log = story.kubectl(&["logs", "speaker"]).await?;
        ensure!(log == "it begins\n", "the log is {log:?}");
        let said = story
            .exec("speaker", &["sh", "-c", "echo inside as $(id -u)"])
            .await?;
        ensure!(said == "inside as 65532\n", "exec printed {said:?}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_forwards_a_port_to_a_pod() -> Result<()> {
    tell("port-forward", Disturbs::Nothing, async |story| {
        story.image(catalog::BUSYBOX).await?;
        let serve = [
            "sh",
            "-c",
            "while true; do echo hello from the pod | nc -l -p 8000; done",
        ];
        story
            .create_pod(pods::restricted("server", catalog::BUSYBOX, &serve))
            .await?;
        story.pod_is_ready("server").await?;

        let mut forward = story.kubectl_command();
        forward
            .args(["port-forward", "pod/server", ":8000"])
            .stdout(Stdio::piped());
        let mut forward = forward.spawn()?;
        let address = local_address(&mut forward).await?;
        let greeting = story
            .wait_until(
                "an answer through the forwarded port",
                PATIENCE,
                async || match heard_at(&address).await {
                    Ok(text) if text.is_empty() => Err("an empty answer".to_owned()),
                    Ok(text) => Ok(text),
                    Err(error) => Err(error.to_string()),
                },
            )
            .await?;
        ensure!(
            greeting == "hello from the pod\n",
            "the answer is {greeting:?}"
        );
        forward.kill().await?;
        Ok(())
    })
    .await
}

/// kubectl chooses a free port and says which.
async fn local_address(forward: &mut Child) -> Result<String> {
    let stdout = forward.stdout.take().context("no output of port-forward")?;
    let mut lines = BufReader::new(stdout).lines();
    let line = tokio::time::timeout(PATIENCE, lines.next_line()).await??;
    let line = line.context("port-forward ended")?;
    let address = line
        .split_whitespace()
        .find(|word| word.starts_with("127.0.0.1:"));
    Ok(address
        .with_context(|| format!("no address in {line:?}"))?
        .to_owned())
}

async fn heard_at(address: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"\n").await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}
