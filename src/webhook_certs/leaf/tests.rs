//! What a replica does about its own certificate, rule by rule.
#![expect(clippy::arithmetic_side_effects, reason = "the numbers of a test are small")]

use super::*;
use crate::pki::ca::{CertificateAuthority, PrivateKey, bundle};
use crate::webhook_certs::state::ReadFailure;

const TIMES: Lifetimes = Lifetimes {
    ca: Duration::from_mins(150),
    leaf: Duration::from_mins(15),
    settle: Duration::from_secs(30),
};
const FRESH: u64 = 300;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

/// Both clocks, as far after the beginning.
fn times(second: u64) -> Times {
    let wall = at(i64::try_from(second).unwrap());
    Times { now: MonotonicTime::new(Duration::from_secs(second)), wall }
}

fn made(second: i64) -> CertificateAuthority {
    let der = second.to_be_bytes().to_vec();
    let (from, until) = (TIMES.from(at(second)), later(at(second), TIMES.ca));
    CertificateAuthority {
        certificate: Certificate { der, from, until },
        key: PrivateKey::new(Vec::new()),
    }
}

fn leaf(authority: &CertificateAuthority, second: i64) -> Leaf {
    let (from, until) = span(&TIMES, &authority.certificate, at(second));
    Leaf { authority: authority.certificate.clone(), signed: at(second), from, until }
}

fn found(ca_set: &CaSet) -> SecretState {
    SecretState::Found { ca_set: Box::new(ca_set.clone()), invalid: Vec::new() }
}

fn replica(ca_set: &CaSet, leaf: Option<Leaf>) -> ReplicaState {
    ReplicaState { leaf, ca_set: Some((ca_set.clone(), times(0))) }
}

fn ca_set() -> CaSet {
    CaSet::new(made(0), &[])
}

const SILENCE: SecretState = SecretState::Unknown(ReadFailure::NoResponse);

#[test]
fn a_secret_is_made_only_if_the_api_server_says_that_there_is_none() {
    let nothing = ReplicaState::default();
    let plan = renew(&TIMES, &nothing, &SecretState::NotFound, times(0));
    assert_eq!(plan, LeafPlan { step: Step::Create, reason: Reason::SecretMissing });
    for why in [ReadFailure::Forbidden, ReadFailure::NoResponse] {
        let plan = renew(&TIMES, &nothing, &SecretState::Unknown(why), times(0));
        assert_eq!(plan, LeafPlan { step: Step::Rest, reason: Reason::CaUnconfirmed });
    }
}

#[test]
fn a_certificate_is_signed_once_and_again_after_two_thirds_of_its_life() {
    let plan = |leaf, second| {
        let replica = ReplicaState { ca_set: Some((ca_set(), times(second))), leaf };
        renew(&TIMES, &replica, &found(&ca_set()), times(second)).reason
    };
    assert_eq!(plan(None, 0), Reason::FirstIssue);
    let leaf = Some(leaf(&made(0), 0));
    assert_eq!(plan(leaf.clone(), 599), Reason::UpToDate);
    assert_eq!(plan(leaf.clone(), 600), Reason::RenewalDue);
    assert_eq!(plan(leaf, 900), Reason::LeafInvalid);
}

#[test]
fn another_authority_signs_at_once() {
    let promoted = ca_set().with_next(made(10)).promote(at(20));
    let plan = renew(&TIMES, &replica(&promoted, Some(leaf(&made(0), 0))), &SILENCE, times(30));
    assert_eq!(plan, LeafPlan { step: Step::Sign, reason: Reason::CaChanged });
}

#[test]
fn a_replica_that_is_cut_off_keeps_what_it_has_once_it_cannot_know_what_signs() {
    let replica = replica(&ca_set(), None);
    let plan = |times| renew(&TIMES, &replica, &SILENCE, times);
    assert_eq!(plan(times(FRESH)).step, Step::Sign);
    assert_eq!(
        plan(times(FRESH + 1)),
        LeafPlan { step: Step::Rest, reason: Reason::CaUnconfirmed }
    );
    // A machine that slept: only the wall clock knows. A clock that was put back: only the other.
    let slept = Times { wall: at(400), ..times(1) };
    let jumped = Times { wall: at(-400), ..times(1) };
    for times in [slept, jumped] {
        assert_eq!(plan(times).reason, Reason::CaUnconfirmed);
    }
}

