//! The probe server over a real loopback socket.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream as Client};

use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};

use super::*;
use crate::telemetry::Gate;

struct TestServer {
    address: SocketAddr,
    gates: Gates,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

async fn start_server() -> TestServer {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let gates = Gates::new(&[Gate::KubernetesApi]);
    let probes = Probes { gates: gates.clone(), metrics: Metrics::new(Timestamp::UNIX_EPOCH) };
    let (stop, shutdown) = oneshot::channel::<()>();
    let task = tokio::spawn(serve(listener, probes, async {
        shutdown.await.ok();
    }));
    TestServer { address, gates, stop, task }
}

/// Sends bytes and reads until the server closes the connection.
async fn exchange(address: SocketAddr, bytes: &[u8]) -> String {
    let bytes = bytes.to_vec();
    let exchanged = spawn_blocking(move || {
        let mut client = Client::connect(address).unwrap();
        client.write_all(&bytes).ok();
        let mut response = Vec::new();
        client.read_to_end(&mut response).ok();
        response
    });
    String::from_utf8_lossy(&exchanged.await.unwrap()).into_owned()
}

async fn get_path(address: SocketAddr, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n");
    exchange(address, request.as_bytes()).await
}

#[tokio::test]
async fn readyz_reports_every_gate() {
    let server = start_server().await;
    let closed = get_path(server.address, names::READY_PATH).await;
    assert!(closed.starts_with("HTTP/1.1 503"), "{closed}");
    assert!(closed.contains("[-]kubernetes-api failed"), "{closed}");
    server.gates.open(Gate::KubernetesApi);
    let open = get_path(server.address, names::READY_PATH).await;
    assert!(open.starts_with("HTTP/1.1 200"), "{open}");
    assert!(open.contains("[+]kubernetes-api ok"), "{open}");
}

#[tokio::test]
async fn livez_and_metrics_do_not_depend_on_the_gates() {
    let server = start_server().await;
    let live = get_path(server.address, names::LIVE_PATH).await;
    assert!(live.starts_with("HTTP/1.1 200"), "{live}");
    let metrics = get_path(server.address, names::METRICS_PATH).await;
    assert!(metrics.contains("application/openmetrics-text"), "{metrics}");
    assert!(metrics.contains("quorate_leader 0"), "{metrics}");
}

#[tokio::test]
async fn bad_requests_are_rejected_and_the_next_valid_one_succeeds() {
    let server = start_server().await;
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(64 * 1024));
    let many = format!("GET /livez HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(1000));
    let bad: [&[u8]; 7] = [
        b"\r\n\r\n\0\0\0",
        b"GET\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"GET /%ff%00/../.. HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        long.as_bytes(),
        many.as_bytes(),
    ];
    for bytes in bad {
        let response = exchange(server.address, bytes).await;
        assert!(!response.starts_with("HTTP/1.1 2"), "{response}");
    }
    let post = "POST /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let rejected = exchange(server.address, post.as_bytes()).await;
    assert!(rejected.starts_with("HTTP/1.1 405"), "{rejected}");
    let not_found = get_path(server.address, "/unknown").await;
    assert!(not_found.starts_with("HTTP/1.1 404"), "{not_found}");
    let live = get_path(server.address, names::LIVE_PATH).await;
    assert!(live.starts_with("HTTP/1.1 200"), "{live}");
}

#[tokio::test]
async fn server_stops_although_a_client_is_idle() {
    let server = start_server().await;
    let address = server.address;
    let connected = spawn_blocking(move || {
        let mut idle = Client::connect(address).unwrap();
        idle.write_all(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut first = [0_u8; 12];
        idle.read_exact(&mut first).unwrap();
        (idle, first)
    });
    let (idle, first) = connected.await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    server.stop.send(()).unwrap();
    server.task.await.unwrap();
    assert!(Client::connect(address).is_err());
    drop(idle);
}

/// A connection without a request, from a loopback address of its own.
async fn idle_connection(from: [u8; 4], to: SocketAddr) -> tokio::net::TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((from, 0))).unwrap();
    socket.connect(to).await.unwrap()
}

/// Whether the server closes the connection.
async fn closed_by_server(stream: &mut tokio::net::TcpStream) -> bool {
    use tokio::io::AsyncReadExt;
    stream.read(&mut [0_u8; 64]).await.map_or(true, |count| count == 0)
}

#[tokio::test]
async fn one_peer_cannot_use_all_connections() {
    let server = start_server().await;
    let mut taken = Vec::new();
    for _ in 0..=MAX_CONNECTIONS {
        taken.push(idle_connection([127, 0, 0, 2], server.address).await);
    }
    // The timeout of the kubelet, which is shorter than the header timeout.
    let probe_timeout = Duration::from_secs(3);
    let last = taken.last_mut().unwrap();
    assert!(time::timeout(probe_timeout, closed_by_server(last)).await.unwrap());
    let live =
        time::timeout(probe_timeout, get_path(server.address, names::LIVE_PATH)).await.unwrap();
    assert!(live.starts_with("HTTP/1.1 200"), "{live}");
}

#[tokio::test]
async fn connection_beyond_the_limit_waits_for_a_free_slot() {
    let server = start_server().await;
    let mut taken = Vec::new();
    for peer in 2_u8..=9 {
        for _ in 0..MAX_CONNECTIONS_PER_PEER {
            taken.push(idle_connection([127, 0, 0, peer], server.address).await);
        }
    }
    assert_eq!(taken.len(), MAX_CONNECTIONS);
    let waiting = tokio::spawn(get_path(server.address, names::LIVE_PATH));
    time::sleep(Duration::from_millis(100)).await;
    assert!(!waiting.is_finished());
    drop(taken);
    let live = waiting.await.unwrap();
    assert!(live.starts_with("HTTP/1.1 200"), "{live}");
}

#[tokio::test(start_paused = true)]
async fn connection_without_a_header_is_closed() {
    let server = start_server().await;
    let mut idle = idle_connection([127, 0, 0, 2], server.address).await;
    let start = time::Instant::now();
    assert!(closed_by_server(&mut idle).await);
    let waited = start.elapsed();
    assert_eq!(waited.as_secs(), 5, "{waited:?}");
}
