//! Attackers that do nothing, slowly, for as long as the attack lasts. Each is alone on an address,
//! as a pod would be.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use super::documents;
use super::port::{Client, Port, post};

/// What the slow ones share.
#[derive(Clone)]
pub(crate) struct Siege {
    pub(crate) port: Arc<Port>,
    pub(crate) over: Arc<AtomicBool>,
    pub(crate) connections: Arc<AtomicUsize>,
}

const TICK: Duration = Duration::from_millis(50);
/// Between two drops of those that drip.
const DROP: Duration = Duration::from_millis(200);

impl Siege {
    fn lasts(&self) -> bool {
        !self.over.load(Ordering::Acquire)
    }

    fn count(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    async fn connect(&self, from: u8) -> Option<Client> {
        self.count();
        timeout(Duration::from_secs(10), self.port.connect(from)).await.ok()?.ok()
    }
}

/// Everything at once.
pub(crate) async fn all(siege: Siege) {
    let head = "POST /convert HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n";
    let promise = format!("{head}Content-Length: 30000000\r\n\r\n");
    let heavy = [promise.as_bytes(), &vec![b' '; 20_000_000]].concat();
    tokio::join!(
        crowd(siege.clone(), 20, &[], 10, 600),
        crowd(siege.clone(), 21, &[0x16, 3, 1], 2, 100),
        drip(siege.clone(), 22, b"", b"", 40),
        drip(siege.clone(), 23, head.as_bytes(), b"A: b\r\n", 20),
        drip(siege.clone(), 24, promise.as_bytes(), b" ", 20),
        drip(siege.clone(), 25, &heavy, b"", 4),
        half_closed(siege.clone(), 26),
        deaf(siege, 27),
    );
}

/// Ever more sockets that say the same few bytes and no more.
async fn crowd(siege: Siege, from: u8, bytes: &[u8], at_once: usize, held: usize) {
    let mut sockets = VecDeque::new();
    while siege.lasts() {
        for _ in 0..at_once {
            siege.count();
            if let Ok(Ok(mut socket)) =
                timeout(Duration::from_secs(5), siege.port.socket(from)).await
            {
                socket.write_all(bytes).await.ok();
                sockets.push_back(socket);
            }
            if sockets.len() > held {
                sockets.pop_front();
            }
        }
        sleep(TICK).await;
    }
}

/// Connections that send the beginning of a request, and then a drop now and then.
async fn drip(siege: Siege, from: u8, begin: &[u8], drop: &[u8], held: usize) {
    let mut clients: VecDeque<Client> = VecDeque::new();
    while siege.lasts() {
        if clients.len() < held
            && let Some(mut client) = siege.connect(from).await
        {
            let said = timeout(Duration::from_secs(5), client.output.write_all(begin)).await;
            client.output.flush().await.ok();
            if matches!(said, Ok(Ok(()))) {
                clients.push_back(client);
            }
        }
        let mut left = VecDeque::new();
        for mut client in clients {
            client.output.write_all(drop).await.ok();
            client.output.flush().await.ok();
            // Whoever was told the end makes place for the next.
            let ended = timeout(Duration::from_millis(1), client.input.read(&mut [0_u8; 99])).await;
            if ended.is_err() {
                left.push_back(client);
            }
        }
        clients = left;
        sleep(DROP).await;
    }
}

/// Says all and hangs up half, before the answer.
async fn half_closed(siege: Siege, from: u8) {
    while siege.lasts() {
        if let Some(mut client) = siege.connect(from).await {
            client.output.write_all(&post("/convert", b"{}")).await.ok();
            client.output.shutdown().await.ok();
            let mut rest = Vec::new();
            timeout(Duration::from_secs(20), client.input.read_to_end(&mut rest)).await.ok();
        }
        sleep(TICK).await;
    }
}

/// Asks for long answers, and reads none of them.
async fn deaf(siege: Siege, from: u8) {
    let request = documents::long();
    while siege.lasts() {
        if let Some(mut client) = siege.connect(from).await {
            for _ in 0..6 {
                let said = timeout(Duration::from_secs(5), client.output.write_all(&request)).await;
                if !matches!(said, Ok(Ok(()))) || !siege.lasts() {
                    break;
                }
            }
            // Until it is cut.
            for _ in 0..300 {
                sleep(TICK).await;
                if !siege.lasts() || client.output.write_all(b" ").await.is_err() {
                    break;
                }
                client.output.flush().await.ok();
            }
        }
        sleep(TICK).await;
    }
}
