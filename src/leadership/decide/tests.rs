//! The rules of the election, one sentence each.

use jiff::Timestamp;

use super::*;
use crate::leadership::seen::Claim;

const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
};

fn at(second: u64) -> Moment {
    Moment::new(Duration::from_secs(second))
}

fn stamp(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn held_by(holder: &str, acquired: i64) -> Record {
    Record {
        uid: "one".to_owned(),
        holder: Some(holder.to_owned()),
        acquired: Some(stamp(acquired)),
        renewed: Some(stamp(acquired)),
        duration: Some(Duration::from_secs(15)),
        transitions: 0,
    }
}

fn found(record: Record) -> Reading {
    Reading::Found(Box::new(record))
}

fn term(until: u64) -> Memory {
    let (uid, acquired) = ("one".to_owned(), stamp(1));
    let term = Term {
        uid,
        acquired,
        leads_from: at(0),
        until: at(until),
    };
    Memory {
        term: Some(term),
        ..Memory::default()
    }
}

/// Looks at `reading` at `second` with what is remembered, and decides.
fn decided(memory: Memory, reading: &Reading, second: u64) -> (Step, Because) {
    let memory = look(memory, reading, at(second));
    let seen = Seen {
        identity: "me",
        now: at(second),
        reading,
        memory: &memory,
    };
    let Plan { step, because } = decide(&seen, &TIMING);
    (step, because)
}

#[test]
fn a_lease_held_by_another_is_left_alone() {
    let other = found(held_by("other", 1));
    let expected = (Step::Wait, Because::HeldByAnother);
    assert_eq!(decided(Memory::default(), &other, 1000), expected);
    let memory = look(Memory::default(), &other, at(100));
    assert_eq!(decided(memory, &other, 114), expected);
}

#[test]
fn a_holder_that_is_silent_for_the_whole_duration_is_followed() {
    let other = found(held_by("other", 1));
    let memory = look(Memory::default(), &other, at(100));
    let expected = (Step::Take(Begin::AtOnce), Because::HolderSilent);
    assert_eq!(decided(memory, &other, 115), expected);
}

#[test]
fn a_renewal_starts_the_count_anew() {
    let memory = look(Memory::default(), &found(held_by("other", 1)), at(100));
    let renewed = found(Record {
        renewed: Some(stamp(2)),
        ..held_by("other", 1)
    });
    assert_eq!(
        decided(memory, &renewed, 115),
        (Step::Wait, Because::HeldByAnother)
    );
}

#[test]
fn a_holder_that_asks_for_longer_is_left_alone_for_longer() {
    let patient = Record {
        duration: Some(Duration::from_mins(1)),
        ..held_by("other", 1)
    };
    let other = found(patient);
    let memory = look(Memory::default(), &other, at(0));
    assert_eq!(
        decided(memory.clone(), &other, 59),
        (Step::Wait, Because::HeldByAnother)
    );
    let expected = (Step::Take(Begin::AtOnce), Because::HolderSilent);
    assert_eq!(decided(memory, &other, 60), expected);
}

#[test]
fn an_answer_that_did_not_come_neither_makes_nor_ends_a_leader() {
    let unknown = Reading::Unknown;
    assert_eq!(
        decided(Memory::default(), &unknown, 5),
        (Step::Wait, Because::Unreadable)
    );
    assert_eq!(
        decided(term(10), &unknown, 9),
        (Step::Wait, Because::Unreadable)
    );
    let memory = look(Memory::default(), &found(held_by("other", 1)), at(0));
    assert_eq!(
        decided(memory, &unknown, 60),
        (Step::Wait, Because::Unreadable)
    );
}

#[test]
fn a_leader_that_could_not_renew_stops_at_its_deadline_whatever_it_reads() {
    for reading in [Reading::Unknown, Reading::Absent, found(held_by("me", 1))] {
        assert_eq!(
            decided(term(10), &reading, 10),
            (Step::StepDown, Because::DeadlinePassed)
        );
    }
}

#[test]
fn a_leader_whose_lease_is_gone_replaced_or_anothers_stops_at_once() {
    let replaced = Record {
        uid: "two".to_owned(),
        ..held_by("me", 1)
    };
    let vacant = Record {
        holder: None,
        ..held_by("me", 1)
    };
    for (reading, because) in [
        (Reading::Absent, Because::LeaseGone),
        (found(replaced), Because::LeaseReplaced),
        (found(held_by("other", 1)), Because::HeldByAnother),
        (found(vacant), Because::HeldByAnother),
    ] {
        assert_eq!(decided(term(10), &reading, 5), (Step::StepDown, because));
    }
}

#[test]
fn a_leader_that_finds_its_own_record_renews_it() {
    assert_eq!(
        decided(term(10), &found(held_by("me", 1)), 5),
        (Step::Renew, Because::Held)
    );
}

#[test]
fn a_process_of_the_same_name_is_another() {
    let twin = found(held_by("me", 2));
    assert_eq!(
        decided(term(10), &twin, 5),
        (Step::StepDown, Because::HeldByAnother)
    );
    assert_eq!(
        decided(Memory::default(), &twin, 5),
        (Step::Wait, Because::HeldByAnother)
    );
}

#[test]
fn a_released_lease_is_taken_at_once_and_a_new_one_on_probation() {
    let released = Record {
        holder: None,
        ..held_by("other", 1)
    };
    let by_hand = Record {
        renewed: None,
        ..released.clone()
    };
    for (reading, step, because) in [
        (found(released), Step::Take(Begin::AtOnce), Because::Vacant),
        (
            found(by_hand),
            Step::Take(Begin::OnProbation),
            Because::Vacant,
        ),
        (Reading::Absent, Step::Create, Because::Absent),
    ] {
        assert_eq!(decided(Memory::default(), &reading, 5), (step, because));
    }
}

#[test]
fn a_write_of_ours_that_landed_unheard_is_taken_up_as_it_was_meant() {
    for begin in [Begin::AtOnce, Begin::OnProbation] {
        let claim = Some(Claim {
            acquired: stamp(3),
            begin,
        });
        let memory = Memory {
            claim,
            ..Memory::default()
        };
        let expected = (Step::Take(begin), Because::OwnWriteLanded);
        assert_eq!(
            decided(memory.clone(), &found(held_by("me", 3)), 5),
            expected
        );
        let expected = (Step::Wait, Because::HeldByAnother);
        assert_eq!(decided(memory, &found(held_by("me", 4)), 5), expected);
    }
}
