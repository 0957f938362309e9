//! Tests of the decisions and the Secret of a CA rotation.

use super::super::ca_rotation::{RotationContext, RotationDecision, next};
use super::super::ca_set::{CaSet, RotationPhase, RotationStep};
use super::super::readiness::{MemberReadiness, PodTrust, ProbeResults, TlsProbe, WaitingFor};
use super::super::trust_hash::{Sides, TrustHash};
use super::*;
use crate::etcd_cluster::state::MemberName;

const DAY: i64 = 24 * 60 * 60;
const BOTH: Sides = Sides { client: true, peer: true };

/// A running cluster with two members.
struct Case {
    ca_set: CaSet,
    rotation_request: Option<&'static str>,
    may_rotate: bool,
    may_start: bool,
    members: Vec<MemberName>,
    pods: Vec<PodTrust>,
    results: Option<ProbeResults>,
    now: Timestamp,
}

impl Case {
    fn of(ca_set: CaSet, now: Timestamp) -> Self {
        let hash = TrustHash::managed(BOTH, &ca_set).hash;
        let pod = |text: &str| PodTrust {
            member: name(text),
            pod_uid: format!("uid of {text}"),
            trust_hash: Some(hash.clone()),
        };
        Self {
            rotation_request: None,
            may_rotate: true,
            may_start: true,
            members: vec![name("main-a"), name("main-b")],
            pods: vec![pod("main-a"), pod("main-b")],
            results: None,
            now,
            ca_set,
        }
    }

    fn next(&self) -> RotationDecision {
        let context = RotationContext {
            ca_set: &self.ca_set,
            lifetimes: Lifetimes::default(),
            now: self.now,
            rotation_request: self.rotation_request,
            may_rotate: self.may_rotate,
            may_start: self.may_start,
            readiness: MemberReadiness {
                trust_hash: &TrustHash::managed(BOTH, &self.ca_set).hash,
                members: &self.members,
                pods: &self.pods,
            },
        };
        next(&context, self.results.as_ref())
    }

    fn probed(mut self, a: TlsProbe, b: TlsProbe) -> Self {
        self.results = Some([(name("main-a"), a), (name("main-b"), b)].into());
        self
    }
}

/// The CA set after a step, parsed from the patched Secret.
pub(super) fn apply_step(ca_set: &CaSet, step: &RotationStep, now: Timestamp) -> CaSet {
    let spec = spec();
    let mut secret = ca_set.secret(&blueprint(&spec));
    let patch = ca_set.patch(step, &secret, now);
    let data = secret.data.as_mut().unwrap();
    for (key, value) in patch["data"].as_object().unwrap() {
        if value.is_null() {
            assert!(data.remove(key).is_some(), "{key} did not exist");
        } else {
            data.insert(key.clone(), serde_json::from_value(value.clone()).unwrap());
        }
    }
    CaSet::read(&secret).unwrap()
}

fn started(now: Timestamp) -> CaSet {
    apply_step(&ca_set(), &RotationStep::Start(Box::new(ca_pair(now)), Some("1".to_owned())), now)
}

fn distributing(now: Timestamp) -> CaSet {
    apply_step(&started(now), &RotationStep::StartOverlap, now)
}

fn retiring(now: Timestamp) -> CaSet {
    let ca_set = distributing(at(0));
    let RotationPhase::Distributing(next) = &ca_set.phase else { panic!("{ca_set:?}") };
    apply_step(
        &apply_step(&ca_set, &RotationStep::SwitchIssuer(next.clone()), now),
        &RotationStep::StartOverlap,
        now,
    )
}

#[test]
fn every_phase_of_a_rotation_is_parsed_as_written() {
    let first = ca_set();
    let second = ca_pair(at(DAY));
    let distributing =
        apply_step(&first, &RotationStep::Start(Box::new(second.clone()), None), at(DAY));
    assert_eq!(distributing.phase, RotationPhase::Distributing(Box::new(second.clone())));
    assert_eq!((&distributing.current, distributing.overlap_start), (&first.current, None));
    let distributing = apply_step(&distributing, &RotationStep::StartOverlap, at(DAY));
    assert_eq!(distributing.overlap_start, Some(at(DAY)));
    let retiring_set = apply_step(
        &distributing,
        &RotationStep::SwitchIssuer(Box::new(second.clone())),
        at(2 * DAY),
    );
    let [client, peer] = first.current.certificates();
    assert_eq!(retiring_set.phase, RotationPhase::Retiring([client.clone(), peer.clone()]));
    assert_eq!((&retiring_set.current, retiring_set.overlap_start), (&second, None));
    let removed = apply_step(&retiring_set, &RotationStep::RemoveOldCa, at(3 * DAY));
    assert_eq!(removed.phase, RotationPhase::Verifying([client.clone(), peer.clone()]));
    assert_eq!((&removed.current, removed.overlap_start), (&second, None));
    let done = apply_step(&removed, &RotationStep::Finish, at(4 * DAY));
    assert_eq!((&done.phase, &done.current), (&RotationPhase::Idle, &second));
    let spec = spec();
    let data = done.secret(&blueprint(&spec)).data.unwrap();
    assert_eq!(data.len(), 4, "keys of the old CAs are left: {:?}", data.keys());
}

