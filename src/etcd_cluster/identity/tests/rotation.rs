//! When authorities change their places, one sentence each.

use super::super::company::{Company, Proof, Seat, Shown, Waits};
use super::super::ring::{Ring, Stage, Turn};
use super::super::rotation::{Facts, Next, next};
use super::super::trust::{Sides, Trust};
use super::*;
use crate::etcd_cluster::seen::Name;

const DAY: i64 = 24 * 60 * 60;
const BOTH: Sides = Sides { client: true, peer: true };

/// A cluster of two in the middle of its life.
struct Case {
    ring: Ring,
    asked: Option<&'static str>,
    may_turn: bool,
    may_begin: bool,
    members: Vec<Name>,
    seats: Vec<Seat>,
    proof: Option<Proof>,
    now: Timestamp,
}

impl Case {
    fn of(ring: Ring, now: Timestamp) -> Self {
        let word = Trust::of(BOTH, &ring).word;
        let seat = |text: &str| Seat {
            member: name(text),
            pod: format!("uid of {text}"),
            trusts: Some(word.clone()),
        };
        Self {
            asked: None,
            may_turn: true,
            may_begin: true,
            members: vec![name("main-a"), name("main-b")],
            seats: vec![seat("main-a"), seat("main-b")],
            proof: None,
            now,
            ring,
        }
    }

    fn next(&self) -> Next {
        let facts = Facts {
            ring: &self.ring,
            lifetimes: Lifetimes::default(),
            now: self.now,
            asked: self.asked,
            may_turn: self.may_turn,
            may_begin: self.may_begin,
            company: Company {
                word: &Trust::of(BOTH, &self.ring).word,
                members: &self.members,
                seats: &self.seats,
            },
        };
        next(&facts, self.proof.as_ref())
    }

    fn shown(mut self, a: Shown, b: Shown) -> Self {
        self.proof = Some([(name("main-a"), a), (name("main-b"), b)].into());
        self
    }
}

/// What a ring becomes by a turn, by way of the Secret that it is written to.
pub(super) fn turned(ring: &Ring, turn: &Turn, now: Timestamp) -> Ring {
    let spec = spec();
    let mut held = ring.secret(&blueprint(&spec));
    let patch = ring.turned(turn, &held, now);
    let data = held.data.as_mut().unwrap();
    for (key, value) in patch["data"].as_object().unwrap() {
        if value.is_null() {
            assert!(data.remove(key).is_some(), "{key} was not there");
        } else {
            data.insert(key.clone(), serde_json::from_value(value.clone()).unwrap());
        }
    }
    Ring::read(&held).unwrap()
}

fn begun(now: Timestamp) -> Ring {
    turned(&ring(), &Turn::Begin(Box::new(authorities(now)), Some("1".to_owned())), now)
}

fn introduced(now: Timestamp) -> Ring {
    turned(&begun(now), &Turn::Publish, now)
}

fn retiring(now: Timestamp) -> Ring {
    let ring = introduced(at(0));
    let Stage::Introduced(next) = &ring.stage else { panic!("{ring:?}") };
    turned(&turned(&ring, &Turn::TakeOver(next.clone()), now), &Turn::Publish, now)
}

#[test]
fn a_whole_rotation_is_read_as_it_was_written() {
    let first = ring();
    let second = authorities(at(DAY));
    let begun = turned(&first, &Turn::Begin(Box::new(second.clone()), None), at(DAY));
    assert_eq!(begun.stage, Stage::Introduced(Box::new(second.clone())));
    assert_eq!((&begun.now, begun.since), (&first.now, None));
    let begun = turned(&begun, &Turn::Publish, at(DAY));
    assert_eq!(begun.since, Some(at(DAY)));
    let taken = turned(&begun, &Turn::TakeOver(Box::new(second.clone())), at(2 * DAY));
    let [client, peer] = first.now.certificates();
    assert_eq!(taken.stage, Stage::Retiring([client.clone(), peer.clone()]));
    assert_eq!((&taken.now, taken.since), (&second, None));
    let dropped = turned(&taken, &Turn::Drop, at(3 * DAY));
    assert_eq!(dropped.stage, Stage::Dropped([client.clone(), peer.clone()]));
    assert_eq!((&dropped.now, dropped.since), (&second, None));
    let done = turned(&dropped, &Turn::Forget, at(4 * DAY));
    assert_eq!((&done.stage, &done.now), (&Stage::Still, &second));
    let spec = spec();
    let data = done.secret(&blueprint(&spec)).data.unwrap();
    assert_eq!(data.len(), 4, "nothing of the old ones is left: {:?}", data.keys());
}

