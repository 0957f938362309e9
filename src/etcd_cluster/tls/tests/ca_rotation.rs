//! When authorities change their places, one sentence each.

use super::super::ca_rotation::{RotationContext, RotationDecision, next};
use super::super::ca_set::{CaSet, RotationPhase, RotationStep};
use super::super::readiness::{MemberReadiness, PodTrust, ProbeResults, TlsProbe, WaitingFor};
use super::super::trust_hash::{Sides, TrustHash};
use super::*;
use crate::etcd_cluster::state::MemberName;

const DAY: i64 = 24 * 60 * 60;
const BOTH: Sides = Sides { client: true, peer: true };

/// A cluster of two in the middle of its life.
struct Case {
    ring: CaSet,
    asked: Option<&'static str>,
    may_turn: bool,
    may_begin: bool,
    members: Vec<MemberName>,
    seats: Vec<PodTrust>,
    proof: Option<ProbeResults>,
    now: Timestamp,
}

impl Case {
    fn of(ring: CaSet, now: Timestamp) -> Self {
        let word = TrustHash::of(BOTH, &ring).word;
        let seat = |text: &str| PodTrust {
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

    fn next(&self) -> RotationDecision {
        let facts = RotationContext {
            ring: &self.ring,
            lifetimes: Lifetimes::default(),
            now: self.now,
            asked: self.asked,
            may_turn: self.may_turn,
            may_begin: self.may_begin,
            company: MemberReadiness {
                word: &TrustHash::of(BOTH, &self.ring).word,
                members: &self.members,
                seats: &self.seats,
            },
        };
        next(&facts, self.proof.as_ref())
    }

    fn shown(mut self, a: TlsProbe, b: TlsProbe) -> Self {
        self.proof = Some([(name("main-a"), a), (name("main-b"), b)].into());
        self
    }
}

/// What a ring becomes by a turn, by way of the Secret that it is written to.
pub(super) fn turned(ring: &CaSet, turn: &RotationStep, now: Timestamp) -> CaSet {
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
    CaSet::read(&held).unwrap()
}

fn begun(now: Timestamp) -> CaSet {
    turned(&ring(), &RotationStep::Start(Box::new(authorities(now)), Some("1".to_owned())), now)
}

fn introduced(now: Timestamp) -> CaSet {
    turned(&begun(now), &RotationStep::StartOverlap, now)
}

fn retiring(now: Timestamp) -> CaSet {
    let ring = introduced(at(0));
    let RotationPhase::Distributing(next) = &ring.stage else { panic!("{ring:?}") };
    turned(
        &turned(&ring, &RotationStep::SwitchIssuer(next.clone()), now),
        &RotationStep::StartOverlap,
        now,
    )
}

#[test]
fn a_whole_rotation_is_read_as_it_was_written() {
    let first = ring();
    let second = authorities(at(DAY));
    let begun = turned(&first, &RotationStep::Start(Box::new(second.clone()), None), at(DAY));
    assert_eq!(begun.stage, RotationPhase::Distributing(Box::new(second.clone())));
    assert_eq!((&begun.now, begun.since), (&first.now, None));
    let begun = turned(&begun, &RotationStep::StartOverlap, at(DAY));
    assert_eq!(begun.since, Some(at(DAY)));
    let taken = turned(&begun, &RotationStep::SwitchIssuer(Box::new(second.clone())), at(2 * DAY));
    let [client, peer] = first.now.certificates();
    assert_eq!(taken.stage, RotationPhase::Retiring([client.clone(), peer.clone()]));
    assert_eq!((&taken.now, taken.since), (&second, None));
    let dropped = turned(&taken, &RotationStep::RemoveOldCa, at(3 * DAY));
    assert_eq!(dropped.stage, RotationPhase::Verifying([client.clone(), peer.clone()]));
    assert_eq!((&dropped.now, dropped.since), (&second, None));
    let done = turned(&dropped, &RotationStep::Finish, at(4 * DAY));
    assert_eq!((&done.stage, &done.now), (&RotationPhase::Idle, &second));
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
        &RotationStep::SwitchIssuer(match &begun.stage {
            RotationPhase::Distributing(next) => next.clone(),
            RotationPhase::Idle | RotationPhase::Retiring(_) | RotationPhase::Verifying(_) => {
                panic!("{begun:?}")
            }
        }),
        at(DAY),
    );
    assert_eq!(begun.for_clients(), again.for_clients());
    assert_eq!(begun.for_peers(), again.for_peers());
    assert_eq!(TrustHash::of(BOTH, &begun).word, TrustHash::of(BOTH, &again).word);
    assert_ne!(
        TrustHash::of(BOTH, &begun).word,
        TrustHash::of(BOTH, &taken).word,
        "another rotation"
    );
    let done = turned(&again, &RotationStep::RemoveOldCa, at(2 * DAY));
    assert_ne!(TrustHash::of(BOTH, &again).word, TrustHash::of(BOTH, &done).word);
    assert_ne!(TrustHash::of(BOTH, &ring()).word, TrustHash::of(BOTH, &done).word);
    let forgotten = turned(&done, &RotationStep::Finish, at(3 * DAY));
    assert_eq!(TrustHash::of(BOTH, &done).word, TrustHash::of(BOTH, &forgotten).word);
}

#[test]
fn new_authorities_come_after_two_thirds_of_a_life_or_when_somebody_asks_for_another_one() {
    let mut case = Case::of(ring(), at(DAY));
    assert_eq!(case.next(), RotationDecision::Idle);
    case.asked = Some("1");
    assert_eq!(case.next(), RotationDecision::Start);
    case.may_turn = false;
    assert_eq!(case.next(), RotationDecision::Idle);
    case = Case { ring: CaSet { asked: Some("1".to_owned()), ..ring() }, asked: Some("1"), ..case };
    case.may_turn = true;
    assert_eq!(case.next(), RotationDecision::Idle, "that was done");
    case.asked = Some("2");
    assert_eq!(case.next(), RotationDecision::Start);
    assert_eq!(Case::of(ring(), at(2432 * DAY)).next(), RotationDecision::Idle);
    assert_eq!(Case::of(ring(), at(2434 * DAY)).next(), RotationDecision::Start);
}

#[test]
fn nobody_signs_of_whom_a_member_may_not_have_heard() {
    let ripe = at(3 * DAY);
    let waits = |case: &Case, who: &str| {
        assert_eq!(case.next(), RotationDecision::Wait(WaitingFor::Restart(vec![name(who)])));
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
    assert_eq!(case().next(), RotationDecision::NeedsProbe);
    for shown in
        [TlsProbe::RejectsNewCa, TlsProbe::PresentsOldCert, TlsProbe::Unreachable("why".to_owned())]
    {
        let waits = WaitingFor::Probe(name("main-b"), shown.clone());
        assert_eq!(case().shown(TlsProbe::Ok, shown).next(), RotationDecision::Wait(waits));
    }
    assert!(matches!(
        case().shown(TlsProbe::Ok, TlsProbe::Ok).next(),
        RotationDecision::SwitchIssuer(_)
    ));
    // Somebody has come since the others were called.
    let mut late = case().shown(TlsProbe::Ok, TlsProbe::Ok);
    late.seats.push(PodTrust { member: name("main-c"), ..late.seats[0].clone() });
    assert_eq!(late.next(), RotationDecision::NeedsProbe);
}

#[test]
fn applications_have_their_time_before_the_new_ones_sign_and_again_before_the_old_ones_go() {
    let early = Case::of(introduced(at(0)), at(3 * DAY - 1));
    assert_eq!(early.next(), RotationDecision::Wait(WaitingFor::Overlap(at(3 * DAY))));
    let early = Case::of(retiring(at(DAY)), at(4 * DAY - 1));
    assert_eq!(early.next(), RotationDecision::Wait(WaitingFor::Overlap(at(4 * DAY))));
    let ripe = Case::of(retiring(at(DAY)), at(4 * DAY));
    assert_eq!(ripe.next(), RotationDecision::NeedsProbe);
    assert_eq!(ripe.shown(TlsProbe::Ok, TlsProbe::Ok).next(), RotationDecision::RemoveOldCa);
}

#[test]
fn what_signs_now_does_not_end_while_applications_have_their_time() {
    // Two days are left, and three are what applications should have.
    let last = at(3648 * DAY);
    let ring = turned(&ring(), &RotationStep::Start(Box::new(authorities(last)), None), last);
    let ring = turned(&ring, &RotationStep::StartOverlap, last);
    let RotationDecision::Wait(WaitingFor::Overlap(signs)) = Case::of(ring, last).next() else {
        panic!("not yet")
    };
    assert_eq!(signs, at(3649 * DAY));
}

#[test]
fn the_time_of_applications_begins_when_they_can_read_it() {
    let begun = Case::of(begun(at(0)), at(9 * DAY)).shown(TlsProbe::Ok, TlsProbe::Ok);
    assert_eq!(begun.next(), RotationDecision::StartOverlap);
}

#[test]
fn who_was_dropped_is_remembered_until_every_member_has_shown_that_it_trusts_others() {
    let ring = turned(&retiring(at(0)), &RotationStep::RemoveOldCa, at(3 * DAY));
    assert_eq!(Case::of(ring.clone(), at(3 * DAY)).next(), RotationDecision::StartOverlap);
    let ring = turned(&ring, &RotationStep::StartOverlap, at(3 * DAY));
    let mut untold = Case::of(ring.clone(), at(3 * DAY));
    untold.seats[0].trusts = Some("both".to_owned());
    assert_eq!(untold.next(), RotationDecision::Wait(WaitingFor::Restart(vec![name("main-a")])));
    let case = || Case::of(ring.clone(), at(3 * DAY));
    assert_eq!(case().next(), RotationDecision::NeedsProbe, "applications are not waited for");
    let waits = WaitingFor::Probe(name("main-b"), TlsProbe::TrustsOldCa);
    assert_eq!(
        case().shown(TlsProbe::Ok, TlsProbe::TrustsOldCa).next(),
        RotationDecision::Wait(waits)
    );
    assert_eq!(case().shown(TlsProbe::Ok, TlsProbe::Ok).next(), RotationDecision::Finish);
}

#[test]
fn who_has_come_goes_on_although_something_else_shall_change_since() {
    let asked = Case { asked: Some("1"), may_begin: false, ..Case::of(ring(), at(DAY)) };
    assert_eq!(asked.next(), RotationDecision::Idle);
    for ring in [introduced(at(0)), retiring(at(0))] {
        let case = Case { may_begin: false, ..Case::of(ring, at(9 * DAY)) };
        assert_eq!(
            case.next(),
            RotationDecision::NeedsProbe,
            "both would wait for each other for ever"
        );
    }
}

#[test]
fn a_cluster_that_is_left_alone_stays_where_it_is() {
    let dropped = turned(&retiring(at(0)), &RotationStep::RemoveOldCa, at(3 * DAY));
    for ring in [introduced(at(0)), retiring(at(0)), dropped] {
        let case = Case { may_turn: false, ..Case::of(ring, at(9 * DAY)) };
        assert_eq!(case.next(), RotationDecision::Wait(WaitingFor::Unpause));
    }
}

#[test]
fn a_pod_that_says_nothing_is_left_alone_until_somebody_else_is_to_be_trusted() {
    let pod = |word: Option<&str>| -> k8s_openapi::api::core::v1::Pod {
        let annotations =
            word.map(|it| json!({crate::api::names::TRUST_BUNDLE_HASH_ANNOTATION: it}));
        let metadata = json!({"name": "main-a", "uid": "1", "annotations": annotations});
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    };
    let (still, begun) = (TrustHash::of(BOTH, &ring()), TrustHash::of(BOTH, &introduced(at(0))));
    assert!(!still.differs(&pod(None)));
    assert!(!still.differs(&pod(Some(&still.word))));
    assert!(still.differs(&pod(Some(&begun.word))));
    assert!(begun.differs(&pod(None)));
    let lacking = TrustHash { lacking: ["1".to_owned()].into(), ..begun.clone() };
    assert!(!begun.differs(&pod(Some(&begun.word))) && lacking.differs(&pod(Some(&begun.word))));
    let none = Sides { client: false, peer: false };
    assert_eq!(TrustHash::of(none, &ring()).word, TrustHash::of(none, &introduced(at(0))).word);
}
