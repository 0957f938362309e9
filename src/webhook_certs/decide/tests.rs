//! The rules of CA rotation, one by one.
#![expect(clippy::arithmetic_side_effects, reason = "the numbers of a test are small")]

use super::*;
use crate::api::monotonic::MonotonicTime;
use crate::pki::ca::{Certificate, ParseError, PrivateKey};
use crate::webhook_certs::apply::{Outcome, after_write, apply};
use crate::webhook_certs::lifetimes::{Lifetimes, later};
use crate::webhook_certs::state::LeaderState;
use jiff::Timestamp;

const TIMES: Lifetimes = Lifetimes {
    ca: Duration::from_mins(150),
    leaf: Duration::from_mins(15),
    propagation_delay: Duration::from_secs(30),
};
/// `Lifetimes::max_leaf_lifetime` in seconds: no leaf of a previous CA is in use for longer.
const MAX_LEAF_LIFETIME: i64 = 300 + 900 + 60;
/// Longer than every delay: each replica has observed every change.
const PROPAGATED: u64 = 100;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn instant(second: u64) -> MonotonicTime {
    MonotonicTime::new(Duration::from_secs(second))
}

/// A CA that was issued at this second.
fn ca(second: i64) -> CertificateAuthority {
    let der = second.to_be_bytes().to_vec();
    let (from, until) = (TIMES.not_before(at(second)), later(at(second), TIMES.ca));
    let certificate = Certificate { der, from, until };
    CertificateAuthority { certificate, key: PrivateKey::new(Vec::new()) }
}

fn found(ca_set: &CaSet) -> SecretState {
    SecretState::Found { ca_set: Box::new(ca_set.clone()), invalid: Vec::new() }
}

fn found_with_invalid_entry(ca_set: &CaSet) -> SecretState {
    let invalid = vec![InvalidEntry { key: "next.key", error: ParseError::NotAKey }];
    SecretState::Found { ca_set: Box::new(ca_set.clone()), invalid }
}

fn with_bundle(bundle: Vec<u8>) -> TargetState {
    TargetState::Managed { generation: "1".to_owned(), bundles: vec![bundle] }
}

/// A state that the leader has observed unchanged since second 0.
struct Scenario {
    wall: Timestamp,
    secret_state: SecretState,
    targets: Vec<TargetState>,
    leader_state: LeaderState,
}

impl Scenario {
    fn new(ca_set: &CaSet, second: i64) -> Self {
        let bundle = || with_bundle(ca_set.bundle());
        let targets = vec![bundle(), bundle(), TargetState::NotFound];
        let leader_state = LeaderState::default().observe(&found(ca_set), &targets, instant(0));
        Self { wall: at(second), secret_state: found(ca_set), targets, leader_state }
    }

    fn decide_at(&self, second: u64) -> Plan {
        decide(&self.state(&self.observed(second), second))
    }

    fn observed(&self, second: u64) -> LeaderState {
        self.leader_state.clone().observe(&self.secret_state, &self.targets, instant(second))
    }

    fn state<'a>(&'a self, leader_state: &'a LeaderState, second: u64) -> ObservedState<'a> {
        ObservedState {
            lifetimes: &TIMES,
            wall: self.wall,
            now: instant(second),
            secret_state: &self.secret_state,
            targets: &self.targets,
            leader_state,
        }
    }

    /// The reason of the next step, and the CA set after it.
    fn applied(&self) -> (Reason, CaSet) {
        let leader_state = self.observed(PROPAGATED);
        let state = self.state(&leader_state, PROPAGATED);
        let plan = decide(&state);
        let SecretState::Found { ca_set, .. } = &self.secret_state else { panic!("no CA set") };
        let new_ca = || Ok::<_, ()>(ca(self.wall.as_second() - 1_000_000));
        (plan.reason, apply(&state, ca_set, plan, new_ca).unwrap().unwrap())
    }

    fn expect(&self, step: Step, reason: Reason) {
        assert_eq!(self.decide_at(PROPAGATED), Plan { step, reason });
    }
}

fn fresh() -> CaSet {
    CaSet::new(ca(0), &[])
}

/// With a next CA that waits for its activation.
fn staged() -> CaSet {
    fresh().with_next(ca(6000))
}

fn rotated() -> CaSet {
    staged().activate_next(at(6100))
}

#[test]
fn young_ca_set_with_injected_bundles_is_not_changed() {
    Scenario::new(&fresh(), 10).expect(Step::Wait, Reason::UpToDate);
}

#[test]
fn unknown_or_missing_secret_is_not_written() {
    let mut scenario = Scenario::new(&fresh(), 10);
    for (secret_state, reason) in [
        (SecretState::Unknown(ReadFailure::Forbidden), Reason::SecretForbidden),
        (SecretState::Unknown(ReadFailure::NoResponse), Reason::SecretUnreadable),
        (SecretState::NotFound, Reason::SecretMissing),
    ] {
        scenario.secret_state = secret_state;
        scenario.expect(Step::Wait, reason);
    }
}

