//! kubectl works as on any cluster: get, logs, exec, port-forward.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use quorate_harness::waiting::PATIENCE;
use quorate_harness::{Disturbs, catalog, pods, tell};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::ChildStdout;

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_shows_the_node_and_reads_logs_and_runs_commands_in_a_pod() -> Result<()> {
    tell("kubectl", Disturbs::Nothing, async |story| {
        let nodes = story.kubectl(&["get", "nodes"]).await?;
        ensure!(nodes.contains("quorate-local") && nodes.contains(" Ready "), "{nodes}");

        story.image(catalog::BUSYBOX).await?;
        let command = ["sh", "-c", "echo it begins; exec sleep 3600"];
        story.create_pod(pods::restricted("speaker", catalog::BUSYBOX, &command)).await?;
        story.pod_is_ready("speaker").await?;

        let log = story.kubectl(&["logs", "speaker"]).await?;
        ensure!(log == "it begins\n", "the log is {log:?}");
        let said = story.exec("speaker", &["sh", "-c", "echo inside as $(id -u)"]).await?;
        ensure!(said == "inside as 65532\n", "exec printed {said:?}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_forwards_a_port_to_a_pod() -> Result<()> {
    tell("port-forward", Disturbs::Nothing, async |story| {
        story.image(catalog::BUSYBOX).await?;
        story.create_pod(pods::web("server", "hello from the pod")).await?;
        story.pod_is_ready("server").await?;

        let mut forward = story.kubectl_command();
        forward.args(["port-forward", "pod/server", ":8000"]).stdout(Stdio::piped());
        let mut forward = forward.spawn()?;
        let stdout = forward.stdout.take().context("no output of port-forward")?;
        // Kept to the end: kubectl ends when it cannot write a line for each connection.
        let mut output = BufReader::new(stdout).lines();
        let address = local_address(&mut output).await?;
        let greeting = tokio::time::timeout(PATIENCE, heard_at(&address)).await??;
        ensure!(greeting.ends_with("hello from the pod\n"), "the answer is {greeting:?}");
        forward.kill().await?;
        Ok(())
    })
    .await
}

/// kubectl chooses a free port and says which.
async fn local_address(output: &mut Lines<BufReader<ChildStdout>>) -> Result<String> {
    let line = tokio::time::timeout(PATIENCE, output.next_line()).await??;
    let line = line.context("port-forward ended")?;
    let address = line.split_whitespace().find(|word| word.starts_with("127.0.0.1:"));
    Ok(address.with_context(|| format!("no address in {line:?}"))?.to_owned())
}

async fn heard_at(address: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
    let mut heard = Vec::new();
    // The server closes as soon as it has answered, which may arrive here as a reset.
    let read = stream.read_to_end(&mut heard).await;
    if heard.is_empty() {
        read?;
    }
    Ok(String::from_utf8_lossy(&heard).into_owned())
}
