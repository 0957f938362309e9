//! How it ends: drained, stopped, or by a bug.

use super::rig::{SHORT, echo, limits, open, port, post};
use super::*;
use crate::webhook::desk::Outcome;

#[tokio::test]
async fn a_port_that_is_drained_answers_and_asks_to_connect_anew() {
    let mut port = port().await;
    let mut parked = port.client().await;
    let before = parked.ask("/convert", b"{}").await.unwrap();
    assert!(!before.head.to_lowercase().contains("connection: close"), "{before:?}");
    port.drain.take().unwrap().send(()).unwrap();
    time::sleep(SHORT).await;
    let mut newcomer = port.client().await;
    for client in [&mut parked, &mut newcomer] {
        let heard = client.ask("/convert", b"{}").await.unwrap();
        assert_eq!(heard.status, 200);
        assert!(heard.head.to_lowercase().contains("connection: close"), "{heard:?}");
        assert!(client.is_hung_up().await);
    }
}

fn slow_answer(errand: Errand, body: &[u8], now: Timestamp) -> Reply {
    std::thread::sleep(SHORT);
    echo(errand, body, now)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_that_is_stopped_finishes_what_was_begun_and_closes_the_rest() {
    let limits = Limits { small_bytes: 0, ..limits() };
    let mut port = open(limits, slow_answer).await;
    let mut idle = port.client().await;
    assert_eq!(idle.ask("/convert", b"{}").await.unwrap().status, 200);
    let mut silent = port.client().await;
    let socket = port.socket(1).await;
    let mut busy = port.client().await;
    let whole = post("/convert", b"{}");
    busy.say(&whole[..whole.len().saturating_sub(1)]).await;
    time::sleep(Duration::from_millis(100)).await;
    port.stop.take().unwrap().send(()).unwrap();
    assert!(idle.is_hung_up().await && silent.is_hung_up().await);
    busy.say(b"}").await;
    let heard = busy.hear().await.unwrap();
    assert_eq!(heard.status, 200);
    assert!(heard.head.to_lowercase().contains("connection: close"), "{heard:?}");
    drop(busy);
    port.task.await.unwrap();
    assert!(TcpStream::connect(port.address).await.is_err());
    drop(socket);
}

#[tokio::test]
async fn a_port_that_is_stopped_does_not_wait_for_ever() {
    let limits = Limits { last_answers: SHORT, ..limits() };
    let mut port = open(limits, echo).await;
    let mut stuck = port.client().await;
    let whole = post("/convert", b"{}");
    stuck.say(&whole[..whole.len().saturating_sub(1)]).await;
    time::sleep(Duration::from_millis(100)).await;
    port.stop.take().unwrap().send(()).unwrap();
    time::timeout(Duration::from_secs(20), port.task).await.unwrap().unwrap();
}

fn bug(errand: Errand, body: &[u8], now: Timestamp) -> Reply {
    assert!(body != b"bug", "the bug of a test");
    echo(errand, body, now)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bug_ends_one_connection_and_is_counted() {
    let limits = Limits { small_bytes: 1, big_at_once: 1, reviews: 1, ..limits() };
    let port = open(limits, bug).await;
    let mut bystander = port.client().await;
    assert_eq!(bystander.ask("/convert", b"{}").await.unwrap().status, 200);
    for count in 1..4 {
        let mut unlucky = port.client().await;
        assert!(unlucky.ask("/convert", b"bug").await.is_none());
        port.refused(Refused::Panicked, count).await;
    }
    // Neither the turn nor the place is lost with it.
    assert_eq!(bystander.ask("/convert", b"{}").await.unwrap().status, 200);
}

fn nonsense(_: Errand, _: &[u8], _: Timestamp) -> Reply {
    Reply { status: 7, body: b"?".to_vec(), outcome: Outcome::Unreadable, objects: 0 }
}

#[tokio::test]
async fn an_answer_that_cannot_be_sent_is_our_fault() {
    let port = open(limits(), nonsense).await;
    let heard = port.client().await.ask("/convert", b"{}").await.unwrap();
    assert_eq!((heard.status, heard.body), (500, b"?".to_vec()));
}