#[test]
fn what_is_not_valid_now_signs_nothing() {
    let mut replica = replica(&ca_set(), Some(leaf(&made(0), 0)));
    let asked = Times { wall: at(20_000), ..times(0) };
    replica.ca_set = Some((ca_set(), asked));
    let plan = renew(&TIMES, &replica, &SILENCE, asked);
    assert_eq!(plan, LeafPlan { step: Step::Rest, reason: Reason::NoCa });
    let lost = CaSet { current: None, ..ca_set() };
    replica.ca_set = Some((lost, times(0)));
    assert_eq!(renew(&TIMES, &replica, &SILENCE, times(0)).reason, Reason::NoCa);
}

#[test]
fn a_clock_that_is_put_back_gets_a_certificate_that_is_valid_then() {
    let early = made(-4000);
    let ca_set = CaSet::new(early.clone(), &[]);
    let back = Times { wall: at(-3600), ..times(0) };
    let replica = ReplicaState { ca_set: Some((ca_set, back)), leaf: Some(leaf(&early, 0)) };
    let plan = renew(&TIMES, &replica, &SILENCE, back);
    assert_eq!(plan, LeafPlan { step: Step::Sign, reason: Reason::LeafInvalid });
    let leaf = leaf(&early, -3600);
    assert!(leaf.from <= at(-3600) && at(-3600) < leaf.until);
}

#[test]
fn a_certificate_never_outlives_its_authority_and_is_not_signed_again_for_nothing() {
    let last = leaf(&made(0), 8500);
    assert_eq!(last.until, made(0).certificate.until);
    let replica = ReplicaState { ca_set: Some((ca_set(), times(8900))), leaf: Some(last) };
    let plan = renew(&TIMES, &replica, &SILENCE, times(8900));
    assert_eq!(plan, LeafPlan { step: Step::Rest, reason: Reason::UpToDate });
    assert!(rest(&TIMES, &replica, plan, at(8900)) >= Duration::from_secs(30));
}

#[test]
fn a_replica_can_be_called_when_every_target_that_asks_us_trusts_its_authority() {
    let with = |bundles: Vec<Vec<u8>>| TargetState::Managed { mark: String::new(), bundles };
    let ours = made(0).certificate;
    let (good, both) = (bundle([&ours]), bundle([&made(5).certificate, &ours]));
    let other = bundle([&made(5).certificate]);
    let replica = replica(&ca_set(), Some(leaf(&made(0), 0)));
    let called = |targets_state: &[TargetState], second| {
        is_trusted_by_targets(&replica, targets_state, at(second))
    };
    let trusting =
        [with(vec![good.clone()]), with(vec![both.clone(), good]), TargetState::NotFound];
    assert_eq!(called(&trusting, 1), Some(true));
    assert_eq!(called(&[TargetState::NotOurs], 1), Some(true));
    assert_eq!(called(&trusting, 901), Some(false));
    for lacking in [vec![both, other], vec![Vec::new()], vec![b"nonsense".to_vec()]] {
        assert_eq!(called(&[with(lacking)], 1), Some(false));
    }
    assert_eq!(called(&[TargetState::Unknown(ReadFailure::Forbidden)], 1), None);
    assert_eq!(is_trusted_by_targets(&ReplicaState::default(), &[], at(1)), Some(false));
}

#[test]
fn what_was_read_last_is_remembered_when_the_secret_is_gone() {
    let asked = times(0);
    let replica =
        ReplicaState::default().look(&found(&ca_set()), asked).look(&SecretState::NotFound, asked);
    assert_eq!(replica.remembered(), [made(0).certificate]);
    let anew = CaSet::new(made(50), &replica.remembered());
    assert!(anew.current.is_none(), "it must be trusted before it signs");
}
