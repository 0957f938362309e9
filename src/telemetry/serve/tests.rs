//! The probe port over a real loopback socket: what is answered, and that nothing breaks it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream as Client};

use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};

use super::*;
use crate::telemetry::Gate;

struct Served {
    address: SocketAddr,
    gates: Gates,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

async fn served() -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let gates = Gates::new(&[Gate::KubernetesApi]);
    let probes = Probes { gates: gates.clone(), metrics: Metrics::new(Timestamp::UNIX_EPOCH) };
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(serve(listener, probes, async {
        stopped.await.ok();
    }));
    Served { address, gates, stop, task }
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
    let served = served().await;
    let closed = get_path(served.address, names::READY_PATH).await;
    assert!(closed.starts_with("HTTP/1.1 503"), "{closed}");
    assert!(closed.contains("[closed] kubernetes-api"), "{closed}");
    served.gates.open(Gate::KubernetesApi);
    let open = get_path(served.address, names::READY_PATH).await;
    assert!(open.starts_with("HTTP/1.1 200"), "{open}");
    assert!(open.contains("[open]   kubernetes-api"), "{open}");
}

#[tokio::test]
async fn liveness_and_metrics_answer_whatever_the_gates_say() {
    let served = served().await;
    let live = get_path(served.address, names::LIVE_PATH).await;
    assert!(live.starts_with("HTTP/1.1 200"), "{live}");
    let metrics = get_path(served.address, names::METRICS_PATH).await;
    assert!(metrics.contains("application/openmetrics-text"), "{metrics}");
    assert!(metrics.contains("quorate_leader 0"), "{metrics}");
}

#[tokio::test]
async fn a_bad_request_is_refused_and_the_next_good_one_is_answered() {
    let served = served().await;
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
        let answer = exchange(served.address, bytes).await;
        assert!(!answer.starts_with("HTTP/1.1 2"), "{answer}");
    }
    let post = "POST /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let refused = exchange(served.address, post.as_bytes()).await;
    assert!(refused.starts_with("HTTP/1.1 405"), "{refused}");
    let lost = get_path(served.address, "/nowhere").await;
    assert!(lost.starts_with("HTTP/1.1 404"), "{lost}");
    let live = get_path(served.address, names::LIVE_PATH).await;
    assert!(live.starts_with("HTTP/1.1 200"), "{live}");
}

#[tokio::test]
async fn a_server_that_is_told_to_stop_ends_though_an_idle_client_stays() {
    let served = served().await;
    let address = served.address;
    let asked = spawn_blocking(move || {
        let mut idle = Client::connect(address).unwrap();
        idle.write_all(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut first = [0_u8; 12];
        idle.read_exact(&mut first).unwrap();
        (idle, first)
    });
    let (idle, first) = asked.await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    served.stop.send(()).unwrap();
    served.task.await.unwrap();
    assert!(Client::connect(address).is_err());
    drop(idle);
}

/// A connection that says nothing, from a loopback address of its own.
async fn silent(from: [u8; 4], to: SocketAddr) -> tokio::net::TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((from, 0))).unwrap();
    socket.connect(to).await.unwrap()
}

/// Whether the other end has hung up, or does so while we wait.
async fn hung_up(stream: &mut tokio::net::TcpStream) -> bool {
    use tokio::io::AsyncReadExt;
    stream.read(&mut [0_u8; 64]).await.map_or(true, |count| count == 0)
}

#[tokio::test]
async fn a_peer_that_takes_all_connections_it_can_get_takes_none_from_the_others() {
    let served = served().await;
    let mut taken = Vec::new();
    for _ in 0..=CONNECTIONS {
        taken.push(silent([127, 0, 0, 2], served.address).await);
    }
    // A kubelet waits three seconds, less than it takes until a silent client is hung up on.
    let patience = Duration::from_secs(3);
    let last = taken.last_mut().unwrap();
    assert!(time::timeout(patience, hung_up(last)).await.unwrap());
    let live = time::timeout(patience, get_path(served.address, names::LIVE_PATH)).await.unwrap();
    assert!(live.starts_with("HTTP/1.1 200"), "{live}");
}

#[tokio::test]
async fn when_all_connections_are_taken_the_next_waits_until_one_is_free() {
    let served = served().await;
    let mut taken = Vec::new();
    for peer in 2_u8..=9 {
        for _ in 0..CONNECTIONS_OF_ONE_PEER {
            taken.push(silent([127, 0, 0, peer], served.address).await);
        }
    }
    assert_eq!(taken.len(), CONNECTIONS);
    let waiting = tokio::spawn(get_path(served.address, names::LIVE_PATH));
    time::sleep(Duration::from_millis(100)).await;
    assert!(!waiting.is_finished());
    drop(taken);
    let live = waiting.await.unwrap();
    assert!(live.starts_with("HTTP/1.1 200"), "{live}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_send_its_header_is_hung_up_on() {
    let served = served().await;
    let mut idle = silent([127, 0, 0, 2], served.address).await;
    let begun = time::Instant::now();
    assert!(hung_up(&mut idle).await);
    let waited = begun.elapsed();
    assert_eq!(waited.as_secs(), 5, "{waited:?}");
}
