//! Timeouts of handshake, headers, body and response, and idle connections.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::fixture::{SHORT, echo, limits, post, start, start_default};
use super::*;
use crate::webhook::handler::Outcome;

#[tokio::test]
async fn idle_connection_of_the_api_server_stays_usable_and_times_out_eventually() {
    let server = start_default().await;
    let mut client = server.client().await;
    assert_eq!(client.request("/convert", b"{}").await.unwrap().status, 200);
    time::pause();
    time::advance(Duration::from_mins(2)).await;
    time::resume();
    assert_eq!(client.request("/convert", b"{}").await.unwrap().status, 200);
    time::pause();
    time::advance(Limits::DEFAULT.idle_timeout).await;
    time::resume();
    assert!(client.is_closed().await);
    assert_eq!(server.metrics.count(RejectReason::NoRequest), 0);
}

#[tokio::test]
async fn connection_without_a_request_is_aborted() {
    let server = start(Limits { first_request_timeout: SHORT, ..limits() }, echo).await;
    let mut client = server.client().await;
    assert!(client.is_closed().await);
    server.wait_for_rejections(RejectReason::NoRequest, 1).await;
}

#[tokio::test]
async fn handshake_that_does_not_start_or_complete_is_aborted() {
    let server = start(Limits { handshake_timeout: SHORT, ..limits() }, echo).await;
    let mut not_started = server.socket(1).await;
    let mut stuck = server.socket(1).await;
    stuck.write_all(&[0x16, 0x03, 0x01]).await.unwrap();
    for socket in [&mut not_started, &mut stuck] {
        assert!(matches!(socket.read(&mut [0_u8; 9]).await, Ok(0) | Err(_)));
    }
    server.wait_for_rejections(RejectReason::SlowHandshake, 2).await;
}

#[tokio::test]
async fn slow_header_is_aborted_counted_from_its_first_byte() {
    let server = start(Limits { header_timeout: SHORT, ..limits() }, echo).await;
    let mut client = server.client().await;
    // Also after a complete request: the second header has the same timeout.
    assert_eq!(client.request("/convert", b"{}").await.unwrap().status, 200);
    client.send(b"POST /convert HTTP/1.1\r\n").await;
    let drops = async {
        loop {
            client.send(b"A: b\r\n").await;
            time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        () = drops => {}
        () = server.wait_for_rejections(RejectReason::SlowHeader, 1) => {}
    }
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn slow_body_gets_408_and_the_connection_is_closed() {
    let server = start(Limits { body_timeout: SHORT, ..limits() }, echo).await;
    let mut client = server.client().await;
    let request = post("/convert", &[b' '; 1000]);
    client.send(&request[..request.len().saturating_sub(900)]).await;
    let response = client.receive().await.unwrap();
    assert_eq!(response.status, 408);
    assert!(client.is_closed().await);
    server.wait_for_rejections(RejectReason::SlowBody, 1).await;
}

fn large_response(_: ReviewType, _: &[u8], _: Timestamp) -> ReviewResponse {
    ReviewResponse {
        status: 200,
        body: vec![b' '; 24 << 20],
        outcome: Outcome::Allowed,
        objects: 0,
    }
}

#[tokio::test]
async fn client_that_does_not_read_its_response_is_aborted() {
    let server = start(Limits { response_timeout: SHORT, ..limits() }, large_response).await;
    let mut client = server.client().await;
    client.send(&post("/convert", b"{}")).await;
    server.wait_for_rejections(RejectReason::SlowReader, 1).await;
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn large_response_is_sent_completely() {
    let server = start(limits(), large_response).await;
    let mut client = server.client().await;
    for _ in 0..2 {
        assert_eq!(client.request("/convert", b"{}").await.unwrap().body.len(), 24 << 20);
    }
}
