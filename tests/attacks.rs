//! The webhook port under attack, from all sides at once, while honest clients go on working.
//! Comes in: the attacks below, in an order that `QUORATE_SEED` decides; `QUORATE_ATTACKS` says how
//! many. Goes out: figures. It must hold: each honest request gets the answer that it gets when all
//! is quiet, nothing panics, memory stays below its bound, no attack is left without an end.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by panicking"
)]

#[path = "attacks/bodies.rs"]
mod bodies;
#[path = "attacks/dice.rs"]
mod dice;
#[path = "attacks/documents.rs"]
mod documents;
#[path = "attacks/honest.rs"]
mod honest;
#[path = "attacks/port.rs"]
mod port;
#[path = "attacks/slow.rs"]
mod slow;
#[path = "attacks/tls.rs"]
mod tls;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bodies::{May, Strike};
use dice::Dice;
use honest::Lived;
use port::{Heard, Port, Result as Got};
use serde_json::Value;
use tokio::task::JoinSet;

/// Requests and handshakes, unless `QUORATE_ATTACKS` says otherwise.
const ATTACKS: usize = 1200;
const ATTACKERS: usize = 8;
/// What the port may take at its worst: 64 MiB for big bodies, as much for small ones, two trees and
/// their texts, and what 512 connections need.
const MOST_MEMORY_MIB: u64 = 512;

fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

fn main() {
    if port::is_port() {
        return port::be_port();
    }
    // `cargo test -- --list` and the like ask every test program; this one has one test.
    if std::env::args().any(|argument| argument == "--list") {
        return println!("attacks: test");
    }
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap().block_on(attack());
}

async fn attack() {
    let began = Instant::now();
    let seed = number("QUORATE_SEED").unwrap_or_default();
    let attacks = number("QUORATE_ATTACKS").unwrap_or(ATTACKS);
    let port = Arc::new(Port::start());
    let requests = Arc::new(honest::requests());
    let expected = Arc::new(honest::quiet(&port, &requests).await);
    let (_, quiet_memory) = port.memory();

    let over = Arc::new(AtomicBool::new(false));
    let mut honest = JoinSet::new();
    for keeps in [true, false] {
        let (requests, expected) = (Arc::clone(&requests), Arc::clone(&expected));
        honest.spawn(honest::ask(Arc::clone(&port), requests, expected, keeps, Arc::clone(&over)));
    }
    let siege = slow::Siege {
        port: Arc::clone(&port),
        over: Arc::clone(&over),
        connections: Arc::new(AtomicUsize::new(0)),
    };
    let slow = tokio::spawn(slow::all(siege.clone()));
    let met = strike_all(&port, attacks, u64::try_from(seed).unwrap()).await;
    over.store(true, Ordering::Release);
    slow.await.unwrap();
    let mut lived = Lived::default();
    while let Some(one) = honest.join_next().await {
        lived.add(one.unwrap());
    }

    let slow_connections = siege.connections.load(Ordering::Relaxed);
    drop(siege);
    println!(
        "attacks: {attacks} strikes, {slow_connections} slow connections, {:?}",
        began.elapsed()
    );
    for (name, count) in &met.counts {
        println!("  {count:6} {name}");
    }
    judge(Arc::into_inner(port).unwrap(), &met, &lived, quiet_memory);
}

fn judge(port: Port, met: &Met, lived: &Lived, quiet_memory: u64) {
    let (most, now) = port.memory();
    println!(
        "honest: {} answers, {} failures, p50 {:?}, p99 {:?}, longest {:?}",
        lived.answers,
        lived.failures.len(),
        lived.within(500),
        lived.within(990),
        lived.within(1000)
    );
    println!("memory: {quiet_memory} MiB when quiet, {most} MiB at most, {now} MiB now");
    let measured = port.measured();
    for line in measured.lines().filter(|line| line.starts_with("quorate_webhook_rejected_total")) {
        println!("  {line}");
    }
    assert!(met.wrong.is_empty(), "{:#?}", &met.wrong[..met.wrong.len().min(20)]);
    assert!(lived.failures.is_empty(), "{:#?}", &lived.failures[..lived.failures.len().min(20)]);
    assert!(lived.answers > 0);
    assert_eq!(port.metric("quorate_webhook_rejected_total{reason=\"panicked\"}"), 0);
    for errand in ["mutate", "validate", "convert"] {
        let name =
            format!("quorate_webhook_requests_total{{type=\"{errand}\",outcome=\"panicked\"}}");
        assert_eq!(port.metric(&name), 0, "{name}");
    }
    assert!(port.metric("quorate_webhook_rejected_total{reason=\"evicted\"}") > 0);
    assert!(most <= MOST_MEMORY_MIB, "{most} MiB, and {MOST_MEMORY_MIB} are allowed");
    port.end();
}

