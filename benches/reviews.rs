//! The cost of one review: allocations and their bytes, which are the same on every machine, and
//! the time, which is not. `make bench` prints the table; `make bench-check` compares it with
//! `benches/reviews.md` and fails when a review allocates a tenth more than is recorded; `make
//! bench-record` records it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a bench fails by panicking, and prints"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use quorate::api::convert::convert;
use quorate::api::kinds;
use quorate::webhook::handler::{Outcome, ReviewType, handle};
use serde_json::{Value, json};

/// The present time of all reviews, from which schedules derive their next run.
const NOW: &str = "2026-11-16T06:00:00Z";
/// How long each review is repeated to measure its time.
const MEASURE_INTERVAL: Duration = Duration::from_millis(300);
/// The tolerated fraction, as a divisor: a new release of a library may allocate slightly more.
const TOLERANCE_DIVISOR: u64 = 10;

struct Review {
    name: &'static str,
    kind: ReviewType,
    body: Vec<u8>,
    outcome: Outcome,
}

struct Cost {
    bytes: usize,
    allocations: u64,
    allocated: u64,
    time: Duration,
}

fn main() {
    let mode = std::env::args().find(|arg| ["--check", "--record"].contains(&arg.as_str()));
    let measured: Vec<(Review, Cost)> = reviews().into_iter().map(measure).collect();
    let table = table(&measured);
    print!("{table}");
    match mode.as_deref() {
        Some("--record") => std::fs::write(record(), page(&table)).unwrap(),
        Some(_) => check(&measured),
        None => {}
    }
}

fn record() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/reviews.md")
}

fn sample(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/samples").join(file);
    let mut object: Value =
        serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    object["metadata"]["namespace"] = json!("default");
    object["metadata"]["uid"] = json!("0f7d9a5e-2f2c-4c1e-9f39-1f4bd1a3a001");
    object
}

fn hub(object: &Value) -> Value {
    let kind = kinds::by_name(object["kind"].as_str().unwrap()).unwrap();
    convert(object.clone(), &kind.api_version(kind.hub())).unwrap()
}

fn with_defaults(object: &Value) -> Value {
    kinds::by_name(object["kind"].as_str().unwrap()).unwrap().with_defaults(object, None)
}

fn admission(operation: &str, version: &str, new: &Value, old: &Value) -> Vec<u8> {
    let group = "etcd.appdelivery.cncf.io";
    let of = |version: &str| json!({"group": group, "version": version, "kind": "EtcdCluster"});
    let at =
        |version: &str| json!({"group": group, "version": version, "resource": "etcdclusters"});
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": of("v1"), "resource": at("v1"),
            "requestKind": of(version), "requestResource": at(version),
            "name": new["metadata"]["name"], "namespace": "default", "operation": operation,
            "userInfo": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
            "object": new, "oldObject": old, "dryRun": false,
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
        },
    });
    review.to_string().into_bytes()
}

fn conversion(objects: &[Value], desired: &str) -> Vec<u8> {
    let review = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "desiredAPIVersion": format!("etcd.appdelivery.cncf.io/{desired}"), "objects": objects,
        },
    });
    review.to_string().into_bytes()
}

fn reviews() -> Vec<Review> {
    admissions().into_iter().chain(conversions()).collect()
}

