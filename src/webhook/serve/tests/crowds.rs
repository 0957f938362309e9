//! Many at once: who finds a place, and who makes one.

use std::sync::atomic::AtomicUsize;

use tokio::io::AsyncWriteExt;

use super::rig::{SHORT, echo, limits, open, post};
use super::*;
use crate::webhook::desk::Outcome;

#[tokio::test]
async fn a_stranger_with_all_the_places_does_not_keep_the_api_server_out() {
    let port = open(Limits { connections: 8, ..limits() }, echo).await;
    let mut parked = port.client_from(1).await.unwrap();
    assert_eq!(parked.ask("/convert", b"{}").await.unwrap().status, 200);
    let mut strangers = Vec::new();
    for _ in 0..40 {
        strangers.push(port.socket(2).await);
    }
    port.refused(Refused::Displaced, 33).await;
    for _ in 0..6 {
        let mut fresh = port.client_from(3).await.unwrap();
        assert_eq!(fresh.ask("/convert", b"{}").await.unwrap().status, 200);
    }
    assert_eq!(parked.ask("/convert", b"{}").await.unwrap().status, 200);
    assert_eq!(port.metrics.count(Refused::Full), 0);
}

#[tokio::test]
async fn a_stranger_that_stalls_bodies_in_all_the_places_does_not_either() {
    let port = open(Limits { connections: 4, ..limits() }, echo).await;
    let mut strangers = Vec::new();
    let whole = post("/convert", b"0123456789");
    for _ in 0..4 {
        let mut stranger = port.client_from(2).await.unwrap();
        stranger.say(&whole[..whole.len().saturating_sub(5)]).await;
        strangers.push(stranger);
    }
    let mut honest = port.client_from(1).await.unwrap();
    assert_eq!(honest.ask("/convert", b"{}").await.unwrap().status, 200);
    port.refused(Refused::Displaced, 1).await;
}

#[tokio::test]
async fn half_handshakes_of_one_address_leave_places_for_others() {
    let handshake = Duration::from_mins(5);
    let limits = Limits { handshakes: 4, handshakes_of_one_peer: 3, handshake, ..limits() };
    let port = open(limits, echo).await;
    let mut strangers = Vec::new();
    for _ in 0..20 {
        let mut stranger = port.socket(2).await;
        stranger.write_all(&[0x16, 0x03, 0x01]).await.unwrap();
        strangers.push(stranger);
    }
    time::sleep(SHORT).await;
    let honest = time::timeout(Duration::from_secs(20), port.client_from(1)).await;
    let mut honest = honest.expect("a place among the handshakes").unwrap();
    assert_eq!(honest.ask("/convert", b"{}").await.unwrap().status, 200);
}

#[tokio::test]
async fn who_finds_no_room_for_a_big_body_is_told_to_come_back_and_small_ones_pass() {
    let limits = Limits {
        small_bytes: 1024,
        room_bytes: 64 * 1024,
        body: Duration::from_secs(2),
        ..limits()
    };
    let port = open(limits, echo).await;
    let body = vec![b' '; 60 * 1024];
    let whole = post("/convert", &body);
    let mut first = port.client().await;
    first.say(&whole[..whole.len().saturating_sub(1)]).await;
    // The first holds nearly all of the room once all but its last byte has come.
    time::sleep(SHORT).await;
    let mut second = port.client().await;
    second.say(&whole).await;
    let mut small = port.client().await;
    assert_eq!(small.ask("/convert", b"{}").await.unwrap().status, 200);
    assert_eq!(first.hear().await.unwrap().status, 408);
    let heard = second.hear().await.unwrap();
    // The first gave its room back at the end of its time, perhaps in time for the second.
    assert!([200, 503].contains(&heard.status), "{heard:?}");
    let mut third = port.client().await;
    assert_eq!(third.ask("/convert", &body).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_body_that_is_bigger_than_all_room_is_told_to_come_back() {
    let limits = Limits { small_bytes: 1024, room_bytes: 8 * 1024, body: SHORT, ..limits() };
    let port = open(limits, echo).await;
    let mut client = port.client().await;
    let heard = client.ask("/convert", &vec![b' '; 60 * 1024]).await.unwrap();
    assert_eq!(heard.status, 503);
    assert!(heard.head.to_lowercase().contains("retry-after: 1\r\n"), "{heard:?}");
    port.refused(Refused::NoRoom, 1).await;
}

fn long_answer(_: Errand, body: &[u8], _: Timestamp) -> Reply {
    let length = if body == b"{}" { 24 << 20 } else { 2 };
    Reply { status: 200, body: vec![b' '; length], outcome: Outcome::Allowed, objects: 0 }
}

#[tokio::test]
async fn an_answer_holds_its_room_until_it_is_read() {
    let limits = Limits { small_bytes: 1024, room_bytes: 1 << 20, body: SHORT, ..limits() };
    let port = open(limits, long_answer).await;
    let mut deaf = port.client().await;
    deaf.say(&post("/convert", b"{}")).await;
    time::sleep(SHORT).await;
    let body = vec![b' '; 60 * 1024];
    let mut other = port.client().await;
    assert_eq!(other.ask("/convert", &body).await.unwrap().status, 503);
    assert_eq!(deaf.hear().await.unwrap().body.len(), 24 << 20);
    let mut third = port.client().await;
    assert_eq!(third.ask("/convert", &body).await.unwrap().status, 200);
}

static AT_ONCE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn count_at_once(_: Errand, _: &[u8], _: Timestamp) -> Reply {
    let now = AT_ONCE.fetch_add(1, Ordering::SeqCst).saturating_add(1);
    MOST.fetch_max(now, Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(30));
    AT_ONCE.fetch_sub(1, Ordering::SeqCst);
    Reply { status: 200, body: Vec::new(), outcome: Outcome::Allowed, objects: 0 }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn big_reviews_take_turns_and_small_ones_do_not_wait_for_them() {
    let limits = Limits { small_bytes: 1024, big_at_once: 2, ..limits() };
    let port = Arc::new(open(limits, count_at_once).await);
    let mut asking = JoinSet::new();
    for _ in 0..12 {
        let port = Arc::clone(&port);
        asking.spawn(async move {
            let mut client = port.client().await;
            client.ask("/convert", &[b' '; 2000]).await.unwrap().status
        });
    }
    while let Some(status) = asking.join_next().await {
        assert_eq!(status.unwrap(), 200);
    }
    assert_eq!(MOST.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn more_reviews_than_allowed_are_told_to_come_back() {
    let port = open(Limits { reviews: 0, ..limits() }, echo).await;
    let mut client = port.client().await;
    let heard = client.ask("/convert", b"{}").await.unwrap();
    assert_eq!(heard.status, 503);
    assert!(heard.head.to_lowercase().contains("retry-after: 1\r\n"), "{heard:?}");
    port.refused(Refused::Busy, 1).await;
}
