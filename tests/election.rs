//! Real processes and a small API server: the corridor of the election from end to end.
//! Comes in: the built program. Goes out: what the replicas of an installation live through. The
//! rules themselves are walked through many made-up worlds in `src/leadership/walk.rs`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "support/api_server.rs"]
mod api_server;
#[path = "support/program.rs"]
mod program;

use std::time::{Duration, Instant};

use api_server::ApiServer;
use jiff::SignedDuration;
use program::Running;

const LEASE_DURATION: SignedDuration = SignedDuration::from_secs(1);

fn is_ready(running: &Running) -> bool {
    running.get("/readyz").starts_with("HTTP/1.1 200")
}

/// How long it took from when the log first said `one` until it last said `other`.
fn between(running: &Running, one: &str, other: &str) -> SignedDuration {
    let from = running.logged_at(one)[0];
    running.logged_at(other).last().unwrap().duration_since(from)
}

#[test]
fn the_first_leads_the_second_waits_ready_and_follows_when_the_first_stops() {
    let api = ApiServer::start();
    let mut first = Running::start(api.port);
    first.until("it leads", Running::leads);
    assert_eq!(api.holder(), Some(first.identity()));

    let second = Running::start(api.port);
    second.until("it is ready", is_ready);
    assert!(!second.leads());

    first.signal("INT");
    assert_eq!(first.end().code(), Some(0));
    assert!(!first.log("lease released").is_empty());
    assert!(first.log("\"WARN\"").is_empty(), "{:?}", first.log("\"WARN\""));
    second.until("it leads", Running::leads);
    assert_eq!(api.holder(), Some(second.identity()));
    assert!(!second.log("\"Released\"").is_empty());
    assert!(second.get("/metrics").contains("quorate_leadership_changes_total 1\n"));
}

#[test]
fn the_lease_is_released_before_the_probe_port_closes() {
    let api = ApiServer::start();
    let mut leader = Running::timed(api.port, "10s", "8s", "200ms");
    leader.logs("\"Held\"");
    api.fall_silent();
    leader.signal("TERM");
    leader.until("it is no longer ready and still alive", |it| {
        it.get("/readyz").contains("[-]running failed") && it.get("/livez").contains(" 200 ")
    });
    leader.logs("lease not released");
    assert_eq!(leader.end().code(), Some(0));
}

#[test]
fn a_leader_whose_lease_is_deleted_stops_and_leads_again_only_after_probation() {
    let api = ApiServer::start();
    let leader = Running::start(api.port);
    leader.until("it leads", Running::leads);
    api.delete_lease();
    leader.logs("\"LeaseDeleted\"");
    leader.logs("no longer leads");
    leader.until("it leads again", |it| it.log("this replica leads").len() == 2);
    let waited = between(&leader, "\"LeaseDeleted\"", "this replica leads");
    assert!(waited >= LEASE_DURATION, "it led again after {waited}");
    assert!(leader.get("/metrics").contains("quorate_leadership_changes_total 3\n"));
}

#[test]
fn a_lease_whose_holder_was_emptied_by_hand_is_held_on_probation() {
    let api = ApiServer::start();
    let leader = Running::start(api.port);
    leader.until("it leads", Running::leads);
    api.empty_the_holder();
    leader.logs("no longer leads");
    leader.logs("\"Emptied\"");
    leader.until("it leads again", |it| it.log("this replica leads").len() == 2);
    let waited = between(&leader, "no longer leads", "this replica leads");
    assert!(waited >= LEASE_DURATION, "it led again after {waited}");
}

#[test]
fn a_leader_that_hears_nothing_stops_by_itself_and_stays_ready() {
    let api = ApiServer::start();
    let mut leader = Running::start(api.port);
    leader.until("it leads", Running::leads);
    api.fall_silent();
    leader.until("it stops leading", |it| !it.leads());
    leader.logs("\"RenewDeadlineExceeded\"");
    assert!(is_ready(&leader));
    assert!(leader.is_alive());
    // The Lease is still its own, so it goes on without a second probation.
    api.be_well();
    leader.logs("\"OwnWriteConfirmed\"");
    leader.until("it leads again", Running::leads);
    let waited = between(&leader, "\"OwnWriteConfirmed\"", "this replica leads");
    assert!(waited < LEASE_DURATION, "it led again after {waited}");
}

#[test]
fn a_write_that_was_done_though_the_answer_says_otherwise_is_sent_once_and_taken_up() {
    let api = ApiServer::start();
    api.write_then_504();
    let replica = Running::start(api.port);
    replica.logs("it is not known whether the lease was written");
    replica.logs("\"OwnWriteConfirmed\"");
    replica.until("it leads", Running::leads);
    assert_eq!(api.tried("POST").len(), 1, "the client sent the write again by itself");
}

#[test]
fn a_replica_that_may_not_write_says_so_once_and_does_not_hammer_the_api_server() {
    let api = ApiServer::start();
    api.forbid_writes();
    let retry = Duration::from_secs(1);
    let replica = Running::timed(api.port, "3s", "2400ms", "1s");
    replica.until("it has tried three times", |_| api.tried("POST").len() >= 3);
    let tried = api.tried("POST");
    for pair in tried.windows(2) {
        assert!(pair[1] - pair[0] >= retry, "tried again after {:?}", pair[1] - pair[0]);
    }
    assert_eq!(replica.log("refuses to write the lease").len(), 1);
    let ready = replica.get("/readyz");
    assert!(ready.contains("[-]kubernetes-api failed: the API server rejects requests"), "{ready}");
    api.be_well();
    replica.until("it is ready", is_ready);
}

#[test]
fn a_replica_that_may_not_read_does_not_say_that_the_api_server_is_away() {
    let api = ApiServer::start();
    api.forbid_all();
    let replica = Running::start(api.port);
    replica.logs("refuses to show the lease");
    replica.logs("\"ReadRefused\"");
    assert!(replica.log("cannot reach").is_empty());
    let ready = replica.get("/readyz");
    assert!(ready.contains("[-]kubernetes-api failed: the API server rejects requests"), "{ready}");
    assert!(api.tried("POST").is_empty());
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let api = ApiServer::start();
    // The release may take 24 seconds for its look alone, and gets no answer.
    let mut leader = Running::timed(api.port, "60s", "48s", "200ms");
    leader.logs("\"Held\"");
    api.fall_silent();
    leader.signal("TERM");
    leader.logs("a second signal ends the process at once");
    let second = Instant::now();
    leader.signal("TERM");
    assert_eq!(leader.end().code(), Some(130));
    let took = second.elapsed();
    assert!(took < Duration::from_secs(10), "it took {took:?}");
}