fn admissions() -> Vec<Review> {
    use ReviewType::{Mutate, Validate};
    let small = sample("quickstart/etcdcluster.yaml");
    let large = with_defaults(&sample("production/placement.yaml"));
    let complete = with_defaults(&small);
    let mut scaled = complete.clone();
    scaled["spec"]["replicas"] = json!(5);
    let mut invalid = small.clone();
    invalid["spec"]["replicas"] = json!(9);
    let mut edited = sample("compat/etcdcluster-v1alpha1.yaml");
    let old = with_defaults(&hub(&edited));
    edited["spec"]["size"] = json!(5);
    let create = |object: &Value| admission("CREATE", "v1", object, &Value::Null);
    let update = |new: &Value, old: &Value| admission("UPDATE", "v1", new, old);
    let spoke_update = admission("UPDATE", "v1alpha1", &hub(&edited), &old);
    [
        ("validate a new small object", Validate, create(&complete), Outcome::Allowed),
        ("validate a new large object", Validate, create(&large), Outcome::Allowed),
        ("validate a change", Validate, update(&scaled, &complete), Outcome::Allowed),
        ("validate an unchanged object", Validate, update(&complete, &complete), Outcome::Allowed),
        ("deny a new object", Mutate, create(&invalid), Outcome::Denied),
        ("default a new small object", Mutate, create(&small), Outcome::Patched),
        ("default a complete object", Mutate, create(&complete), Outcome::Allowed),
        ("update through v1alpha1", Mutate, spoke_update, Outcome::Patched),
    ]
    .map(review)
    .into()
}

fn conversions() -> Vec<Review> {
    let alpha = sample("compat/etcdcluster-v1alpha1.yaml");
    let hub = hub(&alpha);
    let of = |objects: &[Value], desired| conversion(objects, desired);
    [
        ("convert one to v1", of(std::slice::from_ref(&alpha), "v1")),
        ("convert one from v1", of(std::slice::from_ref(&hub), "v1alpha1")),
        ("convert a thousand to v1", of(&vec![alpha; 1000], "v1")),
    ]
    .map(|(name, body)| review((name, ReviewType::Convert, body, Outcome::Converted)))
    .into()
}

fn review((name, kind, body, outcome): (&'static str, ReviewType, Vec<u8>, Outcome)) -> Review {
    Review { name, kind, body, outcome }
}

fn measure(review: Review) -> (Review, Cost) {
    let now: Timestamp = NOW.parse().unwrap();
    let run = || black_box(handle(review.kind, black_box(&review.body), now));
    // The first run initializes what all reviews share, which is not a cost of this one.
    let reply = run();
    let body: String = String::from_utf8_lossy(&reply.body).chars().take(300).collect();
    assert_eq!(reply.outcome, review.outcome, "{}: {body}", review.name);
    let counted = allocation_counter::measure(|| drop(run()));
    let (started, mut times) = (Instant::now(), 0_u32);
    while started.elapsed() < MEASURE_INTERVAL {
        drop(run());
        times = times.saturating_add(1);
    }
    let cost = Cost {
        bytes: review.body.len(),
        allocations: counted.count_total,
        allocated: counted.bytes_total,
        time: started.elapsed().checked_div(times).unwrap_or_default(),
    };
    (review, cost)
}

fn table(measured: &[(Review, Cost)]) -> String {
    let mut text = String::from(
        "| Review | Bytes in | Allocations | Bytes allocated | Time (of one run) |\n| --- | --- | --- | --- | --- |\n",
    );
    for (review, cost) in measured {
        let Cost { bytes, allocations, allocated, time } = cost;
        writeln!(text, "| {} | {bytes} | {allocations} | {allocated} | {time:.1?} |", review.name)
            .unwrap();
    }
    text
}

fn page(table: &str) -> String {
    format!(
        "# The cost of a review\n\nRecorded by `make bench-record`. Allocations are compared by `make bench-check`; the time is of the\n\
         machine that recorded it.\n\n{table}"
    )
}

fn check(measured: &[(Review, Cost)]) {
    let recorded = std::fs::read_to_string(record()).unwrap_or_default();
    let rows = recorded.lines().filter(|line| line.starts_with("| ")).skip(2);
    let cells = rows.map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let recorded: BTreeMap<&str, u64> =
        cells.filter_map(|row| Some((*row.get(1)?, row.get(3)?.parse().ok()?))).collect();
    for (review, cost) in measured {
        let Some(before) = recorded.get(review.name) else {
            panic!("{} is not recorded; run `make bench-record`", review.name);
        };
        let max = before.saturating_add(before.div_euclid(TOLERANCE_DIVISOR));
        assert!(
            cost.allocations <= max,
            "{}: {} allocations, {before} are recorded; if that is intended, run `make bench-record`",
            review.name,
            cost.allocations
        );
    }
}
