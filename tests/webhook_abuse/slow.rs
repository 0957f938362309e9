//! Slow hostile clients, for the whole duration of the test. Each has its own address, as a pod
//! would.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use super::malformed_documents;
use super::server_process::{Client, ServerProcess, post};

/// State shared by the slow clients.
#[derive(Clone)]
pub(crate) struct SlowClients {
    pub(crate) server: Arc<ServerProcess>,
    pub(crate) done: Arc<AtomicBool>,
    pub(crate) connections: Arc<AtomicUsize>,
}

const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time between two writes of a dripping client.
const DRIP_INTERVAL: Duration = Duration::from_millis(200);

impl SlowClients {
    fn running(&self) -> bool {
        !self.done.load(Ordering::Acquire)
    }

    fn count(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    async fn connect(&self, from: u8) -> Option<Client> {
        self.count();
        timeout(Duration::from_secs(10), self.server.connect(from)).await.ok()?.ok()
    }
}

/// Runs all slow clients at once.
pub(crate) async fn run_all(clients: SlowClients) {
    let head = "POST /convert HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n";
    let incomplete = format!("{head}Content-Length: 30000000\r\n\r\n");
    let large = [incomplete.as_bytes(), &vec![b' '; 20_000_000]].concat();
    tokio::join!(
        hold_connections(clients.clone(), 20, &[], 10, 600),
        hold_connections(clients.clone(), 21, &[0x16, 3, 1], 2, 100),
        drip(clients.clone(), 22, b"", b"", 40),
        drip(clients.clone(), 23, head.as_bytes(), b"A: b\r\n", 20),
        drip(clients.clone(), 24, incomplete.as_bytes(), b" ", 20),
        drip(clients.clone(), 25, &large, b"", 4),
        half_closed(clients.clone(), 26),
        never_read(clients, 27),
    );
}

/// Opens more and more sockets that send the same few bytes and nothing else.
async fn hold_connections(
    clients: SlowClients,
    from: u8,
    bytes: &[u8],
    at_once: usize,
    held: usize,
) {
    let mut sockets = VecDeque::new();
    while clients.running() {
        for _ in 0..at_once {
            clients.count();
            if let Ok(Ok(mut socket)) =
                timeout(Duration::from_secs(5), clients.server.socket(from)).await
            {
                socket.write_all(bytes).await.ok();
                sockets.push_back(socket);
            }
            if sockets.len() > held {
                sockets.pop_front();
            }
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Connections that send the start of a request, and then a few bytes at a time.
async fn drip(clients: SlowClients, from: u8, start: &[u8], rest: &[u8], held: usize) {
    let mut connections: VecDeque<Client> = VecDeque::new();
    while clients.running() {
        if connections.len() < held
            && let Some(mut client) = clients.connect(from).await
        {
            let sent = timeout(Duration::from_secs(5), client.output.write_all(start)).await;
            client.output.flush().await.ok();
            if matches!(sent, Ok(Ok(()))) {
                connections.push_back(client);
            }
        }
        let mut open = VecDeque::new();
        for mut client in connections {
            client.output.write_all(rest).await.ok();
            client.output.flush().await.ok();
            // A closed connection is replaced by the next.
            let ended = timeout(Duration::from_millis(1), client.input.read(&mut [0_u8; 99])).await;
            if ended.is_err() {
                open.push_back(client);
            }
        }
        connections = open;
        sleep(DRIP_INTERVAL).await;
    }
}

/// Sends a request and closes its side before the response.
async fn half_closed(clients: SlowClients, from: u8) {
    while clients.running() {
        if let Some(mut client) = clients.connect(from).await {
            client.output.write_all(&post("/convert", b"{}")).await.ok();
            client.output.shutdown().await.ok();
            let mut rest = Vec::new();
            timeout(Duration::from_secs(20), client.input.read_to_end(&mut rest)).await.ok();
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Requests long responses and never reads them.
async fn never_read(clients: SlowClients, from: u8) {
    let request = malformed_documents::with_long_response();
    while clients.running() {
        if let Some(mut client) = clients.connect(from).await {
            for _ in 0..6 {
                let sent = timeout(Duration::from_secs(5), client.output.write_all(&request)).await;
                if !matches!(sent, Ok(Ok(()))) || !clients.running() {
                    break;
                }
            }
            // Until the connection is aborted.
            for _ in 0..300 {
                sleep(POLL_INTERVAL).await;
                if !clients.running() || client.output.write_all(b" ").await.is_err() {
                    break;
                }
                client.output.flush().await.ok();
            }
        }
        sleep(POLL_INTERVAL).await;
    }
}
