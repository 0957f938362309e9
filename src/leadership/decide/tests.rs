//! The rules of the election, one sentence each.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::*;
use crate::api::moment::Moment;
use crate::leadership::render::{self, Holder};
use crate::leadership::seen::{Memory, Timing};

const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
};
const LOST: Step = Step::StepDown { may_resume: false };

fn at(second: u64) -> Moment {
    Moment::new(Duration::from_secs(second))
}

fn stamp(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A Lease as `render` writes it.
fn lease(holder: &str, acquired: i64) -> Lease {
    let holder =
        Holder { identity: holder, acquired: stamp(acquired), duration: Duration::from_secs(15) };
    let metadata = ObjectMeta { uid: Some("one".to_owned()), ..ObjectMeta::default() };
    let spec = None;
    render::held(&Lease { metadata, spec }, &holder, stamp(acquired))
}

fn held_by(holder: &str, acquired: i64) -> Record {
    Record::of(&lease(holder, acquired))
}

fn found(record: Record) -> Reading {
    Reading::Found(Box::new(record))
}

fn take(begin: Begin, acquired: Acquired) -> Step {
    Step::Take { begin, acquired }
}

fn remembers(standing: Standing) -> Memory {
    Memory { standing, ..Memory::default() }
}

fn term(until: u64) -> Memory {
    remembers(Standing::Holding(Term {
        uid: "one".to_owned(),
        acquired: stamp(1),
        leads_from: at(0),
        until: at(until),
    }))
}

fn claim(uid: Option<&str>, begin: Begin) -> Memory {
    remembers(Standing::Unsure(Claim { uid: uid.map(str::to_owned), acquired: stamp(3), begin }))
}

fn looked(memory: Memory, reading: &Reading, second: u64) -> Memory {
    memory.look("me", reading, at(second))
}

/// Looks at `reading` at `second` with what is remembered, and decides.
fn decided(memory: Memory, reading: &Reading, second: u64) -> (Step, Because) {
    let memory = looked(memory, reading, second);
    let Plan { step, because } = decide(&Seen {
        identity: "me",
        timing: &TIMING,
        now: at(second),
        reading,
        memory: &memory,
    });
    (step, because)
}

#[test]
fn a_lease_held_by_another_is_left_alone() {
    let other = found(held_by("other", 1));
    let expected = (Step::Wait, Because::HeldByAnother);
    assert_eq!(decided(Memory::default(), &other, 1000), expected);
    let memory = looked(Memory::default(), &other, 100);
    assert_eq!(decided(memory, &other, 114), expected);
}

#[test]
fn a_holder_that_is_silent_for_the_whole_duration_is_followed() {
    let other = found(held_by("other", 1));
    let memory = looked(Memory::default(), &other, 100);
    let expected = (take(Begin::AtOnce, Acquired::New), Because::HolderSilent);
    assert_eq!(decided(memory, &other, 115), expected);
}

#[test]
fn a_renewal_starts_the_count_anew() {
    let memory = looked(Memory::default(), &found(held_by("other", 1)), 100);
    let renewed = found(Record { renewed: Some(stamp(2)), ..held_by("other", 1) });
    let expected = (Step::Wait, Because::HeldByAnother);
    assert_eq!(decided(memory, &renewed, 115), expected);
}

#[test]
fn a_holder_that_asks_for_longer_is_left_alone_for_longer() {
    let other = found(Record { duration: Some(Duration::from_mins(1)), ..held_by("other", 1) });
    let memory = looked(Memory::default(), &other, 0);
    let waits = (Step::Wait, Because::HeldByAnother);
    assert_eq!(decided(memory.clone(), &other, 59), waits);
    let expected = (take(Begin::AtOnce, Acquired::New), Because::HolderSilent);
    assert_eq!(decided(memory, &other, 60), expected);
}

#[test]
fn an_answer_that_did_not_come_neither_makes_nor_ends_a_leader() {
    for (why, because) in
        [(Unread::Unanswered, Because::Unreadable), (Unread::Refused, Because::ReadRefused)]
    {
        let (unknown, waits) = (Reading::Unknown(why), (Step::Wait, because));
        assert_eq!(decided(Memory::default(), &unknown, 5), waits);
        assert_eq!(decided(term(10), &unknown, 9), waits);
        let memory = looked(Memory::default(), &found(held_by("other", 1)), 0);
        assert_eq!(decided(memory, &unknown, 60), waits);
    }
}

#[test]
fn a_leader_that_could_not_renew_stops_at_its_deadline_whatever_it_reads() {
    let unknown = Reading::Unknown(Unread::Unanswered);
    let resume = Step::StepDown { may_resume: true };
    for reading in [unknown, Reading::Absent, found(held_by("me", 1))] {
        let expected = (resume, Because::DeadlinePassed);
        assert_eq!(decided(term(10), &reading, 10), expected);
    }
}

#[test]
fn a_leader_whose_lease_is_gone_replaced_or_anothers_stops_at_once() {
    let replaced = Record { uid: "two".to_owned(), ..held_by("me", 1) };
    let emptied = Record { holder: None, ..held_by("me", 1) };
    for (reading, because) in [
        (Reading::Absent, Because::LeaseGone),
        (found(replaced), Because::LeaseReplaced),
        (found(held_by("other", 1)), Because::HeldByAnother),
        (found(emptied), Because::HeldByAnother),
    ] {
        assert_eq!(decided(term(10), &reading, 5), (LOST, because));
    }
}

#[test]
fn a_leader_that_finds_its_own_record_renews_it() {
    let expected = (Step::Renew, Because::Held);
    assert_eq!(decided(term(10), &found(held_by("me", 1)), 5), expected);
}

#[test]
fn a_process_of_the_same_name_is_another() {
    let twin = found(held_by("me", 2));
    let (lost, waits) = ((LOST, Because::HeldByAnother), Step::Wait);
    assert_eq!(decided(term(10), &twin, 5), lost);
    let expected = (waits, Because::HeldByAnother);
    assert_eq!(decided(Memory::default(), &twin, 5), expected);
}

#[test]
fn only_a_lease_that_its_holder_released_is_taken_at_once() {
    let released = render::released(&lease("other", 1), false, stamp(9));
    let on_probation = render::released(&lease("other", 1), true, stamp(9));
    // Someone empties the field of a holder that leads on.
    let mut emptied = lease("other", 1);
    emptied.spec.as_mut().unwrap().holder_identity = Some(String::new());
    // Someone deletes the Lease and restores a copy that had been released.
    let mut restored = released.clone();
    restored.metadata.uid = Some("two".to_owned());
    for (lease, begin, because) in [
        (released, Begin::AtOnce, Because::Released),
        (on_probation, Begin::OnProbation, Because::Emptied),
        (emptied, Begin::OnProbation, Because::Emptied),
        (restored, Begin::OnProbation, Because::Emptied),
        (Lease::default(), Begin::OnProbation, Because::Emptied),
    ] {
        let expected = (take(begin, Acquired::New), because);
        let reading = found(Record::of(&lease));
        assert_eq!(decided(Memory::default(), &reading, 5), expected);
    }
}

#[test]
fn a_lease_that_is_not_there_is_created() {
    let create = |acquired| (Step::Create { acquired }, Because::Absent);
    let expected = create(Acquired::New);
    assert_eq!(decided(Memory::default(), &Reading::Absent, 5), expected);
    // Tried before, and perhaps still on its way: the same taking.
    let tried = claim(None, Begin::OnProbation);
    let expected = create(Acquired::Keep);
    assert_eq!(decided(tried, &Reading::Absent, 5), expected);
    // A write to a Lease that is gone will never land.
    let dead = claim(Some("one"), Begin::AtOnce);
    let expected = create(Acquired::New);
    assert_eq!(decided(dead, &Reading::Absent, 5), expected);
}

#[test]
fn a_write_of_ours_that_landed_unheard_is_taken_up_as_it_was_meant() {
    for begin in [Begin::AtOnce, Begin::OnProbation] {
        for uid in [Some("one"), None] {
            let expected = (take(begin, Acquired::Keep), Because::OwnWriteLanded);
            let ours = found(held_by("me", 3));
            assert_eq!(decided(claim(uid, begin), &ours, 5), expected);
            let expected = (Step::Wait, Because::HeldByAnother);
            let twins = found(held_by("me", 4));
            assert_eq!(decided(claim(uid, begin), &twins, 5), expected);
        }
    }
}

#[test]
fn a_claim_on_one_lease_is_no_claim_on_another_of_its_name() {
    let foreign = found(Record { uid: "two".to_owned(), ..held_by("me", 3) });
    let claim = claim(Some("one"), Begin::AtOnce);
    let expected = (Step::Wait, Because::HeldByAnother);
    assert_eq!(decided(claim, &foreign, 5), expected);
}

#[test]
fn a_taking_that_is_tried_again_on_the_same_record_is_the_same_taking() {
    let emptied = found(Record { holder: None, ..held_by("other", 1) });
    let mut memory = looked(Memory::default(), &emptied, 5);
    memory.standing = claim(Some("one"), Begin::OnProbation).standing;
    let expected = (take(Begin::OnProbation, Acquired::Keep), Because::Emptied);
    assert_eq!(decided(memory, &emptied, 7), expected);
}

#[test]
fn the_longest_time_that_a_holder_asked_for_is_remembered_until_it_cannot_matter() {
    let patient = Record { duration: Some(Duration::from_mins(1)), ..held_by("other", 1) };
    let memory = looked(Memory::default(), &found(patient), 0);
    let memory = looked(memory, &Reading::Absent, 1);
    let memory = looked(memory, &found(held_by("third", 1)), 2);
    assert_eq!(memory.longest, Duration::from_mins(1));
    let released = render::released(&lease("third", 1), false, stamp(9));
    let after = looked(memory.clone(), &found(Record::of(&released)), 3);
    assert_eq!(after.longest, Duration::ZERO);
    let leads = Memory { standing: term(10).standing, ..memory };
    let after = looked(leads, &found(held_by("me", 1)), 3);
    assert_eq!(after.longest, Duration::from_secs(15));
}