/// What the attackers met.
#[derive(Default)]
struct Met {
    counts: BTreeMap<String, usize>,
    /// What should not have been.
    wrong: Vec<String>,
}

async fn strike_all(port: &Arc<Port>, attacks: usize, seed: u64) -> Met {
    let met = Arc::new(Mutex::new(Met::default()));
    let left = Arc::new(AtomicUsize::new(attacks));
    let big: Vec<Strike> = bodies::big().into_iter().chain(documents::big()).collect();
    let big = Arc::new(Mutex::new(big));
    let mut attackers = JoinSet::new();
    for at in 0..ATTACKERS {
        let (port, met) = (Arc::clone(port), Arc::clone(&met));
        let (left, big) = (Arc::clone(&left), Arc::clone(&big));
        let mut dice = Dice::new(seed.wrapping_mul(1000).wrapping_add(u64::try_from(at).unwrap()));
        attackers.spawn(async move {
            let from = 2 + u8::try_from(at).unwrap();
            // Two of them bring what is big, the others what is many.
            while at < 2
                && let Some(strike) = { big.lock().unwrap().pop() }
            {
                let result = send(&port, &strike, from).await;
                note(&met, strike.name, result);
            }
            while left
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, |it| it.checked_sub(1))
                .is_ok()
            {
                if dice.below(10) == 0 {
                    note(&met, "a hostile handshake", tls::strike(&port, &mut dice, from).await);
                    continue;
                }
                let is_http = dice.below(2) == 0;
                let strike =
                    if is_http { bodies::small(&mut dice) } else { documents::small(&mut dice) };
                let result = send(&port, &strike, from).await;
                note(&met, strike.name, result);
            }
        });
    }
    while let Some(ended) = attackers.join_next().await {
        ended.unwrap();
    }
    Arc::into_inner(met).unwrap().into_inner().unwrap()
}

fn note(met: &Mutex<Met>, name: &str, result: Result<(), String>) {
    let mut met = met.lock().unwrap();
    *met.counts.entry(name.to_owned()).or_default() += 1;
    if let Err(wrong) = result {
        met.wrong.push(format!("{name}: {wrong}"));
    }
}

async fn send(port: &Port, strike: &Strike, from: u8) -> Result<(), String> {
    let mut client = port.connect(from).await.map_err(|error| format!("no connection: {error}"))?;
    let got = client.ask(&strike.bytes).await;
    let fits = match (&strike.may, &got) {
        (_, Got::Silence) | (May::Status(_) | May::Review(_), Got::HungUp) => false,
        (May::Status(statuses), Got::Heard(heard)) => statuses.contains(&heard.status),
        (May::NoSuccess, Got::Heard(heard)) => heard.status >= 400,
        (May::NoSuccess | May::End, Got::HungUp) | (May::End, Got::Heard(_)) => true,
        (May::Review(uid), Got::Heard(heard)) => is_review(heard, uid.as_deref()),
    };
    let shortened = || format!("{got:?}").chars().take(300).collect::<String>();
    if fits { Ok(()) } else { Err(format!("{:?} expected, got {}", strike.may, shortened())) }
}

/// Whatever is no success is an answer. A success is a review, with the uid if there was one.
fn is_review(heard: &Heard, uid: Option<&str>) -> bool {
    if heard.status != 200 {
        return heard.status >= 400;
    }
    let Ok(review) = serde_json::from_slice::<Value>(&heard.body) else {
        return false;
    };
    match (review.pointer("/response/uid").and_then(Value::as_str), uid) {
        (Some(echoed), Some(uid)) => echoed == uid,
        (Some(_), None) => true,
        (None, _) => false,
    }
}