#[test]
fn next_ca_is_staged_after_two_thirds_of_the_ca_lifetime() {
    let old = 6000 - 75 - 1;
    Scenario::new(&fresh(), old - 100).expect(Step::Wait, Reason::UpToDate);
    Scenario::new(&fresh(), old + 100).expect(Step::StageNextCa, Reason::CaRenewalDue);
    Scenario::new(&staged(), 6010).expect(Step::ActivateNextCa, Reason::Propagated);
}

#[test]
fn bundle_is_injected_only_into_targets_that_lack_it() {
    let mut scenario = Scenario::new(&fresh(), 10);
    scenario.targets[1] = with_bundle(b"other".to_vec());
    scenario.expect(Step::InjectBundle(1), Reason::BundleMissing);
    // One webhook without the bundle is enough.
    let bundles = vec![fresh().bundle(), Vec::new()];
    scenario.targets[1] = TargetState::Managed { generation: "1".to_owned(), bundles };
    scenario.expect(Step::InjectBundle(1), Reason::BundleMissing);
}

#[test]
fn missing_foreign_or_unknown_target_is_not_written() {
    let unknown = TargetState::Unknown(ReadFailure::Forbidden);
    for state in [TargetState::NotFound, TargetState::NotOurs, unknown] {
        let mut scenario = Scenario::new(&fresh(), 10);
        scenario.targets[1] = state;
        scenario.expect(Step::Wait, Reason::UpToDate);
    }
}

#[test]
fn unknown_target_does_not_delay_the_other_targets() {
    let mut scenario = Scenario::new(&fresh(), 10);
    scenario.targets[0] = TargetState::Unknown(ReadFailure::NoResponse);
    scenario.targets[1] = with_bundle(Vec::new());
    scenario.expect(Step::InjectBundle(1), Reason::BundleMissing);
}

#[test]
fn reverted_injection_is_repeated_only_after_the_repair_interval() {
    let mut scenario = Scenario::new(&fresh(), 10);
    scenario.targets[0] = with_bundle(Vec::new());
    let plan = scenario.decide_at(60);
    let leader_state = scenario.leader_state.clone();
    scenario.leader_state =
        after_write(leader_state, plan, Outcome::Written, fresh().bundle(), instant(60));
    assert_eq!(scenario.decide_at(61).reason, Reason::WriteReverted);
    assert_eq!(scenario.decide_at(70).step, Step::InjectBundle(0));
    // The other target is not delayed by the first.
    scenario.targets[1] = with_bundle(Vec::new());
    assert_eq!(scenario.decide_at(61).step, Step::InjectBundle(1));
}

#[test]
fn rejected_injection_does_not_delay_the_other_targets() {
    let mut scenario = Scenario::new(&fresh(), 10);
    scenario.targets[0] = with_bundle(Vec::new());
    scenario.targets[1] = with_bundle(Vec::new());
    let plan = scenario.decide_at(60);
    let leader_state = scenario.leader_state.clone();
    scenario.leader_state =
        after_write(leader_state, plan, Outcome::Rejected, fresh().bundle(), instant(60));
    assert_eq!(scenario.decide_at(61).step, Step::InjectBundle(1));
}

#[test]
fn same_rule_does_not_write_the_secret_twice_within_the_repair_interval() {
    let mut scenario = Scenario::new(&fresh(), 7000);
    let plan = scenario.decide_at(60);
    assert_eq!(plan.step, Step::StageNextCa);
    let leader_state = scenario.leader_state.clone();
    for outcome in [Outcome::Written, Outcome::Unknown] {
        scenario.leader_state =
            after_write(leader_state.clone(), plan, outcome, Vec::new(), instant(60));
        assert_eq!(scenario.decide_at(69).reason, Reason::WriteReverted);
        assert_eq!(scenario.decide_at(70).step, Step::StageNextCa);
    }
    // A write that certainly was not stored is retried at once.
    scenario.leader_state =
        after_write(leader_state, plan, Outcome::Conflict, Vec::new(), instant(60));
    assert_eq!(scenario.decide_at(61).step, Step::StageNextCa);
}

#[test]
fn next_ca_is_activated_only_after_the_whole_propagation_delay() {
    let scenario = Scenario::new(&staged(), 6010);
    assert_eq!(scenario.decide_at(29), plan(Step::Wait, Reason::Propagating));
    assert_eq!(scenario.decide_at(30), plan(Step::ActivateNextCa, Reason::Propagated));
}

