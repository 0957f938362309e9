//! Leader election with real processes and a minimal API server. The rules are tested by the model
//! test in `src/leader_election`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "support/api_server.rs"]
mod api_server;
#[path = "support/binary.rs"]
mod binary;

use std::time::{Duration, Instant};

use api_server::ApiServer;
use binary::Running;
use jiff::SignedDuration;

const LEASE_DURATION: SignedDuration = SignedDuration::from_secs(1);

fn is_ready(running: &Running) -> bool {
    running.get("/readyz").starts_with("HTTP/1.1 200")
}

/// Time from the first log line with `start` to the last one with `end`.
fn between(running: &Running, start: &str, end: &str) -> SignedDuration {
    let from = running.logged_at(start)[0];
    running.logged_at(end).last().unwrap().duration_since(from)
}

#[test]
fn second_replica_is_ready_and_leads_after_the_first_stops() {
    let api = ApiServer::start();
    let mut first = Running::start(api.port);
    first.until("the replica leads", Running::leads);
    assert_eq!(api.holder(), Some(first.identity()));

    let second = Running::start(api.port);
    second.until("the replica is ready", is_ready);
    assert!(!second.leads());

    first.signal("INT");
    assert_eq!(first.end().code(), Some(0));
    assert!(!first.log("lease released").is_empty());
    assert!(first.log("\"WARN\"").is_empty(), "{:?}", first.log("\"WARN\""));
    second.until("the replica leads", Running::leads);
    assert_eq!(api.holder(), Some(second.identity()));
    assert!(!second.log("\"Released\"").is_empty());
    assert!(second.get("/metrics").contains("quorate_leadership_changes_total 1\n"));
}

#[test]
fn the_lease_is_released_before_the_probe_port_closes() {
    let api = ApiServer::start();
    let mut leader = Running::timed(api.port, "10s", "8s", "200ms");
    leader.logs("\"Holding\"");
    api.stop_responding();
    leader.signal("TERM");
    leader.until("the replica is not ready and still alive", |running| {
        running.get("/readyz").contains("[-]running failed")
            && running.get("/livez").contains(" 200 ")
    });
    leader.logs("lease not released");
    assert_eq!(leader.end().code(), Some(0));
}

#[test]
fn leader_with_a_deleted_lease_stops_and_leads_again_after_probation() {
    let api = ApiServer::start();
    let leader = Running::start(api.port);
    leader.until("the replica leads", Running::leads);
    api.delete_lease();
    leader.logs("\"LeaseDeleted\"");
    leader.logs("no longer leads");
    leader.until("the replica leads again", |running| running.log("this replica leads").len() == 2);
    let waited = between(&leader, "\"LeaseDeleted\"", "this replica leads");
    assert!(waited >= LEASE_DURATION, "led again after {waited}");
    assert!(leader.get("/metrics").contains("quorate_leadership_changes_total 3\n"));
}

#[test]
fn lease_with_a_cleared_holder_is_acquired_on_probation() {
    let api = ApiServer::start();
    let leader = Running::start(api.port);
    leader.until("the replica leads", Running::leads);
    api.clear_holder();
    leader.logs("no longer leads");
    leader.logs("\"HolderCleared\"");
    leader.until("the replica leads again", |running| running.log("this replica leads").len() == 2);
    let waited = between(&leader, "no longer leads", "this replica leads");
    assert!(waited >= LEASE_DURATION, "led again after {waited}");
}

#[test]
fn leader_without_responses_stops_at_the_renew_deadline_and_stays_ready() {
    let api = ApiServer::start();
    let mut leader = Running::start(api.port);
    leader.until("the replica leads", Running::leads);
    api.stop_responding();
    leader.until("the replica stops leading", |running| !running.leads());
    leader.logs("\"RenewDeadlineExceeded\"");
    assert!(is_ready(&leader));
    assert!(leader.is_alive());
    // The replica still holds the Lease, so it continues without a second probation.
    api.recover();
    leader.logs("\"OwnWriteConfirmed\"");
    leader.until("the replica leads again", Running::leads);
    let waited = between(&leader, "\"OwnWriteConfirmed\"", "this replica leads");
    assert!(waited < LEASE_DURATION, "led again after {waited}");
}

#[test]
fn executed_write_with_an_error_response_is_sent_once_and_confirmed() {
    let api = ApiServer::start();
    api.write_then_504();
    let replica = Running::start(api.port);
    replica.logs("outcome of the lease write is unknown");
    replica.logs("\"OwnWriteConfirmed\"");
    replica.until("the replica leads", Running::leads);
    assert_eq!(api.attempts("POST").len(), 1, "the client retried the write");
}

#[test]
fn replica_without_write_permission_logs_once_and_respects_the_retry_period() {
    let api = ApiServer::start();
    api.forbid_writes();
    let retry = Duration::from_secs(1);
    let replica = Running::timed(api.port, "3s", "2400ms", "1s");
    replica.until("three attempts were made", |_| api.attempts("POST").len() >= 3);
    let attempts = api.attempts("POST");
    for pair in attempts.windows(2) {
        assert!(pair[1] - pair[0] >= retry, "retried after {:?}", pair[1] - pair[0]);
    }
    assert_eq!(replica.log("rejects writing the lease").len(), 1);
    let ready = replica.get("/readyz");
    assert!(ready.contains("[-]kubernetes-api failed: the API server rejects requests"), "{ready}");
    api.recover();
    replica.until("the replica is ready", is_ready);
}

#[test]
fn replica_without_read_permission_does_not_report_the_api_server_as_unreachable() {
    let api = ApiServer::start();
    api.forbid_all();
    let replica = Running::start(api.port);
    replica.logs("rejects reading the lease");
    replica.logs("\"LeaseForbidden\"");
    assert!(replica.log("cannot reach").is_empty());
    let ready = replica.get("/readyz");
    assert!(ready.contains("[-]kubernetes-api failed: the API server rejects requests"), "{ready}");
    assert!(api.attempts("POST").is_empty());
}

#[test]
fn second_signal_exits_immediately() {
    let api = ApiServer::start();
    // The release may wait 24 seconds for its read alone, and gets no response.
    let mut leader = Running::timed(api.port, "60s", "48s", "200ms");
    leader.logs("\"Holding\"");
    api.stop_responding();
    leader.signal("TERM");
    leader.logs("a second signal exits immediately");
    let second = Instant::now();
    leader.signal("TERM");
    assert_eq!(leader.end().code(), Some(130));
    let took = second.elapsed();
    assert!(took < Duration::from_secs(10), "took {took:?}");
}
