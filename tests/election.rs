//! Real processes and a small API server: the corridor of the election from end to end.
//! Comes in: the built program. Goes out: what the replicas of an installation live through. The
//! rules themselves are walked exhaustively in `src/leadership/walk.rs`.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "support/api_server.rs"]
mod api_server;
#[path = "support/program.rs"]
mod program;

use api_server::ApiServer;
use program::{Running, until};

#[test]
fn the_first_leads_the_second_waits_ready_and_follows_when_the_first_stops() {
    let api = ApiServer::start();
    let mut first = Running::start(api.port);
    until("the first leads", || first.leads());
    assert_eq!(api.holder(), Some(first.identity()));

    let second = Running::start(api.port);
    until("the second is ready", || {
        second.get("/readyz").starts_with("HTTP/1.1 200")
    });
    assert!(!second.leads());

    first.signal("INT");
    assert_eq!(first.end().code(), Some(0));
    assert!(!first.log("lease released").is_empty());
    until("the second leads", || second.leads());
    assert_eq!(api.holder(), Some(second.identity()));
    assert!(
        second
            .get("/metrics")
            .contains("quorate_lease_transitions_total 1\n")
    );
}

#[test]
fn a_leader_whose_lease_is_deleted_stops_and_leads_again_only_after_probation() {
    let api = ApiServer::start();
    let leader = Running::start(api.port);
    until("it leads", || leader.leads());
    api.delete_lease();
    leader.logs("\"LeaseGone\"");
    leader.logs("no longer leads");
    until("it leads again", || leader.leads());
    assert!(
        leader
            .get("/metrics")
            .contains("quorate_lease_transitions_total 3\n")
    );
}

#[test]
fn a_leader_that_hears_nothing_stops_by_itself_and_stays_ready() {
    let api = ApiServer::start();
    let mut leader = Running::start(api.port);
    until("it leads", || leader.leads());
    api.fall_silent();
    until("it stops leading", || !leader.leads());
    leader.logs("\"DeadlinePassed\"");
    assert!(leader.get("/readyz").starts_with("HTTP/1.1 200"));
    assert!(leader.is_alive());
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let api = ApiServer::start();
    let mut leader = Running::start(api.port);
    until("it leads", || leader.leads());
    api.fall_silent();
    leader.signal("TERM");
    leader.logs("a second signal ends the process at once");
    leader.signal("TERM");
    let code = leader.end().code();
    // The orderly end may have been faster than the second signal.
    assert!(
        code == Some(130) || !leader.log("lease left to expire").is_empty(),
        "{code:?}"
    );
}
