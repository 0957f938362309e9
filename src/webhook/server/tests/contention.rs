//! Many clients at once: which connections are evicted, and which requests are rejected.

use std::sync::atomic::AtomicUsize;

use tokio::io::AsyncWriteExt;

use super::fixture::{SHORT, echo, limits, post, start};
use super::*;
use crate::webhook::handler::Outcome;

#[tokio::test]
async fn client_with_all_connections_does_not_keep_the_api_server_out() {
    let server = start(Limits { connections: 8, ..limits() }, echo).await;
    let mut parked = server.client_from(1).await.unwrap();
    assert_eq!(parked.request("/convert", b"{}").await.unwrap().status, 200);
    let mut hostile_clients = Vec::new();
    for _ in 0..40 {
        hostile_clients.push(server.socket(2).await);
    }
    server.wait_for_rejections(RejectReason::Evicted, 33).await;
    for _ in 0..6 {
        let mut fresh = server.client_from(3).await.unwrap();
        assert_eq!(fresh.request("/convert", b"{}").await.unwrap().status, 200);
    }
    assert_eq!(parked.request("/convert", b"{}").await.unwrap().status, 200);
    assert_eq!(server.metrics.count(RejectReason::ConnectionLimit), 0);
}

#[tokio::test]
async fn client_with_stalled_bodies_does_not_keep_the_api_server_out() {
    let server = start(Limits { connections: 4, ..limits() }, echo).await;
    let mut hostile_clients = Vec::new();
    let request = post("/convert", b"0123456789");
    for _ in 0..4 {
        let mut hostile = server.client_from(2).await.unwrap();
        hostile.send(&request[..request.len().saturating_sub(5)]).await;
        hostile_clients.push(hostile);
    }
    let mut legitimate = server.client_from(1).await.unwrap();
    assert_eq!(legitimate.request("/convert", b"{}").await.unwrap().status, 200);
    server.wait_for_rejections(RejectReason::Evicted, 1).await;
}

#[tokio::test]
async fn incomplete_handshakes_of_one_address_leave_permits_for_others() {
    let handshake_timeout = Duration::from_mins(5);
    let limits = Limits { handshakes: 4, handshakes_per_peer: 3, handshake_timeout, ..limits() };
    let server = start(limits, echo).await;
    let mut hostile_clients = Vec::new();
    for _ in 0..20 {
        let mut hostile = server.socket(2).await;
        hostile.write_all(&[0x16, 0x03, 0x01]).await.unwrap();
        hostile_clients.push(hostile);
    }
    time::sleep(SHORT).await;
    let legitimate = time::timeout(Duration::from_secs(20), server.client_from(1)).await;
    let mut legitimate = legitimate.expect("a handshake permit").unwrap();
    assert_eq!(legitimate.request("/convert", b"{}").await.unwrap().status, 200);
}

#[tokio::test]
async fn large_body_without_budget_gets_503_and_small_bodies_pass() {
    let limits = Limits {
        small_body_bytes: 1024,
        memory_budget_bytes: 64 * 1024,
        body_timeout: Duration::from_secs(2),
        ..limits()
    };
    let server = start(limits, echo).await;
    let body = vec![b' '; 60 * 1024];
    let request = post("/convert", &body);
    let mut first = server.client().await;
    first.send(&request[..request.len().saturating_sub(1)]).await;
    // The first request holds nearly the whole budget once all but its last byte has arrived.
    time::sleep(SHORT).await;
    let mut second = server.client().await;
    second.send(&request).await;
    let mut small = server.client().await;
    assert_eq!(small.request("/convert", b"{}").await.unwrap().status, 200);
    assert_eq!(first.receive().await.unwrap().status, 408);
    let response = second.receive().await.unwrap();
    // The first request returned its budget at its timeout, perhaps in time for the second.
    assert!([200, 503].contains(&response.status), "{response:?}");
    let mut third = server.client().await;
    assert_eq!(third.request("/convert", &body).await.unwrap().status, 200);
}

#[tokio::test]
async fn body_larger_than_the_whole_budget_gets_503() {
    let limits = Limits {
        small_body_bytes: 1024,
        memory_budget_bytes: 8 * 1024,
        body_timeout: SHORT,
        ..limits()
    };
    let server = start(limits, echo).await;
    let mut client = server.client().await;
    let response = client.request("/convert", &vec![b' '; 60 * 1024]).await.unwrap();
    assert_eq!(response.status, 503);
    assert!(response.head.to_lowercase().contains("retry-after: 1\r\n"), "{response:?}");
    server.wait_for_rejections(RejectReason::MemoryBudget, 1).await;
}

fn large_response(_: ReviewType, body: &[u8], _: Timestamp) -> ReviewResponse {
    let length = if body == b"{}" { 24 << 20 } else { 2 };
    ReviewResponse { status: 200, body: vec![b' '; length], outcome: Outcome::Allowed, objects: 0 }
}

#[tokio::test]
async fn response_holds_its_budget_until_it_is_read() {
    let limits = Limits {
        small_body_bytes: 1024,
        memory_budget_bytes: 1 << 20,
        body_timeout: SHORT,
        ..limits()
    };
    let server = start(limits, large_response).await;
    let mut slow_reader = server.client().await;
    slow_reader.send(&post("/convert", b"{}")).await;
    time::sleep(SHORT).await;
    let body = vec![b' '; 60 * 1024];
    let mut other = server.client().await;
    assert_eq!(other.request("/convert", &body).await.unwrap().status, 503);
    assert_eq!(slow_reader.receive().await.unwrap().body.len(), 24 << 20);
    let mut third = server.client().await;
    assert_eq!(third.request("/convert", &body).await.unwrap().status, 200);
}

static CONCURRENT: AtomicUsize = AtomicUsize::new(0);
static MAX_CONCURRENT: AtomicUsize = AtomicUsize::new(0);

fn count_concurrent(_: ReviewType, _: &[u8], _: Timestamp) -> ReviewResponse {
    let now = CONCURRENT.fetch_add(1, Ordering::SeqCst).saturating_add(1);
    MAX_CONCURRENT.fetch_max(now, Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(30));
    CONCURRENT.fetch_sub(1, Ordering::SeqCst);
    ReviewResponse { status: 200, body: Vec::new(), outcome: Outcome::Allowed, objects: 0 }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn large_reviews_are_limited_in_concurrency() {
    let limits = Limits { small_body_bytes: 1024, large_reviews: 2, ..limits() };
    let server = Arc::new(start(limits, count_concurrent).await);
    let mut requests = JoinSet::new();
    for _ in 0..12 {
        let server = Arc::clone(&server);
        requests.spawn(async move {
            let mut client = server.client().await;
            client.request("/convert", &[b' '; 2000]).await.unwrap().status
        });
    }
    while let Some(status) = requests.join_next().await {
        assert_eq!(status.unwrap(), 200);
    }
    assert_eq!(MAX_CONCURRENT.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn reviews_beyond_the_limit_get_503() {
    let server = start(Limits { reviews: 0, ..limits() }, echo).await;
    let mut client = server.client().await;
    let response = client.request("/convert", b"{}").await.unwrap();
    assert_eq!(response.status, 503);
    assert!(response.head.to_lowercase().contains("retry-after: 1\r\n"), "{response:?}");
    server.wait_for_rejections(RejectReason::Busy, 1).await;
}