#[test]
fn changed_target_restarts_the_propagation_delay() {
    let mut scenario = Scenario::new(&staged(), 6010);
    let bundles = vec![staged().bundle()];
    scenario.targets[1] = TargetState::Managed { generation: "2".to_owned(), bundles };
    assert_eq!(scenario.decide_at(40), plan(Step::Wait, Reason::Propagating));
    scenario.leader_state =
        scenario.leader_state.observe(&scenario.secret_state, &scenario.targets, instant(40));
    assert_eq!(scenario.decide_at(69), plan(Step::Wait, Reason::Propagating));
    assert_eq!(scenario.decide_at(70), plan(Step::ActivateNextCa, Reason::Propagated));
}

#[test]
fn new_target_restarts_the_propagation_delay() {
    let mut scenario = Scenario::new(&staged(), 6010);
    scenario.targets[2] = with_bundle(staged().bundle());
    assert_eq!(scenario.decide_at(40), plan(Step::Wait, Reason::Propagating));
}

#[test]
fn unknown_target_blocks_activation_without_restarting_the_propagation_delay() {
    let mut scenario = Scenario::new(&staged(), 6010);
    scenario.targets[1] = TargetState::Unknown(ReadFailure::NoResponse);
    assert_eq!(scenario.decide_at(40), plan(Step::Wait, Reason::TargetUnknown));
    scenario.leader_state =
        scenario.leader_state.observe(&scenario.secret_state, &scenario.targets, instant(40));
    scenario.targets[1] = with_bundle(staged().bundle());
    assert_eq!(scenario.decide_at(41), plan(Step::ActivateNextCa, Reason::Propagated));
}

#[test]
fn previous_ca_is_removed_after_its_last_leaf_has_expired() {
    Scenario::new(&rotated(), 6100 + MAX_LEAF_LIFETIME - 1).expect(Step::Wait, Reason::UpToDate);
    let scenario = Scenario::new(&rotated(), 6100 + MAX_LEAF_LIFETIME);
    scenario.expect(Step::RemovePreviousCa, Reason::PreviousCaUnused);
    assert_eq!(scenario.applied().1.bundle(), CaSet::new(ca(6000), &[]).bundle());
}

#[test]
fn activation_waits_for_removal_of_the_previous_ca_while_the_current_one_signs() {
    let crowded = rotated().with_next(ca(6200));
    Scenario::new(&crowded, 6300).expect(Step::Wait, Reason::PreviousCaInUse);
    Scenario::new(&crowded, 6100 + MAX_LEAF_LIFETIME)
        .expect(Step::RemovePreviousCa, Reason::PreviousCaUnused);
    let without_time = CaSet { rotated_at: None, ..crowded };
    Scenario::new(&without_time, 6300)
        .expect(Step::RecordRotationTime, Reason::RotationTimeMissing);
}

#[test]
fn lost_or_far_future_rotation_time_is_recorded_again() {
    for time in [None, Some(at(6300 + MAX_LEAF_LIFETIME + 1))] {
        let scenario = Scenario::new(&CaSet { rotated_at: time, ..rotated() }, 6300);
        scenario.expect(Step::RecordRotationTime, Reason::RotationTimeMissing);
        assert_eq!(scenario.applied().1.rotated_at, Some(at(6300)));
    }
    // Slightly in the future: the clock was corrected. Waiting costs nothing.
    let scenario = Scenario::new(&CaSet { rotated_at: Some(at(9000)), ..rotated() }, 8000);
    scenario.expect(Step::Wait, Reason::UpToDate);
}

#[test]
fn empty_secret_gets_a_ca_that_signs_at_once() {
    let mut scenario = Scenario::new(&CaSet::default(), 10);
    scenario.expect(Step::CreateCa, Reason::NoCa);
    // But not if this leader has observed a CA before: its leaves may be in use.
    scenario.leader_state =
        LeaderState::default().observe(&found(&fresh()), &scenario.targets, instant(0));
    scenario.expect(Step::StageNextCa, Reason::CurrentCaMissing);
    let (_, ca_set) = scenario.applied();
    assert_eq!(ca_set.previous, [ca(0).certificate]);
    assert!(ca_set.current.is_none() && ca_set.next.is_some());
}

#[test]
fn lost_ca_stays_trusted_while_its_successor_propagates() {
    let lost = CaSet { previous: vec![ca(0).certificate], ..CaSet::default() };
    let scenario = Scenario::new(&lost, 10);
    scenario.expect(Step::StageNextCa, Reason::CurrentCaMissing);
    let (_, ca_set) = scenario.applied();
    assert_eq!(ca_set.certificates(), [&ca(0).certificate, &ca(10).certificate]);
    // No CA signs, so activation does not wait for the previous CA.
    Scenario::new(&ca_set, 20).expect(Step::ActivateNextCa, Reason::Propagated);
}