#[test]
fn trust_bundle_is_the_same_before_and_after_the_issuer_switch() {
    let (before, retiring_set) = (distributing(at(0)), retiring(at(DAY)));
    assert_eq!(before.client_bundle().len(), 2);
    let switched = apply_step(
        &before,
        &RotationStep::SwitchIssuer(match &before.phase {
            RotationPhase::Distributing(next) => next.clone(),
            RotationPhase::Idle | RotationPhase::Retiring(_) | RotationPhase::Verifying(_) => {
                panic!("{before:?}")
            }
        }),
        at(DAY),
    );
    assert_eq!(before.client_bundle(), switched.client_bundle());
    assert_eq!(before.peer_bundle(), switched.peer_bundle());
    assert_eq!(TrustHash::managed(BOTH, &before).hash, TrustHash::managed(BOTH, &switched).hash);
    assert_ne!(
        TrustHash::managed(BOTH, &before).hash,
        TrustHash::managed(BOTH, &retiring_set).hash,
        "another rotation"
    );
    let done = apply_step(&switched, &RotationStep::RemoveOldCa, at(2 * DAY));
    assert_ne!(TrustHash::managed(BOTH, &switched).hash, TrustHash::managed(BOTH, &done).hash);
    assert_ne!(TrustHash::managed(BOTH, &ca_set()).hash, TrustHash::managed(BOTH, &done).hash);
    let finished = apply_step(&done, &RotationStep::Finish, at(3 * DAY));
    assert_eq!(TrustHash::managed(BOTH, &done).hash, TrustHash::managed(BOTH, &finished).hash);
}

#[test]
fn rotation_starts_after_two_thirds_of_the_lifetime_or_on_a_new_request() {
    let mut case = Case::of(ca_set(), at(DAY));
    assert_eq!(case.next(), RotationDecision::Idle);
    case.rotation_request = Some("1");
    assert_eq!(case.next(), RotationDecision::Start);
    case.may_rotate = false;
    assert_eq!(case.next(), RotationDecision::Idle);
    case = Case {
        ca_set: CaSet { rotation_request: Some("1".to_owned()), ..ca_set() },
        rotation_request: Some("1"),
        ..case
    };
    case.may_rotate = true;
    assert_eq!(case.next(), RotationDecision::Idle, "the request was served");
    case.rotation_request = Some("2");
    assert_eq!(case.next(), RotationDecision::Start);
    assert_eq!(Case::of(ca_set(), at(2432 * DAY)).next(), RotationDecision::Idle);
    assert_eq!(Case::of(ca_set(), at(2434 * DAY)).next(), RotationDecision::Start);
}

#[test]
fn issuer_is_not_switched_while_a_member_may_not_trust_the_new_ca() {
    let ready_at = at(3 * DAY);
    let waits = |case: &Case, member: &str| {
        assert_eq!(case.next(), RotationDecision::Wait(WaitingFor::Restart(vec![name(member)])));
    };
    let mut stale = Case::of(distributing(at(0)), ready_at);
    stale.pods[1].trust_hash = None;
    waits(&stale, "main-b");
    stale.pods[1].trust_hash = Some("other".to_owned());
    waits(&stale, "main-b");
    let mut away = Case::of(distributing(at(0)), ready_at);
    away.pods.remove(0);
    waits(&away, "main-a");
    // The pod of a removed member exists, and its EtcdMember does not.
    let mut going = Case::of(distributing(at(0)), ready_at);
    going.members.remove(1);
    going.pods[1].trust_hash = None;
    waits(&going, "main-b");
}

#[test]
fn annotation_of_a_pod_must_be_confirmed_by_a_probe() {
    let ready_at = at(3 * DAY);
    let case = || Case::of(distributing(at(0)), ready_at);
    assert_eq!(case().next(), RotationDecision::NeedsProbe);
    for result in [
        TlsProbe::RejectsNewCa,
        TlsProbe::PresentsOldCert,
        TlsProbe::Unreachable("error".to_owned()),
    ] {
        let waiting_for = WaitingFor::Probe(name("main-b"), result.clone());
        assert_eq!(case().probed(TlsProbe::Ok, result).next(), RotationDecision::Wait(waiting_for));
    }
    assert!(matches!(
        case().probed(TlsProbe::Ok, TlsProbe::Ok).next(),
        RotationDecision::SwitchIssuer(_)
    ));
    // A member was added after the others were probed.
    let mut late = case().probed(TlsProbe::Ok, TlsProbe::Ok);
    late.pods.push(PodTrust { member: name("main-c"), ..late.pods[0].clone() });
    assert_eq!(late.next(), RotationDecision::NeedsProbe);
}

