//! Hostile clients at the webhook server, beside legitimate ones. `QUORATE_ATTACKS` sets the number
//! of hostile requests, `QUORATE_SEED` their order.
//!
//! Guarantees: each legitimate request gets the same response as without hostile clients, nothing
//! panics, memory stays below its bound, and every hostile connection ends.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by panicking"
)]

#[path = "webhook_abuse/bodies.rs"]
mod bodies;
#[path = "webhook_abuse/legitimate_clients.rs"]
mod legitimate_clients;
#[path = "webhook_abuse/malformed_documents.rs"]
mod malformed_documents;
#[path = "webhook_abuse/rng.rs"]
mod rng;
#[path = "webhook_abuse/server_process.rs"]
mod server_process;
#[path = "webhook_abuse/slow.rs"]
mod slow;
#[path = "webhook_abuse/tls.rs"]
mod tls;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bodies::{Expected, Request};
use legitimate_clients::Observed;
use rng::Rng;
use serde_json::Value;
use server_process::{Outcome, Response, ServerProcess};
use tokio::task::JoinSet;

/// Default of `QUORATE_ATTACKS`: hostile requests and handshakes.
const ATTACKS: usize = 1200;
const HOSTILE_CLIENTS: usize = 8;
/// Memory bound of the server: 64 MiB for large bodies, as much for small ones, two parsed objects
/// with their text, and 512 connections.
const MAX_MEMORY_MIB: u64 = 512;

fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

fn main() {
    if server_process::is_server() {
        return server_process::run();
    }
    // `cargo test -- --list` lists the tests of every target; this one has a single test.
    if std::env::args().any(|argument| argument == "--list") {
        return println!("webhook_abuse: test");
    }
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap().block_on(attack());
}

async fn attack() {
    let start = Instant::now();
    let seed = number("QUORATE_SEED").unwrap_or_default();
    let attacks = number("QUORATE_ATTACKS").unwrap_or(ATTACKS);
    let server = Arc::new(ServerProcess::start());
    let requests = Arc::new(legitimate_clients::requests());
    let expected = Arc::new(legitimate_clients::baseline(&server, &requests).await);
    let (_, baseline_memory) = server.memory();

    let done = Arc::new(AtomicBool::new(false));
    let mut legitimate = JoinSet::new();
    for keep_alive in [true, false] {
        let (requests, expected) = (Arc::clone(&requests), Arc::clone(&expected));
        legitimate.spawn(legitimate_clients::send_until_done(
            Arc::clone(&server),
            requests,
            expected,
            keep_alive,
            Arc::clone(&done),
        ));
    }
    let slow_clients = slow::SlowClients {
        server: Arc::clone(&server),
        done: Arc::clone(&done),
        connections: Arc::new(AtomicUsize::new(0)),
    };
    let slow = tokio::spawn(slow::run_all(slow_clients.clone()));
    let results = send_all(&server, attacks, u64::try_from(seed).unwrap()).await;
    done.store(true, Ordering::Release);
    slow.await.unwrap();
    let mut observed = Observed::default();
    while let Some(client) = legitimate.join_next().await {
        observed.add(client.unwrap());
    }

    let slow_connections = slow_clients.connections.load(Ordering::Relaxed);
    drop(slow_clients);
    println!(
        "hostile: {attacks} requests, {slow_connections} slow connections, {:?}",
        start.elapsed()
    );
    for (name, count) in &results.counts {
        println!("  {count:6} {name}");
    }
    assert_results(Arc::into_inner(server).unwrap(), &results, &observed, baseline_memory);
}

fn assert_results(
    server: ServerProcess,
    results: &Results,
    observed: &Observed,
    baseline_memory: u64,
) {
    let (peak, now) = server.memory();
    println!(
        "legitimate: {} responses, {} failures, p50 {:?}, p99 {:?}, max {:?}",
        observed.responses,
        observed.failures.len(),
        observed.percentile(500),
        observed.percentile(990),
        observed.percentile(1000)
    );
    println!("memory: {baseline_memory} MiB baseline, {peak} MiB peak, {now} MiB now");
    let metrics = server.metrics();
    for line in metrics.lines().filter(|line| line.starts_with("quorate_webhook_rejected_total")) {
        println!("  {line}");
    }
    let unexpected = &results.unexpected;
    assert!(unexpected.is_empty(), "{:#?}", &unexpected[..unexpected.len().min(20)]);
    assert!(
        observed.failures.is_empty(),
        "{:#?}",
        &observed.failures[..observed.failures.len().min(20)]
    );
    assert!(observed.responses > 0);
    assert_eq!(server.metric("quorate_webhook_rejected_total{reason=\"panicked\"}"), 0);
    for review_type in ["mutate", "validate", "convert"] {
        let name = format!(
            "quorate_webhook_requests_total{{type=\"{review_type}\",outcome=\"panicked\"}}"
        );
        assert_eq!(server.metric(&name), 0, "{name}");
    }
    assert!(server.metric("quorate_webhook_rejected_total{reason=\"evicted\"}") > 0);
    assert!(peak <= MAX_MEMORY_MIB, "{peak} MiB of {MAX_MEMORY_MIB}");
    server.stop();
}

