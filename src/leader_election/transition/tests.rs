//! The election state after each outcome of a write.

use std::time::Duration;

use jiff::Timestamp;

use super::*;
use crate::leader_election::decide::Acquired;

const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
};
const CREATE: Step = Step::Create { acquired: Acquired::New };
const FAILED: [Outcome; 3] = [Outcome::Conflict, Outcome::Forbidden, Outcome::NotFound];

fn at(second: u64) -> MonotonicTime {
    MonotonicTime::new(Duration::from_secs(second))
}

const fn acquire(lead_from: LeadFrom) -> Step {
    let acquired = Acquired::New;
    Step::Acquire { lead_from, acquired }
}

/// A step that was sent at second 100 to the Lease with uid `one`.
fn pending(step: Step) -> PendingWrite {
    PendingWrite {
        step,
        uid: (step != CREATE).then(|| "one".to_owned()),
        acquired: Timestamp::UNIX_EPOCH,
        sent: at(100),
    }
}

fn written(uid: &str) -> Outcome {
    Outcome::Written { uid: uid.to_owned() }
}

fn holding(leads_from: u64, until: u64) -> ElectionState {
    let role = LeaseRole::Holder(Term {
        uid: "one".to_owned(),
        acquired: Timestamp::UNIX_EPOCH,
        leads_from: at(leads_from),
        until: at(until),
    });
    ElectionState { role, ..ElectionState::default() }
}

/// The write ends at second 103, three seconds after it was sent.
fn transitioned(election: ElectionState, step: Step, outcome: &Outcome) -> ElectionState {
    after_write(election, &pending(step), outcome, &TIMING, at(103))
}

fn term(election: ElectionState) -> Term {
    match election.role {
        LeaseRole::Holder(term) => term,
        other @ (LeaseRole::Follower | LeaseRole::Uncertain(_)) => panic!("{other:?}"),
    }
}

fn unconfirmed(election: ElectionState) -> UnconfirmedWrite {
    match election.role {
        LeaseRole::Uncertain(unconfirmed) => unconfirmed,
        other @ (LeaseRole::Follower | LeaseRole::Holder(_)) => panic!("{other:?}"),
    }
}

#[test]
fn renew_deadline_counts_from_before_the_write_was_sent() {
    let acquired =
        term(transitioned(ElectionState::default(), acquire(LeadFrom::Now), &written("one")));
    assert_eq!((acquired.leads_from, acquired.until), (at(103), at(110)));
    let renewed = term(transitioned(holding(50, 105), Step::Renew, &written("one")));
    assert_eq!((renewed.leads_from, renewed.until), (at(50), at(110)));
}

#[test]
fn new_lease_is_held_for_its_whole_duration_before_its_holder_leads() {
    for step in [CREATE, acquire(LeadFrom::AfterProbation)] {
        let term = term(transitioned(ElectionState::default(), step, &written("one")));
        assert_eq!(term.leads_from, at(118));
        assert!(!term.leads_at(at(109)));
    }
}

#[test]
fn probation_lasts_the_longest_lease_duration_of_an_earlier_holder() {
    let election = ElectionState { longest: Duration::from_mins(1), ..ElectionState::default() };
    for step in [CREATE, acquire(LeadFrom::AfterProbation)] {
        let term = term(transitioned(election.clone(), step, &written("one")));
        assert_eq!(term.leads_from, at(163));
    }
}

#[test]
fn response_after_the_renew_deadline_starts_no_lead() {
    let pending = pending(acquire(LeadFrom::Now));
    let late = after_write(ElectionState::default(), &pending, &written("one"), &TIMING, at(111));
    assert!(!term(late).leads_at(at(111)));
}

#[test]
fn write_with_unknown_outcome_starts_no_lead_and_stays_unconfirmed() {
    for (step, lead_from, uid) in [
        (CREATE, LeadFrom::AfterProbation, None),
        (acquire(LeadFrom::AfterProbation), LeadFrom::AfterProbation, Some("one")),
        (acquire(LeadFrom::Now), LeadFrom::Now, Some("one")),
    ] {
        let unconfirmed =
            unconfirmed(transitioned(ElectionState::default(), step, &Outcome::Unknown));
        assert_eq!((unconfirmed.lead_from, unconfirmed.uid.as_deref()), (lead_from, uid));
    }
}

#[test]
fn failed_retry_keeps_the_first_write_unconfirmed() {
    for step in [CREATE, acquire(LeadFrom::Now)] {
        let uncertain = transitioned(ElectionState::default(), step, &Outcome::Unknown);
        for outcome in FAILED {
            assert_eq!(transitioned(uncertain.clone(), step, &outcome), uncertain);
        }
    }
}

#[test]
fn write_to_another_lease_starts_no_term() {
    for (election, step) in
        [(ElectionState::default(), acquire(LeadFrom::Now)), (holding(50, 105), Step::Renew)]
    {
        let election = transitioned(election, step, &written("two"));
        assert_eq!(election.role, LeaseRole::Follower);
    }
}

#[test]
fn renewal_without_a_lease_ends_the_term_and_other_failures_keep_its_deadline() {
    let deleted = transitioned(holding(50, 105), Step::Renew, &Outcome::NotFound);
    assert_eq!(deleted, ElectionState::default());
    for outcome in [Outcome::Conflict, Outcome::Forbidden, Outcome::Unknown] {
        let election = transitioned(holding(50, 105), Step::Renew, &outcome);
        assert_eq!(election, holding(50, 105));
    }
}

#[test]
fn term_is_resumed_after_failed_reads_but_not_after_the_lease_was_lost() {
    let down = |may_resume| {
        let step = Step::StepDown { may_resume };
        transitioned(holding(50, 103), step, &Outcome::NoWrite)
    };
    assert_eq!(down(false), ElectionState::default());
    let unconfirmed = unconfirmed(down(true));
    assert_eq!(unconfirmed.lead_from, LeadFrom::Now);
    assert_eq!(unconfirmed.uid.as_deref(), Some("one"));
}

#[test]
fn incomplete_probation_starts_again() {
    let step = Step::StepDown { may_resume: true };
    let election = transitioned(holding(110, 103), step, &Outcome::NoWrite);
    assert_eq!(unconfirmed(election).lead_from, LeadFrom::AfterProbation);
}

#[test]
fn only_a_conflict_shortens_the_delay_before_the_next_read() {
    let conflict = ElectionState::default().retry_delay(&TIMING, true, at(0));
    assert!(conflict < Duration::from_secs(1), "{conflict:?}");
    let normal = ElectionState::default().retry_delay(&TIMING, false, at(0));
    assert_eq!(normal, TIMING.retry_period);
}