#[test]
fn applications_have_the_overlap_before_the_switch_and_before_the_removal() {
    let early = Case::of(distributing(at(0)), at(3 * DAY - 1));
    assert_eq!(early.next(), RotationDecision::Wait(WaitingFor::Overlap(at(3 * DAY))));
    let early = Case::of(retiring(at(DAY)), at(4 * DAY - 1));
    assert_eq!(early.next(), RotationDecision::Wait(WaitingFor::Overlap(at(4 * DAY))));
    let ready_at = Case::of(retiring(at(DAY)), at(4 * DAY));
    assert_eq!(ready_at.next(), RotationDecision::NeedsProbe);
    assert_eq!(ready_at.probed(TlsProbe::Ok, TlsProbe::Ok).next(), RotationDecision::RemoveOldCa);
}

#[test]
fn current_cas_do_not_expire_during_the_overlap() {
    // The CAs expire in two days, and the overlap is three days.
    let last = at(3648 * DAY);
    let ca_set = apply_step(&ca_set(), &RotationStep::Start(Box::new(ca_pair(last)), None), last);
    let ca_set = apply_step(&ca_set, &RotationStep::StartOverlap, last);
    let RotationDecision::Wait(WaitingFor::Overlap(switch_at)) = Case::of(ca_set, last).next()
    else {
        panic!("the overlap has not started")
    };
    assert_eq!(switch_at, at(3649 * DAY));
}

#[test]
fn overlap_starts_when_all_secrets_are_up_to_date() {
    let case = Case::of(started(at(0)), at(9 * DAY)).probed(TlsProbe::Ok, TlsProbe::Ok);
    assert_eq!(case.next(), RotationDecision::StartOverlap);
}

#[test]
fn removed_cas_are_recorded_until_every_probe_confirms_the_removal() {
    let ca_set = apply_step(&retiring(at(0)), &RotationStep::RemoveOldCa, at(3 * DAY));
    assert_eq!(Case::of(ca_set.clone(), at(3 * DAY)).next(), RotationDecision::StartOverlap);
    let ca_set = apply_step(&ca_set, &RotationStep::StartOverlap, at(3 * DAY));
    let mut stale = Case::of(ca_set.clone(), at(3 * DAY));
    stale.pods[0].trust_hash = Some("both".to_owned());
    assert_eq!(stale.next(), RotationDecision::Wait(WaitingFor::Restart(vec![name("main-a")])));
    let case = || Case::of(ca_set.clone(), at(3 * DAY));
    assert_eq!(case().next(), RotationDecision::NeedsProbe, "the overlap does not apply");
    let waiting_for = WaitingFor::Probe(name("main-b"), TlsProbe::TrustsOldCa);
    assert_eq!(
        case().probed(TlsProbe::Ok, TlsProbe::TrustsOldCa).next(),
        RotationDecision::Wait(waiting_for)
    );
    assert_eq!(case().probed(TlsProbe::Ok, TlsProbe::Ok).next(), RotationDecision::Finish);
}

#[test]
fn started_rotation_continues_when_a_trust_change_is_requested() {
    let requested =
        Case { rotation_request: Some("1"), may_start: false, ..Case::of(ca_set(), at(DAY)) };
    assert_eq!(requested.next(), RotationDecision::Idle);
    for ca_set in [distributing(at(0)), retiring(at(0))] {
        let case = Case { may_start: false, ..Case::of(ca_set, at(9 * DAY)) };
        assert_eq!(
            case.next(),
            RotationDecision::NeedsProbe,
            "rotation and trust change would wait for each other"
        );
    }
}

#[test]
fn paused_cluster_keeps_its_rotation_phase() {
    let removed = apply_step(&retiring(at(0)), &RotationStep::RemoveOldCa, at(3 * DAY));
    for ca_set in [distributing(at(0)), retiring(at(0)), removed] {
        let case = Case { may_rotate: false, ..Case::of(ca_set, at(9 * DAY)) };
        assert_eq!(case.next(), RotationDecision::Wait(WaitingFor::Unpause));
    }
}

#[test]
fn pod_without_annotation_differs_only_after_a_rotation_has_started() {
    let pod = |hash: Option<&str>| -> k8s_openapi::api::core::v1::Pod {
        let annotations =
            hash.map(|hash| json!({crate::api::names::TRUST_BUNDLE_HASH_ANNOTATION: hash}));
        let metadata = json!({"name": "main-a", "uid": "1", "annotations": annotations});
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    };
    let (idle, rotating) =
        (TrustHash::managed(BOTH, &ca_set()), TrustHash::managed(BOTH, &distributing(at(0))));
    assert!(!idle.differs(&pod(None)));
    assert!(!idle.differs(&pod(Some(&idle.hash))));
    assert!(idle.differs(&pod(Some(&rotating.hash))));
    assert!(rotating.differs(&pod(None)));
    let stale = TrustHash { stale_pods: ["1".to_owned()].into(), ..rotating.clone() };
    assert!(
        !rotating.differs(&pod(Some(&rotating.hash))) && stale.differs(&pod(Some(&rotating.hash)))
    );
    let none = Sides { client: false, peer: false };
    assert_eq!(
        TrustHash::managed(none, &ca_set()).hash,
        TrustHash::managed(none, &distributing(at(0))).hash
    );
}
