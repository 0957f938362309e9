//! kubectl on the local cluster: get, logs, exec, port-forward.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use quorate_harness::waiting::DEFAULT_TIMEOUT;
use quorate_harness::{Isolation, catalog, pods, run};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::ChildStdout;

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_gets_nodes_reads_logs_and_execs_into_a_pod() -> Result<()> {
    run("kubectl", Isolation::Parallel, async |ctx| {
        let nodes = ctx.kubectl(&["get", "nodes"]).await?;
        ensure!(nodes.contains("quorate-local") && nodes.contains(" Ready "), "{nodes}");

        ctx.image(catalog::BUSYBOX).await?;
        let command = ["sh", "-c", "echo started; exec sleep 3600"];
        ctx.create_pod(pods::restricted("logger", catalog::BUSYBOX, &command)).await?;
        ctx.wait_pod_ready("logger").await?;

        let log = ctx.kubectl(&["logs", "logger"]).await?;
        ensure!(log == "started\n", "the log is {log:?}");
        let output = ctx.exec("logger", &["sh", "-c", "echo inside as $(id -u)"]).await?;
        ensure!(output == "inside as 65532\n", "exec printed {output:?}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_forwards_a_port_to_a_pod() -> Result<()> {
    run("port-forward", Isolation::Parallel, async |ctx| {
        ctx.image(catalog::BUSYBOX).await?;
        ctx.create_pod(pods::web("server", "hello from the pod")).await?;
        ctx.wait_pod_ready("server").await?;

        let mut forward = ctx.kubectl_command();
        forward.args(["port-forward", "pod/server", ":8000"]).stdout(Stdio::piped());
        let mut forward = forward.spawn()?;
        let stdout = forward.stdout.take().context("no output of port-forward")?;
        // Kept open: kubectl exits when it cannot print a line for each connection.
        let mut output = BufReader::new(stdout).lines();
        let address = local_address(&mut output).await?;
        let greeting = tokio::time::timeout(DEFAULT_TIMEOUT, http_get(&address)).await??;
        ensure!(greeting.ends_with("hello from the pod\n"), "the response is {greeting:?}");
        forward.kill().await?;
        Ok(())
    })
    .await
}

/// kubectl chooses a free port and prints it.
async fn local_address(output: &mut Lines<BufReader<ChildStdout>>) -> Result<String> {
    let line = tokio::time::timeout(DEFAULT_TIMEOUT, output.next_line()).await??;
    let line = line.context("port-forward exited")?;
    let address = line.split_whitespace().find(|part| part.starts_with("127.0.0.1:"));
    Ok(address.with_context(|| format!("no address in {line:?}"))?.to_owned())
}

async fn http_get(address: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
    let mut response = Vec::new();
    // The server closes the connection after its response, which may arrive as a reset.
    let read = stream.read_to_end(&mut response).await;
    if response.is_empty() {
        read?;
    }
    Ok(String::from_utf8_lossy(&response).into_owned())
}