#[test]
fn whom_to_trust_does_not_change_when_the_new_ones_take_over() {
    let (begun, taken) = (introduced(at(0)), retiring(at(DAY)));
    assert_eq!(begun.for_clients().len(), 2);
    let again = turned(
        &begun,
        &Turn::TakeOver(match &begun.stage {
            Stage::Introduced(next) => next.clone(),
            Stage::Still | Stage::Retiring(_) | Stage::Dropped(_) => panic!("{begun:?}"),
        }),
        at(DAY),
    );
    assert_eq!(begun.for_clients(), again.for_clients());
    assert_eq!(begun.for_peers(), again.for_peers());
    assert_eq!(Trust::of(BOTH, &begun).word, Trust::of(BOTH, &again).word);
    assert_ne!(Trust::of(BOTH, &begun).word, Trust::of(BOTH, &taken).word, "another rotation");
    let done = turned(&again, &Turn::Drop, at(2 * DAY));
    assert_ne!(Trust::of(BOTH, &again).word, Trust::of(BOTH, &done).word);
    assert_ne!(Trust::of(BOTH, &ring()).word, Trust::of(BOTH, &done).word);
    let forgotten = turned(&done, &Turn::Forget, at(3 * DAY));
    assert_eq!(Trust::of(BOTH, &done).word, Trust::of(BOTH, &forgotten).word);
}

#[test]
fn new_authorities_come_after_two_thirds_of_a_life_or_when_somebody_asks_for_another_one() {
    let mut case = Case::of(ring(), at(DAY));
    assert_eq!(case.next(), Next::Rest);
    case.asked = Some("1");
    assert_eq!(case.next(), Next::Begin);
    case.may_turn = false;
    assert_eq!(case.next(), Next::Rest);
    case = Case { ring: Ring { asked: Some("1".to_owned()), ..ring() }, asked: Some("1"), ..case };
    case.may_turn = true;
    assert_eq!(case.next(), Next::Rest, "that was done");
    case.asked = Some("2");
    assert_eq!(case.next(), Next::Begin);
    assert_eq!(Case::of(ring(), at(2432 * DAY)).next(), Next::Rest);
    assert_eq!(Case::of(ring(), at(2434 * DAY)).next(), Next::Begin);
}

#[test]
fn nobody_signs_of_whom_a_member_may_not_have_heard() {
    let ripe = at(3 * DAY);
    let waits = |case: &Case, who: &str| {
        assert_eq!(case.next(), Next::Wait(Waits::Started(vec![name(who)])));
    };
    let mut untold = Case::of(introduced(at(0)), ripe);
    untold.seats[1].trusts = None;
    waits(&untold, "main-b");
    untold.seats[1].trusts = Some("somebody else".to_owned());
    waits(&untold, "main-b");
    let mut away = Case::of(introduced(at(0)), ripe);
    away.seats.remove(0);
    waits(&away, "main-a");
    // A pod of somebody who goes is there, and its EtcdMember is not.
    let mut going = Case::of(introduced(at(0)), ripe);
    going.members.remove(1);
    going.seats[1].trusts = None;
    waits(&going, "main-b");
}

#[test]
fn a_word_on_a_pod_is_not_enough_it_must_have_shown_it() {
    let ripe = at(3 * DAY);
    let case = || Case::of(introduced(at(0)), ripe);
    assert_eq!(case().next(), Next::Prove);
    for shown in [Shown::Refuses, Shown::ShowsOther, Shown::Silent("why".to_owned())] {
        let waits = Waits::Shown(name("main-b"), shown.clone());
        assert_eq!(case().shown(Shown::Well, shown).next(), Next::Wait(waits));
    }
    assert!(matches!(case().shown(Shown::Well, Shown::Well).next(), Next::TakeOver(_)));
    // Somebody has come since the others were called.
    let mut late = case().shown(Shown::Well, Shown::Well);
    late.seats.push(Seat { member: name("main-c"), ..late.seats[0].clone() });
    assert_eq!(late.next(), Next::Prove);
}