#[test]
fn invalid_entry_that_is_not_in_use_is_repaired_without_a_new_ca() {
    let mut scenario = Scenario::new(&fresh(), 10);
    scenario.secret_state = found_with_invalid_entry(&fresh());
    scenario.expect(Step::RepairSecret, Reason::SecretInvalid);
    assert_eq!(scenario.applied().1, fresh());
    // With a wrong clock at the same time, staging the next CA comes first and repairs the Secret.
    scenario.wall = at(20_000);
    scenario.expect(Step::StageNextCa, Reason::CurrentInvalid);
}

#[test]
fn clock_jump_of_ten_years_stages_one_ca_and_removes_none_that_may_be_in_use() {
    let years = 10 * 366 * 86_400;
    let mut scenario = Scenario::new(&rotated(), years);
    let mut steps = Vec::new();
    for round in 0..8_u64 {
        let second = 60 * (round + 1);
        scenario.leader_state = scenario.leader_state.observe(
            &scenario.secret_state,
            &scenario.targets,
            instant(second),
        );
        let now = second + 59;
        let leader_state = scenario.leader_state.clone();
        let state = scenario.state(&leader_state, now);
        let plan = decide(&state);
        let SecretState::Found { ca_set, .. } = &scenario.secret_state else { panic!("no CA set") };
        let next = apply(&state, ca_set, plan, || Ok::<_, ()>(ca(years))).unwrap();
        let bundle = ca_set.bundle();
        if let Step::InjectBundle(index) = plan.step {
            scenario.targets[index] =
                TargetState::Managed { generation: now.to_string(), bundles: vec![bundle] };
        }
        scenario.secret_state = next.as_ref().map_or(scenario.secret_state, found);
        steps.push(plan.step);
    }
    let expected = [
        Step::StageNextCa,
        Step::InjectBundle(0),
        Step::InjectBundle(1),
        Step::ActivateNextCa,
        Step::Wait,
        Step::Wait,
    ];
    assert_eq!(steps.get(..6), Some(expected.as_slice()), "{steps:?}");
    let SecretState::Found { ca_set, .. } = &scenario.secret_state else { panic!("no CA set") };
    assert!(ca_set.certificates().len() == 3, "{ca_set:?}");
}

#[test]
fn clock_set_back_by_an_hour_stages_one_ca_that_is_valid_then_and_later() {
    let scenario = Scenario::new(&fresh(), -3600);
    scenario.expect(Step::StageNextCa, Reason::CurrentInvalid);
    let (_, ca_set) = scenario.applied();
    let back = Scenario::new(&ca_set, -3600);
    back.expect(Step::ActivateNextCa, Reason::Propagated);
    let (_, ca_set) = back.applied();
    Scenario::new(&ca_set, -3600).expect(Step::Wait, Reason::UpToDate);
    Scenario::new(&ca_set, -3600 + MAX_LEAF_LIFETIME - 1).expect(Step::Wait, Reason::UpToDate);
}

#[test]
fn clock_jump_forward_removes_no_ca_whose_leaf_a_replica_may_still_present() {
    let scenario = Scenario::new(&rotated(), 6100 + MAX_LEAF_LIFETIME);
    let bound = TIMES.propagation_bound().as_secs();
    assert_eq!(scenario.decide_at(bound - 1), plan(Step::Wait, Reason::PreviousCaInUse));
    assert_eq!(scenario.decide_at(bound), plan(Step::RemovePreviousCa, Reason::PreviousCaUnused));
    // A leader that activated the CA just now has not observed it as current yet.
    let mut scenario = scenario;
    scenario.leader_state =
        LeaderState::default().observe(&found(&staged()), &scenario.targets, instant(0));
    assert_eq!(scenario.decide_at(bound), plan(Step::Wait, Reason::PreviousCaInUse));
}

#[test]
fn invalid_next_ca_is_replaced_before_it_signs() {
    let staged = fresh().with_next(ca(20_000));
    let scenario = Scenario::new(&staged, 6500);
    scenario.expect(Step::StageNextCa, Reason::NextInvalid);
    let (_, ca_set) = scenario.applied();
    assert_eq!(ca_set.next, Some(ca(6500)));
    assert!(!ca_set.certificates().contains(&&ca(20_000).certificate));
}

#[test]
fn requeue_delay_is_shorter_while_a_bundle_propagates() {
    let scenario = Scenario::new(&staged(), 6010);
    let leader_state = scenario.leader_state.clone();
    let state = scenario.state(&leader_state, 1);
    let idle = requeue_delay(&state, plan(Step::Wait, Reason::UpToDate));
    let propagating = requeue_delay(&state, plan(Step::Wait, Reason::Propagating));
    assert!(propagating < TIMES.propagation_delay);
    assert!(propagating < idle && idle <= Duration::from_mins(1));
}
