//! The rules of the election, one by one.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::*;
use crate::api::monotonic::MonotonicTime;
use crate::leader_election::lease::{self as lease_object, LeaseHolder};
use crate::leader_election::state::{ElectionState, Timing};

const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
};
const LOST: Step = Step::StepDown { may_resume: false };

fn at(second: u64) -> MonotonicTime {
    MonotonicTime::new(Duration::from_secs(second))
}

fn stamp(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A Lease as a holder writes it.
fn lease(holder: &str, acquired: i64) -> Lease {
    let holder = LeaseHolder {
        identity: holder,
        acquired: stamp(acquired),
        duration: Duration::from_secs(15),
    };
    let metadata = ObjectMeta { uid: Some("one".to_owned()), ..ObjectMeta::default() };
    let spec = None;
    lease_object::held(&Lease { metadata, spec }, &holder, stamp(acquired))
}

fn held_by(holder: &str, acquired: i64) -> LeaseRecord {
    LeaseRecord::from_lease(&lease(holder, acquired))
}

fn found(record: LeaseRecord) -> LeaseState {
    LeaseState::Found(Box::new(record))
}

fn acquire(lead_from: LeadFrom, acquired: Acquired) -> Step {
    Step::Acquire { lead_from, acquired }
}

fn with_role(role: LeaseRole) -> ElectionState {
    ElectionState { role, ..ElectionState::default() }
}

fn term(until: u64) -> ElectionState {
    with_role(LeaseRole::Holder(Term {
        uid: "one".to_owned(),
        acquired: stamp(1),
        leads_from: at(0),
        until: at(until),
    }))
}

fn unconfirmed(uid: Option<&str>, lead_from: LeadFrom) -> ElectionState {
    with_role(LeaseRole::Uncertain(UnconfirmedWrite {
        uid: uid.map(str::to_owned),
        acquired: stamp(3),
        lead_from,
    }))
}

fn observed(election: ElectionState, lease_state: &LeaseState, second: u64) -> ElectionState {
    election.observe("me", lease_state, at(second))
}

/// Decides on `lease_state` read at `second` with the given election state.
fn decided(election: ElectionState, lease_state: &LeaseState, second: u64) -> (Step, Reason) {
    let election = observed(election, lease_state, second);
    let Plan { step, reason } = decide(&ObservedState {
        identity: "me",
        timing: &TIMING,
        now: at(second),
        lease_state,
        election: &election,
    });
    (step, reason)
}

#[test]
fn lease_held_by_another_replica_is_not_acquired() {
    let other = found(held_by("other", 1));
    let expected = (Step::Wait, Reason::HeldByAnother);
    assert_eq!(decided(ElectionState::default(), &other, 1000), expected);
    let election = observed(ElectionState::default(), &other, 100);
    assert_eq!(decided(election, &other, 114), expected);
}

#[test]
fn lease_is_acquired_after_its_whole_duration_without_renewal() {
    let other = found(held_by("other", 1));
    let election = observed(ElectionState::default(), &other, 100);
    let expected = (acquire(LeadFrom::Now, Acquired::New), Reason::HolderExpired);
    assert_eq!(decided(election, &other, 115), expected);
}

#[test]
fn renewal_restarts_the_expiry() {
    let election = observed(ElectionState::default(), &found(held_by("other", 1)), 100);
    let renewed = found(LeaseRecord { renewed: Some(stamp(2)), ..held_by("other", 1) });
    let expected = (Step::Wait, Reason::HeldByAnother);
    assert_eq!(decided(election, &renewed, 115), expected);
}

#[test]
fn longer_lease_duration_of_the_holder_is_respected() {
    let other =
        found(LeaseRecord { duration: Some(Duration::from_mins(1)), ..held_by("other", 1) });
    let election = observed(ElectionState::default(), &other, 0);
    let waits = (Step::Wait, Reason::HeldByAnother);
    assert_eq!(decided(election.clone(), &other, 59), waits);
    let expected = (acquire(LeadFrom::Now, Acquired::New), Reason::HolderExpired);
    assert_eq!(decided(election, &other, 60), expected);
}

#[test]
fn failed_read_neither_starts_nor_ends_a_lead() {
    for (failure, reason) in [
        (ReadFailure::NoResponse, Reason::LeaseUnreadable),
        (ReadFailure::Forbidden, Reason::LeaseForbidden),
    ] {
        let (unknown, waits) = (LeaseState::Unknown(failure), (Step::Wait, reason));
        assert_eq!(decided(ElectionState::default(), &unknown, 5), waits);
        assert_eq!(decided(term(10), &unknown, 9), waits);
        let election = observed(ElectionState::default(), &found(held_by("other", 1)), 0);
        assert_eq!(decided(election, &unknown, 60), waits);
    }
}

#[test]
fn leader_steps_down_at_the_renew_deadline_whatever_it_reads() {
    let unknown = LeaseState::Unknown(ReadFailure::NoResponse);
    let resume = Step::StepDown { may_resume: true };
    for lease_state in [unknown, LeaseState::NotFound, found(held_by("me", 1))] {
        let expected = (resume, Reason::RenewDeadlineExceeded);
        assert_eq!(decided(term(10), &lease_state, 10), expected);
    }
}

#[test]
fn leader_steps_down_at_once_when_its_lease_is_deleted_replaced_or_lost() {
    let replaced = LeaseRecord { uid: "two".to_owned(), ..held_by("me", 1) };
    let cleared = LeaseRecord { holder: None, ..held_by("me", 1) };
    for (lease_state, reason) in [
        (LeaseState::NotFound, Reason::LeaseDeleted),
        (found(replaced), Reason::LeaseReplaced),
        (found(held_by("other", 1)), Reason::HeldByAnother),
        (found(cleared), Reason::HeldByAnother),
    ] {
        assert_eq!(decided(term(10), &lease_state, 5), (LOST, reason));
    }
}

#[test]
fn leader_that_reads_its_own_record_renews_it() {
    let expected = (Step::Renew, Reason::Holding);
    assert_eq!(decided(term(10), &found(held_by("me", 1)), 5), expected);
}

#[test]
fn process_with_the_same_identity_counts_as_another_replica() {
    let other_process = found(held_by("me", 2));
    let (lost, waits) = ((LOST, Reason::HeldByAnother), Step::Wait);
    assert_eq!(decided(term(10), &other_process, 5), lost);
    let expected = (waits, Reason::HeldByAnother);
    assert_eq!(decided(ElectionState::default(), &other_process, 5), expected);
}

#[test]
fn only_a_lease_released_by_its_holder_is_acquired_without_probation() {
    let released = lease_object::released(&lease("other", 1), false, stamp(9));
    let on_probation = lease_object::released(&lease("other", 1), true, stamp(9));
    // The holder is cleared by hand while it still leads.
    let mut cleared = lease("other", 1);
    cleared.spec.as_mut().unwrap().holder_identity = Some(String::new());
    // The Lease is deleted, and a copy that had been released is restored.
    let mut restored = released.clone();
    restored.metadata.uid = Some("two".to_owned());
    for (lease, lead_from, reason) in [
        (released, LeadFrom::Now, Reason::Released),
        (on_probation, LeadFrom::AfterProbation, Reason::HolderCleared),
        (cleared, LeadFrom::AfterProbation, Reason::HolderCleared),
        (restored, LeadFrom::AfterProbation, Reason::HolderCleared),
        (Lease::default(), LeadFrom::AfterProbation, Reason::HolderCleared),
    ] {
        let expected = (acquire(lead_from, Acquired::New), reason);
        let lease_state = found(LeaseRecord::from_lease(&lease));
        assert_eq!(decided(ElectionState::default(), &lease_state, 5), expected);
    }
}

#[test]
fn missing_lease_is_created() {
    let create = |acquired| (Step::Create { acquired }, Reason::LeaseNotFound);
    let expected = create(Acquired::New);
    assert_eq!(decided(ElectionState::default(), &LeaseState::NotFound, 5), expected);
    // An earlier create may still be in flight: the same acquisition.
    let retried = unconfirmed(None, LeadFrom::AfterProbation);
    let expected = create(Acquired::Keep);
    assert_eq!(decided(retried, &LeaseState::NotFound, 5), expected);
    // A write to a deleted Lease can no longer succeed.
    let obsolete = unconfirmed(Some("one"), LeadFrom::Now);
    let expected = create(Acquired::New);
    assert_eq!(decided(obsolete, &LeaseState::NotFound, 5), expected);
}

#[test]
fn own_write_without_a_response_is_confirmed_by_the_next_read() {
    for lead_from in [LeadFrom::Now, LeadFrom::AfterProbation] {
        for uid in [Some("one"), None] {
            let expected = (acquire(lead_from, Acquired::Keep), Reason::OwnWriteConfirmed);
            let ours = found(held_by("me", 3));
            assert_eq!(decided(unconfirmed(uid, lead_from), &ours, 5), expected);
            let expected = (Step::Wait, Reason::HeldByAnother);
            let other = found(held_by("me", 4));
            assert_eq!(decided(unconfirmed(uid, lead_from), &other, 5), expected);
        }
    }
}

#[test]
fn unconfirmed_write_does_not_match_another_lease_of_the_same_name() {
    let foreign = found(LeaseRecord { uid: "two".to_owned(), ..held_by("me", 3) });
    let unconfirmed = unconfirmed(Some("one"), LeadFrom::Now);
    let expected = (Step::Wait, Reason::HeldByAnother);
    assert_eq!(decided(unconfirmed, &foreign, 5), expected);
}

#[test]
fn retried_acquisition_keeps_its_acquire_time() {
    let cleared = found(LeaseRecord { holder: None, ..held_by("other", 1) });
    let mut election = observed(ElectionState::default(), &cleared, 5);
    election.role = unconfirmed(Some("one"), LeadFrom::AfterProbation).role;
    let expected = (acquire(LeadFrom::AfterProbation, Acquired::Keep), Reason::HolderCleared);
    assert_eq!(decided(election, &cleared, 7), expected);
}

#[test]
fn longest_lease_duration_is_kept_until_release_or_own_lead() {
    let long_lease = LeaseRecord { duration: Some(Duration::from_mins(1)), ..held_by("other", 1) };
    let election = observed(ElectionState::default(), &found(long_lease), 0);
    let election = observed(election, &LeaseState::NotFound, 1);
    let election = observed(election, &found(held_by("third", 1)), 2);
    assert_eq!(election.longest, Duration::from_mins(1));
    let released = lease_object::released(&lease("third", 1), false, stamp(9));
    let after = observed(election.clone(), &found(LeaseRecord::from_lease(&released)), 3);
    assert_eq!(after.longest, Duration::ZERO);
    let leads = ElectionState { role: term(10).role, ..election };
    let after = observed(leads, &found(held_by("me", 1)), 3);
    assert_eq!(after.longest, Duration::from_secs(15));
}
