//! What a replica may conclude from the end of a write, one sentence each.

use std::time::Duration;

use super::*;

const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
};

fn at(second: u64) -> Moment {
    Moment::new(Duration::from_secs(second))
}

/// A step that was begun at second 100.
fn begun(step: Step, because: Because) -> Attempt {
    let plan = Plan { step, because };
    Attempt {
        plan,
        acquired: Timestamp::UNIX_EPOCH,
        sent: at(100),
    }
}

fn written() -> Outcome {
    Outcome::Written {
        uid: "one".to_owned(),
    }
}

fn holding(leads_from: u64, until: u64) -> Memory {
    let acquired = Timestamp::UNIX_EPOCH;
    let (leads_from, until) = (at(leads_from), at(until));
    let term = Term {
        uid: "one".to_owned(),
        acquired,
        leads_from,
        until,
    };
    Memory {
        term: Some(term),
        ..Memory::default()
    }
}

/// Settles at second 103, three seconds after the step was begun.
fn settled(memory: Memory, attempt: &Attempt, outcome: &Outcome) -> Memory {
    settle(memory, attempt, outcome, &TIMING, at(103))
}

#[test]
fn the_deadline_counts_from_before_the_write_was_sent() {
    let take = begun(Step::Take(Begin::AtOnce), Because::HolderSilent);
    let term = settled(Memory::default(), &take, &written()).term.unwrap();
    assert_eq!((term.leads_from, term.until), (at(103), at(110)));
    let renew = begun(Step::Renew, Because::Held);
    let term = settled(holding(50, 105), &renew, &written()).term.unwrap();
    assert_eq!((term.leads_from, term.until), (at(50), at(110)));
}

#[test]
fn a_lease_that_is_new_is_held_for_its_whole_duration_before_its_holder_leads() {
    for attempt in [
        begun(Step::Create, Because::Absent),
        begun(Step::Take(Begin::OnProbation), Because::Vacant),
    ] {
        let term = settled(Memory::default(), &attempt, &written())
            .term
            .unwrap();
        assert_eq!(term.leads_from, at(118));
        assert!(!term.leads_at(at(109)));
    }
}

#[test]
fn an_answer_that_comes_after_the_deadline_makes_no_leader() {
    let take = begun(Step::Take(Begin::AtOnce), Because::HolderSilent);
    let late = settle(Memory::default(), &take, &written(), &TIMING, at(111));
    assert!(!late.term.unwrap().leads_at(at(111)));
}

#[test]
fn a_write_whose_end_is_unknown_makes_no_leader_but_is_remembered() {
    for (step, begin) in [
        (Step::Create, Begin::OnProbation),
        (Step::Take(Begin::OnProbation), Begin::OnProbation),
        (Step::Take(Begin::AtOnce), Begin::AtOnce),
    ] {
        let memory = settled(
            Memory::default(),
            &begun(step, Because::Vacant),
            &Outcome::Unknown,
        );
        assert_eq!(memory.term, None);
        assert_eq!(memory.claim.map(|claim| claim.begin), Some(begin));
    }
}

#[test]
fn a_renewal_that_found_no_lease_ends_the_term_and_any_other_failure_only_lets_it_run_out() {
    let renew = begun(Step::Renew, Because::Held);
    assert_eq!(
        settled(holding(50, 105), &renew, &Outcome::Gone),
        Memory::default()
    );
    for outcome in [Outcome::Refused, Outcome::Unknown] {
        assert_eq!(
            settled(holding(50, 105), &renew, &outcome),
            holding(50, 105)
        );
    }
}

#[test]
fn after_silence_the_lease_may_be_taken_up_again_but_not_after_it_was_lost() {
    for because in [
        Because::LeaseGone,
        Because::LeaseReplaced,
        Because::HeldByAnother,
    ] {
        let memory = settled(
            holding(50, 103),
            &begun(Step::StepDown, because),
            &written(),
        );
        assert_eq!(memory, Memory::default());
    }
    let silence = begun(Step::StepDown, Because::DeadlinePassed);
    let memory = settled(holding(50, 103), &silence, &Outcome::NothingToWrite);
    assert_eq!(memory.term, None);
    assert_eq!(memory.claim.map(|claim| claim.begin), Some(Begin::AtOnce));
}

#[test]
fn a_probation_that_was_not_served_begins_anew() {
    let silence = begun(Step::StepDown, Because::DeadlinePassed);
    let memory = settled(holding(110, 103), &silence, &Outcome::NothingToWrite);
    assert_eq!(
        memory.claim.map(|claim| claim.begin),
        Some(Begin::OnProbation)
    );
}
