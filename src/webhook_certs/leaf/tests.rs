//! The rules for a replica's serving certificate, one by one.
#![expect(clippy::arithmetic_side_effects, reason = "the numbers of a test are small")]

use super::*;
use crate::pki::ca::{CertificateAuthority, PrivateKey, bundle};
use crate::webhook_certs::state::ReadFailure;

const TIMES: Lifetimes = Lifetimes {
    ca: Duration::from_mins(150),
    leaf: Duration::from_mins(15),
    propagation_delay: Duration::from_secs(30),
};
/// `Lifetimes::max_staleness` in seconds.
const MAX_STALENESS: u64 = 300;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

/// Both clocks, `second` seconds after the start.
fn times(second: u64) -> Times {
    let wall = at(i64::try_from(second).unwrap());
    Times { now: MonotonicTime::new(Duration::from_secs(second)), wall }
}

fn ca(second: i64) -> CertificateAuthority {
    let der = second.to_be_bytes().to_vec();
    let (from, until) = (TIMES.not_before(at(second)), later(at(second), TIMES.ca));
    CertificateAuthority {
        certificate: Certificate { der, from, until },
        key: PrivateKey::new(Vec::new()),
    }
}

fn leaf(ca: &CertificateAuthority, second: i64) -> Leaf {
    let (from, until) = leaf_validity(&TIMES, &ca.certificate, at(second));
    Leaf { ca: ca.certificate.clone(), issued: at(second), from, until }
}

fn found(ca_set: &CaSet) -> SecretState {
    SecretState::Found { ca_set: Box::new(ca_set.clone()), invalid: Vec::new() }
}

fn replica(ca_set: &CaSet, leaf: Option<Leaf>) -> ReplicaState {
    ReplicaState { leaf, ca_set: Some((ca_set.clone(), times(0))) }
}

fn ca_set() -> CaSet {
    CaSet::new(ca(0), &[])
}

const UNREADABLE: SecretState = SecretState::Unknown(ReadFailure::NoResponse);

#[test]
fn secret_is_created_only_if_the_api_server_reports_not_found() {
    let nothing = ReplicaState::default();
    let plan = plan_leaf(&TIMES, &nothing, &SecretState::NotFound, times(0));
    assert_eq!(plan, LeafPlan { step: LeafStep::CreateSecret, reason: LeafReason::SecretMissing });
    for failure in [ReadFailure::Forbidden, ReadFailure::NoResponse] {
        let plan = plan_leaf(&TIMES, &nothing, &SecretState::Unknown(failure), times(0));
        assert_eq!(plan, LeafPlan { step: LeafStep::Wait, reason: LeafReason::CaUnconfirmed });
    }
}

#[test]
fn leaf_is_issued_once_and_renewed_after_two_thirds_of_its_lifetime() {
    let plan = |leaf, second| {
        let replica = ReplicaState { ca_set: Some((ca_set(), times(second))), leaf };
        plan_leaf(&TIMES, &replica, &found(&ca_set()), times(second)).reason
    };
    assert_eq!(plan(None, 0), LeafReason::FirstIssue);
    let leaf = Some(leaf(&ca(0), 0));
    assert_eq!(plan(leaf.clone(), 599), LeafReason::UpToDate);
    assert_eq!(plan(leaf.clone(), 600), LeafReason::RenewalDue);
    assert_eq!(plan(leaf, 900), LeafReason::LeafInvalid);
}

#[test]
fn leaf_is_issued_again_at_once_when_the_ca_changes() {
    let rotated = ca_set().with_next(ca(10)).activate_next(at(20));
    let plan = plan_leaf(&TIMES, &replica(&rotated, Some(leaf(&ca(0), 0))), &UNREADABLE, times(30));
    assert_eq!(plan, LeafPlan { step: LeafStep::Issue, reason: LeafReason::CaChanged });
}

#[test]
fn disconnected_replica_keeps_its_leaf_once_the_ca_is_unconfirmed() {
    let replica = replica(&ca_set(), None);
    let plan = |times| plan_leaf(&TIMES, &replica, &UNREADABLE, times);
    assert_eq!(plan(times(MAX_STALENESS)).step, LeafStep::Issue);
    assert_eq!(
        plan(times(MAX_STALENESS + 1)),
        LeafPlan { step: LeafStep::Wait, reason: LeafReason::CaUnconfirmed }
    );
    // A suspended machine: only the wall clock has advanced. A clock that was set back: only the
    // monotonic clock has.
    let suspended = Times { wall: at(400), ..times(1) };
    let jumped = Times { wall: at(-400), ..times(1) };
    for times in [suspended, jumped] {
        assert_eq!(plan(times).reason, LeafReason::CaUnconfirmed);
    }
}

