//! Draining, shutdown, and panics in the handler.

use super::fixture::{SHORT, echo, limits, post, start, start_default};
use super::*;
use crate::webhook::handler::Outcome;

#[tokio::test]
async fn draining_server_responds_and_asks_clients_to_reconnect() {
    let mut server = start_default().await;
    let mut parked = server.client().await;
    let before = parked.request("/convert", b"{}").await.unwrap();
    assert!(!before.head.to_lowercase().contains("connection: close"), "{before:?}");
    server.drain.take().unwrap().send(()).unwrap();
    time::sleep(SHORT).await;
    let mut new_client = server.client().await;
    for client in [&mut parked, &mut new_client] {
        let response = client.request("/convert", b"{}").await.unwrap();
        assert_eq!(response.status, 200);
        assert!(response.head.to_lowercase().contains("connection: close"), "{response:?}");
        assert!(client.is_closed().await);
    }
}

fn slow_handler(review_type: ReviewType, body: &[u8], now: Timestamp) -> ReviewResponse {
    std::thread::sleep(SHORT);
    echo(review_type, body, now)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_server_finishes_requests_in_progress_and_closes_idle_connections() {
    let limits = Limits { small_body_bytes: 0, ..limits() };
    let mut server = start(limits, slow_handler).await;
    let mut idle = server.client().await;
    assert_eq!(idle.request("/convert", b"{}").await.unwrap().status, 200);
    let mut without_request = server.client().await;
    let socket = server.socket(1).await;
    let mut busy = server.client().await;
    let request = post("/convert", b"{}");
    busy.send(&request[..request.len().saturating_sub(1)]).await;
    time::sleep(Duration::from_millis(100)).await;
    server.stop.take().unwrap().send(()).unwrap();
    assert!(idle.is_closed().await && without_request.is_closed().await);
    busy.send(b"}").await;
    let response = busy.receive().await.unwrap();
    assert_eq!(response.status, 200);
    assert!(response.head.to_lowercase().contains("connection: close"), "{response:?}");
    drop(busy);
    server.task.await.unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
    drop(socket);
}

#[tokio::test]
async fn stopped_server_does_not_wait_forever() {
    let limits = Limits { shutdown_timeout: SHORT, ..limits() };
    let mut server = start(limits, echo).await;
    let mut stuck = server.client().await;
    let request = post("/convert", b"{}");
    stuck.send(&request[..request.len().saturating_sub(1)]).await;
    time::sleep(Duration::from_millis(100)).await;
    server.stop.take().unwrap().send(()).unwrap();
    time::timeout(Duration::from_secs(20), server.task).await.unwrap().unwrap();
}

fn panicking_handler(review_type: ReviewType, body: &[u8], now: Timestamp) -> ReviewResponse {
    assert!(body != b"bug", "on purpose");
    echo(review_type, body, now)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn panic_ends_one_connection_and_is_counted() {
    let limits = Limits { small_body_bytes: 1, large_reviews: 1, reviews: 1, ..limits() };
    let server = start(limits, panicking_handler).await;
    let mut bystander = server.client().await;
    assert_eq!(bystander.request("/convert", b"{}").await.unwrap().status, 200);
    for count in 1..4 {
        let mut panicking = server.client().await;
        assert!(panicking.request("/convert", b"bug").await.is_none());
        server.wait_for_rejections(RejectReason::Panicked, count).await;
    }
    // The panic has released its permits.
    assert_eq!(bystander.request("/convert", b"{}").await.unwrap().status, 200);
}

fn invalid_status(_: ReviewType, _: &[u8], _: Timestamp) -> ReviewResponse {
    ReviewResponse { status: 7, body: b"?".to_vec(), outcome: Outcome::Unreadable, objects: 0 }
}

#[tokio::test]
async fn invalid_status_code_becomes_internal_server_error() {
    let server = start(limits(), invalid_status).await;
    let response = server.client().await.request("/convert", b"{}").await.unwrap();
    assert_eq!((response.status, response.body), (500, b"?".to_vec()));
}
