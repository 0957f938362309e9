//! The write of each step, and the release at shutdown.

use std::time::Duration;

use super::*;
use crate::leader_election::role::{Term, UnconfirmedWrite};
use crate::leader_election::state::{LeaseState, Timing};

const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
};
const LEASE_REF: LeaseRef<'_> = LeaseRef { namespace: "space", name: "lease" };

fn stamp(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn at(second: u64) -> MonotonicTime {
    MonotonicTime::new(Duration::from_secs(second))
}

/// The Lease with uid `one`, acquired by this replica at second 3.
fn ours() -> Lease {
    let holder =
        LeaseHolder { identity: "me", acquired: stamp(3), duration: TIMING.lease_duration };
    let mut lease = lease_object::created(LEASE_REF, &holder, stamp(3));
    lease.metadata.uid = Some("one".to_owned());
    lease
}

fn with_role(role: LeaseRole) -> ElectionState {
    ElectionState { role, ..ElectionState::default() }
}

fn uncertain(uid: Option<&str>, lead_from: LeadFrom) -> ElectionState {
    with_role(LeaseRole::Uncertain(UnconfirmedWrite {
        uid: uid.map(str::to_owned),
        acquired: stamp(3),
        lead_from,
    }))
}

fn holding(leads_from: u64) -> ElectionState {
    with_role(LeaseRole::Holder(Term {
        uid: "one".to_owned(),
        acquired: stamp(3),
        leads_from: at(leads_from),
        until: at(100),
    }))
}

fn prepared(
    election: &ElectionState,
    step: Step,
    lease: Option<&Lease>,
) -> (PendingWrite, Option<Write>) {
    let state = ObservedState {
        identity: "me",
        timing: &TIMING,
        now: at(9),
        lease_state: &LeaseState::NotFound,
        election,
    };
    prepare(&state, step, lease, LEASE_REF, (at(10), stamp(50)))
}

#[test]
fn acquire_time_is_now_unless_the_step_continues_an_acquisition() {
    let lead_from = LeadFrom::Now;
    let lease = ours();
    for (election, step, expected) in [
        (uncertain(None, lead_from), Acquired::Keep, 3),
        (uncertain(None, lead_from), Acquired::New, 50),
        (ElectionState::default(), Acquired::Keep, 50),
    ] {
        let create = Step::Create { acquired: step };
        let acquire = Step::Acquire { lead_from, acquired: step };
        assert_eq!(prepared(&election, create, None).0.acquired, stamp(expected));
        let (pending, _) = prepared(&election, acquire, Some(&lease));
        assert_eq!(pending.acquired, stamp(expected));
    }
    let (pending, _) = prepared(&holding(0), Step::Renew, Some(&lease));
    assert_eq!((pending.acquired, pending.sent), (stamp(3), at(10)));
    assert_eq!(pending.uid.as_deref(), Some("one"));
}

#[test]
fn wait_and_step_down_write_nothing_and_renew_needs_a_lease() {
    for step in [Step::Wait, Step::StepDown { may_resume: true }] {
        assert_eq!(prepared(&holding(0), step, Some(&ours())).1, None);
    }
    assert_eq!(prepared(&holding(0), Step::Renew, None).1, None);
}

#[test]
fn lease_is_released_only_by_the_process_that_acquired_it() {
    let released = |election: &ElectionState, lease: &Lease| {
        released_lease(election, "me", Some(lease), (at(10), stamp(50)))
    };
    let lease = ours();
    let mut foreign = ours();
    foreign.metadata.uid = Some("two".to_owned());
    for election in [holding(0), uncertain(Some("one"), LeadFrom::Now)] {
        let record = LeaseRecord::from_lease(&released(&election, &lease).unwrap());
        assert!(record.holder.is_none() && record.released);
        assert_eq!(released(&election, &foreign), None);
    }
    assert_eq!(released(&ElectionState::default(), &lease), None);
    let other = released_lease(&holding(0), "other", Some(&lease), (at(10), stamp(50)));
    assert_eq!(other, None);
}

#[test]
fn release_during_probation_puts_the_next_holder_on_probation() {
    for election in [holding(11), uncertain(None, LeadFrom::AfterProbation)] {
        let lease = released_lease(&election, "me", Some(&ours()), (at(10), stamp(50)));
        let record = LeaseRecord::from_lease(&lease.unwrap());
        assert!(record.holder.is_none() && !record.released);
    }
}