#[test]
fn ca_outside_its_validity_issues_no_leaf() {
    let mut replica = replica(&ca_set(), Some(leaf(&ca(0), 0)));
    let sent = Times { wall: at(20_000), ..times(0) };
    replica.ca_set = Some((ca_set(), sent));
    let plan = plan_leaf(&TIMES, &replica, &UNREADABLE, sent);
    assert_eq!(plan, LeafPlan { step: LeafStep::Wait, reason: LeafReason::NoCa });
    let lost = CaSet { current: None, ..ca_set() };
    replica.ca_set = Some((lost, times(0)));
    assert_eq!(plan_leaf(&TIMES, &replica, &UNREADABLE, times(0)).reason, LeafReason::NoCa);
}

#[test]
fn clock_that_is_set_back_gets_a_leaf_that_is_valid_then() {
    let early = ca(-4000);
    let ca_set = CaSet::new(early.clone(), &[]);
    let back = Times { wall: at(-3600), ..times(0) };
    let replica = ReplicaState { ca_set: Some((ca_set, back)), leaf: Some(leaf(&early, 0)) };
    let plan = plan_leaf(&TIMES, &replica, &UNREADABLE, back);
    assert_eq!(plan, LeafPlan { step: LeafStep::Issue, reason: LeafReason::LeafInvalid });
    let leaf = leaf(&early, -3600);
    assert!(leaf.from <= at(-3600) && at(-3600) < leaf.until);
}

#[test]
fn leaf_expires_with_its_ca_and_is_not_issued_again_in_vain() {
    let last = leaf(&ca(0), 8500);
    assert_eq!(last.until, ca(0).certificate.until);
    let replica = ReplicaState { ca_set: Some((ca_set(), times(8900))), leaf: Some(last) };
    let plan = plan_leaf(&TIMES, &replica, &UNREADABLE, times(8900));
    assert_eq!(plan, LeafPlan { step: LeafStep::Wait, reason: LeafReason::UpToDate });
    assert!(requeue_delay(&TIMES, &replica, plan, at(8900)) >= Duration::from_secs(30));
}

#[test]
fn replica_is_trusted_when_every_managed_target_has_its_ca() {
    let with = |bundles: Vec<Vec<u8>>| TargetState::Managed { generation: String::new(), bundles };
    let ours = ca(0).certificate;
    let (own, both) = (bundle([&ours]), bundle([&ca(5).certificate, &ours]));
    let other = bundle([&ca(5).certificate]);
    let replica = replica(&ca_set(), Some(leaf(&ca(0), 0)));
    let trusted = |target_states: &[TargetState], second| {
        is_trusted_by_targets(&replica, target_states, at(second))
    };
    let trusting = [with(vec![own.clone()]), with(vec![both.clone(), own]), TargetState::NotFound];
    assert_eq!(trusted(&trusting, 1), Some(true));
    assert_eq!(trusted(&[TargetState::NotOurs], 1), Some(true));
    assert_eq!(trusted(&trusting, 901), Some(false));
    for lacking in [vec![both, other], vec![Vec::new()], vec![b"nonsense".to_vec()]] {
        assert_eq!(trusted(&[with(lacking)], 1), Some(false));
    }
    assert_eq!(trusted(&[TargetState::Unknown(ReadFailure::Forbidden)], 1), None);
    assert_eq!(is_trusted_by_targets(&ReplicaState::default(), &[], at(1)), Some(false));
}

#[test]
fn ca_set_read_last_is_kept_when_the_secret_is_deleted() {
    let sent = times(0);
    let replica = ReplicaState::default()
        .observe(&found(&ca_set()), sent)
        .observe(&SecretState::NotFound, sent);
    assert_eq!(replica.known_certificates(), [ca(0).certificate]);
    let recreated = CaSet::new(ca(50), &replica.known_certificates());
    assert!(recreated.current.is_none(), "the CA must be trusted before it signs");
}
