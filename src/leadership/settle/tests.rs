//! What a replica may conclude from the end of a write, one sentence each.

use std::time::Duration;

use jiff::Timestamp;

use super::*;
use crate::leadership::decide::Acquired;

const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
};
const CREATE: Step = Step::Create { acquired: Acquired::New };
const FAILED: [Outcome; 3] = [Outcome::Conflict, Outcome::Refused, Outcome::Gone];

fn at(second: u64) -> Moment {
    Moment::new(Duration::from_secs(second))
}

const fn take(begin: Begin) -> Step {
    let acquired = Acquired::New;
    Step::Take { begin, acquired }
}

/// A step that was begun at second 100 on the Lease called one.
fn begun(step: Step) -> Attempt {
    Attempt {
        step,
        uid: (step != CREATE).then(|| "one".to_owned()),
        acquired: Timestamp::UNIX_EPOCH,
        sent: at(100),
    }
}

fn written(uid: &str) -> Outcome {
    Outcome::Written { uid: uid.to_owned() }
}

fn holding(leads_from: u64, until: u64) -> Memory {
    let standing = Standing::Holding(Term {
        uid: "one".to_owned(),
        acquired: Timestamp::UNIX_EPOCH,
        leads_from: at(leads_from),
        until: at(until),
    });
    Memory { standing, ..Memory::default() }
}

/// Settles at second 103, three seconds after the step was begun.
fn settled(memory: Memory, step: Step, outcome: &Outcome) -> Memory {
    settle(memory, &begun(step), outcome, &TIMING, at(103))
}

fn term(memory: Memory) -> Term {
    match memory.standing {
        Standing::Holding(term) => term,
        other @ (Standing::Candidate | Standing::Unsure(_)) => panic!("{other:?}"),
    }
}

fn claim(memory: Memory) -> Claim {
    match memory.standing {
        Standing::Unsure(claim) => claim,
        other @ (Standing::Candidate | Standing::Holding(_)) => panic!("{other:?}"),
    }
}

#[test]
fn the_deadline_counts_from_before_the_write_was_sent() {
    let taken = term(settled(Memory::default(), take(Begin::AtOnce), &written("one")));
    assert_eq!((taken.leads_from, taken.until), (at(103), at(110)));
    let renewed = term(settled(holding(50, 105), Step::Renew, &written("one")));
    assert_eq!((renewed.leads_from, renewed.until), (at(50), at(110)));
}

#[test]
fn a_lease_that_is_new_is_held_for_its_whole_duration_before_its_holder_leads() {
    for step in [CREATE, take(Begin::OnProbation)] {
        let term = term(settled(Memory::default(), step, &written("one")));
        assert_eq!(term.leads_from, at(118));
        assert!(!term.leads_at(at(109)));
    }
}

#[test]
fn a_probation_lasts_as_long_as_the_holder_before_had_asked_for() {
    let memory = Memory { longest: Duration::from_mins(1), ..Memory::default() };
    for step in [CREATE, take(Begin::OnProbation)] {
        let term = term(settled(memory.clone(), step, &written("one")));
        assert_eq!(term.leads_from, at(163));
    }
}

#[test]
fn an_answer_that_comes_after_the_deadline_makes_no_leader() {
    let begun = begun(take(Begin::AtOnce));
    let late = settle(Memory::default(), &begun, &written("one"), &TIMING, at(111));
    assert!(!term(late).leads_at(at(111)));
}

#[test]
fn a_write_whose_end_is_unknown_makes_no_leader_but_is_remembered_with_its_lease() {
    for (step, begin, uid) in [
        (CREATE, Begin::OnProbation, None),
        (take(Begin::OnProbation), Begin::OnProbation, Some("one")),
        (take(Begin::AtOnce), Begin::AtOnce, Some("one")),
    ] {
        let claim = claim(settled(Memory::default(), step, &Outcome::Unknown));
        assert_eq!((claim.begin, claim.uid.as_deref()), (begin, uid));
    }
}

#[test]
fn a_second_attempt_that_fails_does_not_forget_that_the_first_may_have_landed() {
    for step in [CREATE, take(Begin::AtOnce)] {
        let unsure = settled(Memory::default(), step, &Outcome::Unknown);
        for outcome in FAILED {
            assert_eq!(settled(unsure.clone(), step, &outcome), unsure);
        }
    }
}

#[test]
fn what_was_written_into_another_lease_is_not_ours() {
    for (memory, step) in
        [(Memory::default(), take(Begin::AtOnce)), (holding(50, 105), Step::Renew)]
    {
        let memory = settled(memory, step, &written("two"));
        assert_eq!(memory.standing, Standing::Candidate);
    }
}

#[test]
fn a_renewal_that_found_no_lease_ends_the_term_and_any_other_failure_only_lets_it_run_out() {
    let gone = settled(holding(50, 105), Step::Renew, &Outcome::Gone);
    assert_eq!(gone, Memory::default());
    for outcome in [Outcome::Conflict, Outcome::Refused, Outcome::Unknown] {
        let memory = settled(holding(50, 105), Step::Renew, &outcome);
        assert_eq!(memory, holding(50, 105));
    }
}

#[test]
fn after_silence_the_lease_may_be_taken_up_again_but_not_after_it_was_lost() {
    let down = |may_resume| {
        let step = Step::StepDown { may_resume };
        settled(holding(50, 103), step, &Outcome::NothingToWrite)
    };
    assert_eq!(down(false), Memory::default());
    let claim = claim(down(true));
    assert_eq!(claim.begin, Begin::AtOnce);
    assert_eq!(claim.uid.as_deref(), Some("one"));
}

#[test]
fn a_probation_that_was_not_served_begins_anew() {
    let step = Step::StepDown { may_resume: true };
    let memory = settled(holding(110, 103), step, &Outcome::NothingToWrite);
    assert_eq!(claim(memory).begin, Begin::OnProbation);
}

#[test]
fn only_after_a_conflict_is_the_next_look_soon() {
    let soon = Memory::default().pause(&TIMING, true, at(0));
    assert!(soon < Duration::from_secs(1), "{soon:?}");
    let later = Memory::default().pause(&TIMING, false, at(0));
    assert_eq!(later, TIMING.retry_period);
}
