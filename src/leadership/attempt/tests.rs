//! Which write a step becomes, and what a replica leaves behind, one sentence each.

use std::time::Duration;

use super::*;
use crate::leadership::seen::{Reading, Timing};
use crate::leadership::standing::{Claim, Term};

const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
};
const PLACE: Place<'_> = Place { namespace: "space", name: "lease" };

fn stamp(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn at(second: u64) -> Moment {
    Moment::new(Duration::from_secs(second))
}

/// The Lease called one, taken by us at second 3.
fn ours() -> Lease {
    let holder = Holder { identity: "me", acquired: stamp(3), duration: TIMING.lease_duration };
    let mut lease = render::created(PLACE, &holder, stamp(3));
    lease.metadata.uid = Some("one".to_owned());
    lease
}

fn remembers(standing: Standing) -> Memory {
    Memory { standing, ..Memory::default() }
}

fn unsure(uid: Option<&str>, begin: Begin) -> Memory {
    remembers(Standing::Unsure(Claim { uid: uid.map(str::to_owned), acquired: stamp(3), begin }))
}

fn holding(leads_from: u64) -> Memory {
    remembers(Standing::Holding(Term {
        uid: "one".to_owned(),
        acquired: stamp(3),
        leads_from: at(leads_from),
        until: at(100),
    }))
}

fn prepared(memory: &Memory, step: Step, lease: Option<&Lease>) -> (Attempt, Option<Write>) {
    let seen =
        Seen { identity: "me", timing: &TIMING, now: at(9), reading: &Reading::Absent, memory };
    prepare(&seen, step, lease, PLACE, (at(10), stamp(50)))
}

#[test]
fn the_time_of_taking_is_the_present_unless_the_taking_goes_on() {
    let begin = Begin::AtOnce;
    let lease = ours();
    for (memory, step, expected) in [
        (unsure(None, begin), Acquired::Keep, 3),
        (unsure(None, begin), Acquired::New, 50),
        (Memory::default(), Acquired::Keep, 50),
    ] {
        let create = Step::Create { acquired: step };
        let take = Step::Take { begin, acquired: step };
        assert_eq!(prepared(&memory, create, None).0.acquired, stamp(expected));
        let (attempt, _) = prepared(&memory, take, Some(&lease));
        assert_eq!(attempt.acquired, stamp(expected));
    }
    let (attempt, _) = prepared(&holding(0), Step::Renew, Some(&lease));
    assert_eq!((attempt.acquired, attempt.sent), (stamp(3), at(10)));
    assert_eq!(attempt.uid.as_deref(), Some("one"));
}

#[test]
fn a_step_that_writes_nothing_has_no_write_and_a_taking_needs_a_lease() {
    for step in [Step::Wait, Step::StepDown { may_resume: true }] {
        assert_eq!(prepared(&holding(0), step, Some(&ours())).1, None);
    }
    assert_eq!(prepared(&holding(0), Step::Renew, None).1, None);
}

#[test]
fn a_lease_is_let_go_only_by_the_process_that_took_it() {
    let left =
        |memory: &Memory, lease: &Lease| farewell(memory, "me", Some(lease), (at(10), stamp(50)));
    let lease = ours();
    let mut foreign = ours();
    foreign.metadata.uid = Some("two".to_owned());
    for memory in [holding(0), unsure(Some("one"), Begin::AtOnce)] {
        let free = Record::of(&left(&memory, &lease).unwrap());
        assert!(free.holder.is_none() && free.released);
        assert_eq!(left(&memory, &foreign), None);
    }
    assert_eq!(left(&Memory::default(), &lease), None);
    let other = farewell(&holding(0), "other", Some(&lease), (at(10), stamp(50)));
    assert_eq!(other, None);
}

#[test]
fn who_stops_on_probation_passes_the_probation_on() {
    for memory in [holding(11), unsure(None, Begin::OnProbation)] {
        let free = farewell(&memory, "me", Some(&ours()), (at(10), stamp(50)));
        let free = Record::of(&free.unwrap());
        assert!(free.holder.is_none() && !free.released);
    }
}