/// Results of the hostile requests.
#[derive(Default)]
struct Results {
    counts: BTreeMap<String, usize>,
    /// Unexpected responses.
    unexpected: Vec<String>,
}

async fn send_all(server: &Arc<ServerProcess>, attacks: usize, seed: u64) -> Results {
    let results = Arc::new(Mutex::new(Results::default()));
    let remaining = Arc::new(AtomicUsize::new(attacks));
    let large: Vec<Request> =
        bodies::large().into_iter().chain(malformed_documents::large()).collect();
    let large = Arc::new(Mutex::new(large));
    let mut clients = JoinSet::new();
    for at in 0..HOSTILE_CLIENTS {
        let (server, results) = (Arc::clone(server), Arc::clone(&results));
        let (remaining, large) = (Arc::clone(&remaining), Arc::clone(&large));
        let mut rng = Rng::new(seed.wrapping_mul(1000).wrapping_add(u64::try_from(at).unwrap()));
        clients.spawn(async move {
            let from = 2 + u8::try_from(at).unwrap();
            // Two of them send the large requests first.
            while at < 2
                && let Some(request) = { large.lock().unwrap().pop() }
            {
                let result = send(&server, &request, from).await;
                record(&results, request.name, result);
            }
            while remaining
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| count.checked_sub(1))
                .is_ok()
            {
                if rng.below(10) == 0 {
                    let result = tls::handshake(&server, &mut rng, from).await;
                    record(&results, "hostile handshake", result);
                    continue;
                }
                let is_http = rng.below(2) == 0;
                let request = if is_http {
                    bodies::small(&mut rng)
                } else {
                    malformed_documents::small(&mut rng)
                };
                let result = send(&server, &request, from).await;
                record(&results, request.name, result);
            }
        });
    }
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    Arc::into_inner(results).unwrap().into_inner().unwrap()
}

fn record(results: &Mutex<Results>, name: &str, result: Result<(), String>) {
    let mut results = results.lock().unwrap();
    *results.counts.entry(name.to_owned()).or_default() += 1;
    if let Err(error) = result {
        results.unexpected.push(format!("{name}: {error}"));
    }
}

async fn send(server: &ServerProcess, request: &Request, from: u8) -> Result<(), String> {
    let mut client =
        server.connect(from).await.map_err(|error| format!("no connection: {error}"))?;
    let outcome = client.send(&request.bytes).await;
    let matches = match (&request.expected, &outcome) {
        (_, Outcome::NoResponse) | (Expected::Status(_) | Expected::Review(_), Outcome::Closed) => {
            false
        }
        (Expected::Status(statuses), Outcome::Response(response)) => {
            statuses.contains(&response.status)
        }
        (Expected::NoSuccess, Outcome::Response(response)) => response.status >= 400,
        (Expected::NoSuccess | Expected::Any, Outcome::Closed)
        | (Expected::Any, Outcome::Response(_)) => true,
        (Expected::Review(uid), Outcome::Response(response)) => is_review(response, uid.as_deref()),
    };
    let shortened = || format!("{outcome:?}").chars().take(300).collect::<String>();
    if matches {
        Ok(())
    } else {
        Err(format!("{:?} expected, got {}", request.expected, shortened()))
    }
}

/// An error status is a valid response. A success must be a review, with the uid of the request.
fn is_review(response: &Response, uid: Option<&str>) -> bool {
    if response.status != 200 {
        return response.status >= 400;
    }
    let Ok(review) = serde_json::from_slice::<Value>(&response.body) else {
        return false;
    };
    match (review.pointer("/response/uid").and_then(Value::as_str), uid) {
        (Some(echoed), Some(uid)) => echoed == uid,
        (Some(_), None) => true,
        (None, _) => false,
    }
}