#[test]
fn applications_have_their_time_before_the_new_ones_sign_and_again_before_the_old_ones_go() {
    let early = Case::of(introduced(at(0)), at(3 * DAY - 1));
    assert_eq!(early.next(), Next::Wait(Waits::Until(at(3 * DAY))));
    let early = Case::of(retiring(at(DAY)), at(4 * DAY - 1));
    assert_eq!(early.next(), Next::Wait(Waits::Until(at(4 * DAY))));
    let ripe = Case::of(retiring(at(DAY)), at(4 * DAY));
    assert_eq!(ripe.next(), Next::Prove);
    assert_eq!(ripe.shown(Shown::Well, Shown::Well).next(), Next::Drop);
}

#[test]
fn what_signs_now_does_not_end_while_applications_have_their_time() {
    // Two days are left, and three are what applications should have.
    let last = at(3648 * DAY);
    let ring = turned(&ring(), &Turn::Begin(Box::new(authorities(last)), None), last);
    let ring = turned(&ring, &Turn::Publish, last);
    let Next::Wait(Waits::Until(signs)) = Case::of(ring, last).next() else { panic!("not yet") };
    assert_eq!(signs, at(3649 * DAY));
}

#[test]
fn the_time_of_applications_begins_when_they_can_read_it() {
    let begun = Case::of(begun(at(0)), at(9 * DAY)).shown(Shown::Well, Shown::Well);
    assert_eq!(begun.next(), Next::Publish);
}

#[test]
fn who_was_dropped_is_remembered_until_every_member_has_shown_that_it_trusts_others() {
    let ring = turned(&retiring(at(0)), &Turn::Drop, at(3 * DAY));
    assert_eq!(Case::of(ring.clone(), at(3 * DAY)).next(), Next::Publish);
    let ring = turned(&ring, &Turn::Publish, at(3 * DAY));
    let mut untold = Case::of(ring.clone(), at(3 * DAY));
    untold.seats[0].trusts = Some("both".to_owned());
    assert_eq!(untold.next(), Next::Wait(Waits::Started(vec![name("main-a")])));
    let case = || Case::of(ring.clone(), at(3 * DAY));
    assert_eq!(case().next(), Next::Prove, "applications are not waited for");
    let waits = Waits::Shown(name("main-b"), Shown::StillTrusts);
    assert_eq!(case().shown(Shown::Well, Shown::StillTrusts).next(), Next::Wait(waits));
    assert_eq!(case().shown(Shown::Well, Shown::Well).next(), Next::Forget);
}

#[test]
fn who_has_come_goes_on_although_something_else_shall_change_since() {
    let asked = Case { asked: Some("1"), may_begin: false, ..Case::of(ring(), at(DAY)) };
    assert_eq!(asked.next(), Next::Rest);
    for ring in [introduced(at(0)), retiring(at(0))] {
        let case = Case { may_begin: false, ..Case::of(ring, at(9 * DAY)) };
        assert_eq!(case.next(), Next::Prove, "both would wait for each other for ever");
    }
}

#[test]
fn a_cluster_that_is_left_alone_stays_where_it_is() {
    let dropped = turned(&retiring(at(0)), &Turn::Drop, at(3 * DAY));
    for ring in [introduced(at(0)), retiring(at(0)), dropped] {
        let case = Case { may_turn: false, ..Case::of(ring, at(9 * DAY)) };
        assert_eq!(case.next(), Next::Wait(Waits::Allowed));
    }
}

#[test]
fn a_pod_that_says_nothing_is_left_alone_until_somebody_else_is_to_be_trusted() {
    let pod = |word: Option<&str>| -> k8s_openapi::api::core::v1::Pod {
        let annotations = word.map(|it| json!({crate::api::names::TRUST_ANNOTATION: it}));
        let metadata = json!({"name": "main-a", "uid": "1", "annotations": annotations});
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    };
    let (still, begun) = (Trust::of(BOTH, &ring()), Trust::of(BOTH, &introduced(at(0))));
    assert!(!still.differs(&pod(None)));
    assert!(!still.differs(&pod(Some(&still.word))));
    assert!(still.differs(&pod(Some(&begun.word))));
    assert!(begun.differs(&pod(None)));
    let lacking = Trust { lacking: ["1".to_owned()].into(), ..begun.clone() };
    assert!(!begun.differs(&pod(Some(&begun.word))) && lacking.differs(&pod(Some(&begun.word))));
    let none = Sides { client: false, peer: false };
    assert_eq!(Trust::of(none, &ring()).word, Trust::of(none, &introduced(at(0))).word);
}
