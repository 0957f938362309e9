//! Who is too slow, and who is merely idle.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::rig::{SHORT, echo, limits, open, port, post};
use super::*;
use crate::webhook::desk::Outcome;

#[tokio::test]
async fn a_connection_that_the_api_server_has_parked_is_still_good_and_does_not_live_for_ever() {
    let port = port().await;
    let mut client = port.client().await;
    assert_eq!(client.ask("/convert", b"{}").await.unwrap().status, 200);
    time::pause();
    time::advance(Duration::from_mins(2)).await;
    time::resume();
    assert_eq!(client.ask("/convert", b"{}").await.unwrap().status, 200);
    time::pause();
    time::advance(Limits::STANDARD.idle).await;
    time::resume();
    assert!(client.is_hung_up().await);
    assert_eq!(port.metrics.count(Refused::Silent), 0);
}

#[tokio::test]
async fn a_connection_that_never_asks_is_cut() {
    let port = open(Limits { first_request: SHORT, ..limits() }, echo).await;
    let mut client = port.client().await;
    assert!(client.is_hung_up().await);
    port.refused(Refused::Silent, 1).await;
}

#[tokio::test]
async fn a_handshake_that_does_not_begin_or_end_is_cut() {
    let port = open(Limits { handshake: SHORT, ..limits() }, echo).await;
    let mut silent = port.socket(1).await;
    let mut stuck = port.socket(1).await;
    stuck.write_all(&[0x16, 0x03, 0x01]).await.unwrap();
    for socket in [&mut silent, &mut stuck] {
        assert!(matches!(socket.read(&mut [0_u8; 9]).await, Ok(0) | Err(_)));
    }
    port.refused(Refused::SlowHandshake, 2).await;
}

#[tokio::test]
async fn a_header_that_comes_drop_by_drop_is_cut_counted_from_its_first_byte() {
    let port = open(Limits { header: SHORT, ..limits() }, echo).await;
    let mut client = port.client().await;
    // After a good request, too: the second header is no better than the first.
    assert_eq!(client.ask("/convert", b"{}").await.unwrap().status, 200);
    client.say(b"POST /convert HTTP/1.1\r\n").await;
    let drops = async {
        loop {
            client.say(b"A: b\r\n").await;
            time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        () = drops => {}
        () = port.refused(Refused::SlowHeader, 1) => {}
    }
    assert!(client.is_hung_up().await);
}

#[tokio::test]
async fn a_body_that_comes_drop_by_drop_is_told_and_cut() {
    let port = open(Limits { body: SHORT, ..limits() }, echo).await;
    let mut client = port.client().await;
    let whole = post("/convert", &[b' '; 1000]);
    client.say(&whole[..whole.len().saturating_sub(900)]).await;
    let heard = client.hear().await.unwrap();
    assert_eq!(heard.status, 408);
    assert!(client.is_hung_up().await);
    port.refused(Refused::SlowBody, 1).await;
}

fn long_answer(_: Errand, _: &[u8], _: Timestamp) -> Reply {
    Reply { status: 200, body: vec![b' '; 24 << 20], outcome: Outcome::Allowed, objects: 0 }
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answer_is_cut() {
    let port = open(Limits { answer: SHORT, ..limits() }, long_answer).await;
    let mut client = port.client().await;
    client.say(&post("/convert", b"{}")).await;
    port.refused(Refused::SlowReader, 1).await;
    assert!(client.is_hung_up().await);
}

#[tokio::test]
async fn a_long_answer_is_whole_for_whoever_reads_it() {
    let port = open(limits(), long_answer).await;
    let mut client = port.client().await;
    for _ in 0..2 {
        assert_eq!(client.ask("/convert", b"{}").await.unwrap().body.len(), 24 << 20);
    }
}
