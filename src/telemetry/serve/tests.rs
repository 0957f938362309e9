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

/// Sends bytes and reads what comes back until the other end hangs up.
async fn exchange(address: SocketAddr, bytes: &[u8]) -> String {
    let bytes = bytes.to_vec();
    let exchanged = spawn_blocking(move || {
        let mut client = Client::connect(address).unwrap();
        client.write_all(&bytes).ok();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).ok();
        answer
    });
    String::from_utf8_lossy(&exchanged.await.unwrap()).into_owned()
}

async fn get_path(address: SocketAddr, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n");
    exchange(address, request.as_bytes()).await
}

#[tokio::test]
async fn readiness_follows_the_gates_and_names_each_of_them() {
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
async fn liveness_and_metrics_answer_whatever_the_gates_say() {
    let server = start_server().await;
    let live = get_path(server.address, names::LIVE_PATH).await;
    assert!(live.starts_with("HTTP/1.1 200"), "{live}");
    let metrics = get_path(server.address, names::METRICS_PATH).await;
    assert!(metrics.contains("application/openmetrics-text"), "{metrics}");
    assert!(metrics.contains("quorate_leader 0"), "{metrics}");
}

#[tokio::test]
async fn a_bad_request_is_refused_and_the_next_good_one_is_answered() {
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
        let answer = exchange(server.address, bytes).await;
        assert!(!answer.starts_with("HTTP/1.1 2"), "{answer}");
    }
    let post = "POST /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let refused = exchange(server.address, post.as_bytes()).await;
    assert!(refused.starts_with("HTTP/1.1 405"), "{refused}");
    let not_found = get_path(server.address, "/nowhere").await;
    assert!(not_found.starts_with("HTTP/1.1 404"), "{not_found}");
    let live = get_path(server.address, names::LIVE_PATH).await;
    assert!(live.starts_with("HTTP/1.1 200"), "{live}");
}

#[tokio::test]
async fn a_server_that_is_told_to_stop_ends_though_an_idle_client_stays() {
    let server = start_server().await;
    let address = server.address;
    let asked = spawn_blocking(move || {
        let mut idle = Client::connect(address).unwrap();
        idle.write_all(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut first = [0_u8; 12];
        idle.read_exact(&mut first).unwrap();
        (idle, first)
    });
    let (idle, first) = asked.await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    server.stop.send(()).unwrap();
    server.task.await.unwrap();
    assert!(Client::connect(address).is_err());
    drop(idle);
}

/// A connection that says nothing, from a loopback address of its own.
async fn idle_connection(from: [u8; 4], to: SocketAddr) -> tokio::net::TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((from, 0))).unwrap();
    socket.connect(to).await.unwrap()
}

/// Whether the other end has hung up, or does so while we wait.
async fn closed_by_server(stream: &mut tokio::net::TcpStream) -> bool {
    use tokio::io::AsyncReadExt;
    stream.read(&mut [0_u8; 64]).await.map_or(true, |count| count == 0)
}

#[tokio::test]
async fn a_peer_that_takes_all_connections_it_can_get_takes_none_from_the_others() {
    let server = start_server().await;
    let mut taken = Vec::new();
    for _ in 0..=MAX_CONNECTIONS {
        taken.push(idle_connection([127, 0, 0, 2], server.address).await);
    }
    // A kubelet waits three seconds, less than it takes until a silent client is hung up on.
    let probe_timeout = Duration::from_secs(3);
    let last = taken.last_mut().unwrap();
    assert!(time::timeout(probe_timeout, closed_by_server(last)).await.unwrap());
    let live =
        time::timeout(probe_timeout, get_path(server.address, names::LIVE_PATH)).await.unwrap();
    assert!(live.starts_with("HTTP/1.1 200"), "{live}");
}

#[tokio::test]
async fn when_all_connections_are_taken_the_next_waits_until_one_is_free() {
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
async fn a_client_that_does_not_send_its_header_is_hung_up_on() {
    let server = start_server().await;
    let mut idle = idle_connection([127, 0, 0, 2], server.address).await;
    let begun = time::Instant::now();
    assert!(closed_by_server(&mut idle).await);
    let waited = begun.elapsed();
    assert_eq!(waited.as_secs(), 5, "{waited:?}");
}
