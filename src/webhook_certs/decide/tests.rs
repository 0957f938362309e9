//! What the leader does about the ring, rule by rule.
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
    settle: Duration::from_secs(30),
};
/// Longer than anything that was signed by an authority before is in use.
const IN_USE: i64 = 300 + 900 + 60;

/// Long enough for everybody to have heard of everything.
const WHILE: u64 = 100;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn moment(second: u64) -> MonotonicTime {
    MonotonicTime::new(Duration::from_secs(second))
}

/// An authority that was made at this second.
fn made(second: i64) -> CertificateAuthority {
    let der = second.to_be_bytes().to_vec();
    let (from, until) = (TIMES.from(at(second)), later(at(second), TIMES.ca));
    CertificateAuthority {
        certificate: Certificate { der, from, until },
        key: PrivateKey::new(Vec::new()),
    }
}

fn found(ca_set: &CaSet) -> SecretState {
    SecretState::Found { ca_set: Box::new(ca_set.clone()), invalid: Vec::new() }
}

fn broken(ca_set: &CaSet) -> SecretState {
    let invalid = vec![InvalidEntry { place: "next.key", why: ParseError::NotAKey }];
    SecretState::Found { ca_set: Box::new(ca_set.clone()), invalid }
}

fn holding(bundle: Vec<u8>) -> TargetState {
    TargetState::Managed { mark: "1".to_owned(), bundles: vec![bundle] }
}

/// A world in which everything was seen for a while as it is now.
struct World {
    wall: Timestamp,
    secret_state: SecretState,
    targets: Vec<TargetState>,
    memory: LeaderState,
}

impl World {
    fn new(ca_set: &CaSet, second: i64) -> Self {
        let targets =
            vec![holding(ca_set.bundle()), holding(ca_set.bundle()), TargetState::NotFound];
        let memory = LeaderState::default().look(&found(ca_set), &targets, moment(0));
        Self { wall: at(second), secret_state: found(ca_set), targets, memory }
    }

    fn decide_at(&self, second: u64) -> Plan {
        let memory = self.memory.clone().look(&self.secret_state, &self.targets, moment(second));
        decide(&self.seen(&memory, second))
    }

    fn seen<'a>(&'a self, memory: &'a LeaderState, second: u64) -> ObservedState<'a> {
        ObservedState {
            lifetimes: &TIMES,
            wall: self.wall,
            now: moment(second),
            secret_state: &self.secret_state,
            targets: &self.targets,
            memory,
        }
    }

    /// What is done, and the ring that comes of it.
    fn carried_out(&self) -> (Reason, CaSet) {
        let memory = self.memory.clone().look(&self.secret_state, &self.targets, moment(WHILE));
        let seen = self.seen(&memory, WHILE);
        let plan = decide(&seen);
        let SecretState::Found { ca_set, .. } = &self.secret_state else { panic!("no ca_set") };
        let fresh = || Ok::<_, ()>(made(self.wall.as_second() - 1_000_000));
        (plan.reason, apply(&seen, ca_set, plan, fresh).unwrap().unwrap())
    }

    fn expect(&self, step: Step, reason: Reason) {
        assert_eq!(self.decide_at(WHILE), Plan { step, reason });
    }
}

fn fresh() -> CaSet {
    CaSet::new(made(0), &[])
}

/// One that waits to be promoted.
fn published() -> CaSet {
    fresh().with_next(made(6000))
}

fn promoted() -> CaSet {
    published().promote(at(6100))
}

#[test]
fn a_ring_that_is_young_and_trusted_is_left_alone() {
    World::new(&fresh(), 10).expect(Step::Wait, Reason::UpToDate);
}

#[test]
fn what_is_unknown_or_absent_is_not_written() {
    let mut world = World::new(&fresh(), 10);
    for (secret_state, reason) in [
        (SecretState::Unknown(ReadFailure::Forbidden), Reason::SecretForbidden),
        (SecretState::Unknown(ReadFailure::NoResponse), Reason::SecretUnreadable),
        (SecretState::NotFound, Reason::SecretMissing),
    ] {
        world.secret_state = secret_state;
        world.expect(Step::Wait, reason);
    }
}

#[test]
fn an_authority_gets_a_successor_after_two_thirds_of_its_life() {
    let old = 6000 - 75 - 1;
    World::new(&fresh(), old - 100).expect(Step::Wait, Reason::UpToDate);
    World::new(&fresh(), old + 100).expect(Step::StageNextCa, Reason::CaRenewalDue);
    World::new(&published(), 6010).expect(Step::ActivateNextCa, Reason::Propagated);
}

#[test]
fn a_target_that_lacks_the_bundle_gets_it_and_one_that_has_it_is_not_touched() {
    let mut world = World::new(&fresh(), 10);
    world.targets[1] = holding(b"another".to_vec());
    world.expect(Step::InjectBundle(1), Reason::BundleMissing);
    // One webhook of several is enough.
    let bundles = vec![fresh().bundle(), Vec::new()];
    world.targets[1] = TargetState::Managed { mark: "1".to_owned(), bundles };
    world.expect(Step::InjectBundle(1), Reason::BundleMissing);
}

#[test]
fn a_target_that_is_absent_elsewhere_or_unknown_is_not_written() {
    for state in
        [TargetState::NotFound, TargetState::NotOurs, TargetState::Unknown(ReadFailure::Forbidden)]
    {
        let mut world = World::new(&fresh(), 10);
        world.targets[1] = state;
        world.expect(Step::Wait, Reason::UpToDate);
    }
}

#[test]
fn an_unknown_target_keeps_no_other_from_its_bundle() {
    let mut world = World::new(&fresh(), 10);
    world.targets[0] = TargetState::Unknown(ReadFailure::NoResponse);
    world.targets[1] = holding(Vec::new());
    world.expect(Step::InjectBundle(1), Reason::BundleMissing);
}

#[test]
fn who_undoes_what_we_write_does_not_make_us_race() {
    let mut world = World::new(&fresh(), 10);
    world.targets[0] = holding(Vec::new());
    let plan = world.decide_at(60);
    let memory = world.memory.clone();
    world.memory = after_write(memory, plan, Outcome::Written, fresh().bundle(), moment(60));
    assert_eq!(world.decide_at(61).reason, Reason::WriteReverted);
    assert_eq!(world.decide_at(70).step, Step::InjectBundle(0));
    // Another target is not kept waiting by the first.
    world.targets[1] = holding(Vec::new());
    assert_eq!(world.decide_at(61).step, Step::InjectBundle(1));
}

#[test]
fn a_target_that_is_refused_to_us_keeps_no_other_from_its_bundle() {
    let mut world = World::new(&fresh(), 10);
    world.targets[0] = holding(Vec::new());
    world.targets[1] = holding(Vec::new());
    let plan = world.decide_at(60);
    let memory = world.memory.clone();
    world.memory = after_write(memory, plan, Outcome::Refused, fresh().bundle(), moment(60));
    assert_eq!(world.decide_at(61).step, Step::InjectBundle(1));
}

#[test]
fn no_rule_writes_the_secret_twice_within_seconds() {
    let mut world = World::new(&fresh(), 7000);
    let plan = world.decide_at(60);
    assert_eq!(plan.step, Step::StageNextCa);
    let memory = world.memory.clone();
    for outcome in [Outcome::Written, Outcome::Unknown] {
        world.memory = after_write(memory.clone(), plan, outcome, Vec::new(), moment(60));
        assert_eq!(world.decide_at(69).reason, Reason::WriteReverted);
        assert_eq!(world.decide_at(70).step, Step::StageNextCa);
    }
    // What certainly was not done may be tried again.
    world.memory = after_write(memory, plan, Outcome::Late, Vec::new(), moment(60));
    assert_eq!(world.decide_at(61).step, Step::StageNextCa);
}

#[test]
fn an_authority_signs_only_after_every_target_has_held_it_for_the_whole_time() {
    let world = World::new(&published(), 6010);
    assert_eq!(world.decide_at(29), plan(Step::Wait, Reason::Propagating));
    assert_eq!(world.decide_at(30), plan(Step::ActivateNextCa, Reason::Propagated));
}

#[test]
fn a_target_that_was_changed_meanwhile_is_waited_for_anew() {
    let mut world = World::new(&published(), 6010);
    let bundles = vec![published().bundle()];
    world.targets[1] = TargetState::Managed { mark: "2".to_owned(), bundles };
    assert_eq!(world.decide_at(40), plan(Step::Wait, Reason::Propagating));
    world.memory = world.memory.look(&world.secret_state, &world.targets, moment(40));
    assert_eq!(world.decide_at(69), plan(Step::Wait, Reason::Propagating));
    assert_eq!(world.decide_at(70), plan(Step::ActivateNextCa, Reason::Propagated));
}

#[test]
fn a_target_that_appears_is_waited_for_anew() {
    let mut world = World::new(&published(), 6010);
    world.targets[2] = holding(published().bundle());
    assert_eq!(world.decide_at(40), plan(Step::Wait, Reason::Propagating));
}

#[test]
fn nobody_is_promoted_while_a_target_is_unknown_and_the_waiting_is_not_lost() {
    let mut world = World::new(&published(), 6010);
    world.targets[1] = TargetState::Unknown(ReadFailure::NoResponse);
    assert_eq!(world.decide_at(40), plan(Step::Wait, Reason::TargetUnknown));
    world.memory = world.memory.look(&world.secret_state, &world.targets, moment(40));
    world.targets[1] = holding(published().bundle());
    assert_eq!(world.decide_at(41), plan(Step::ActivateNextCa, Reason::Propagated));
}

#[test]
fn what_signed_before_is_trusted_until_the_last_of_it_has_ended() {
    World::new(&promoted(), 6100 + IN_USE - 1).expect(Step::Wait, Reason::UpToDate);
    let world = World::new(&promoted(), 6100 + IN_USE);
    world.expect(Step::RemovePreviousCa, Reason::PreviousCaUnused);
    assert_eq!(world.carried_out().1.bundle(), CaSet::new(made(6000), &[]).bundle());
}

#[test]
fn a_ring_that_is_well_waits_with_promoting_until_the_one_before_is_dropped() {
    let crowded = promoted().with_next(made(6200));
    World::new(&crowded, 6300).expect(Step::Wait, Reason::PreviousCaInUse);
    World::new(&crowded, 6100 + IN_USE).expect(Step::RemovePreviousCa, Reason::PreviousCaUnused);
    let unstamped = CaSet { promoted: None, ..crowded };
    World::new(&unstamped, 6300).expect(Step::RecordRotationTime, Reason::RotationTimeMissing);
}

#[test]
fn a_promotion_whose_time_is_lost_or_far_in_the_future_is_counted_from_now() {
    for time in [None, Some(at(6300 + IN_USE + 1))] {
        let world = World::new(&CaSet { promoted: time, ..promoted() }, 6300);
        world.expect(Step::RecordRotationTime, Reason::RotationTimeMissing);
        assert_eq!(world.carried_out().1.promoted, Some(at(6300)));
    }
    // A little in the future is a clock that was put right: it costs nothing to wait.
    let world = World::new(&CaSet { promoted: Some(at(9000)), ..promoted() }, 8000);
    world.expect(Step::Wait, Reason::UpToDate);
}

#[test]
fn an_empty_secret_gets_an_authority_that_signs_at_once() {
    let mut world = World::new(&CaSet::default(), 10);
    world.expect(Step::CreateCa, Reason::NoCa);
    // But not if this leader has seen better days: what signed then is still in use.
    world.memory = LeaderState::default().look(&found(&fresh()), &world.targets, moment(0));
    world.expect(Step::StageNextCa, Reason::CurrentCaMissing);
    let (_, ca_set) = world.carried_out();
    assert_eq!(ca_set.previous, [made(0).certificate]);
    assert!(ca_set.current.is_none() && ca_set.next.is_some());
}

#[test]
fn a_lost_authority_stays_trusted_while_its_successor_is_published() {
    let lost = CaSet { previous: vec![made(0).certificate], ..CaSet::default() };
    let world = World::new(&lost, 10);
    world.expect(Step::StageNextCa, Reason::CurrentCaMissing);
    let (_, ca_set) = world.carried_out();
    assert_eq!(ca_set.certificates(), [&made(0).certificate, &made(10).certificate]);
    // Nothing signs, so nothing else is waited for.
    World::new(&ca_set, 20).expect(Step::ActivateNextCa, Reason::Propagated);
}

#[test]
fn damage_to_what_is_not_in_use_is_mended_without_a_new_authority() {
    let mut world = World::new(&fresh(), 10);
    world.secret_state = broken(&fresh());
    world.expect(Step::RepairSecret, Reason::SecretInvalid);
    assert_eq!(world.carried_out().1, fresh());
    // Even if the clock is wrong at the same time, the write that is due mends it.
    world.wall = at(20_000);
    world.expect(Step::StageNextCa, Reason::CurrentInvalid);
}

#[test]
fn ten_years_forward_publish_one_successor_and_drop_nothing_that_may_be_in_use() {
    let years = 10 * 366 * 86_400;
    let mut world = World::new(&promoted(), years);
    let mut steps = Vec::new();
    for pass in 0..8_u64 {
        let second = 60 * (pass + 1);
        world.memory = world.memory.look(&world.secret_state, &world.targets, moment(second));
        let now = second + 59;
        let memory = world.memory.clone();
        let seen = world.seen(&memory, now);
        let plan = decide(&seen);
        let SecretState::Found { ca_set, .. } = &world.secret_state else { panic!("no ca_set") };
        let next = apply(&seen, ca_set, plan, || Ok::<_, ()>(made(years))).unwrap();
        let bundle = ca_set.bundle();
        if let Step::InjectBundle(place) = plan.step {
            world.targets[place] =
                TargetState::Managed { mark: now.to_string(), bundles: vec![bundle] };
        }
        world.secret_state = next.as_ref().map_or(world.secret_state, found);
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
    let SecretState::Found { ca_set, .. } = &world.secret_state else { panic!("no ca_set") };
    assert!(ca_set.certificates().len() == 3, "{ca_set:?}");
}

#[test]
fn an_hour_back_makes_one_successor_that_is_valid_then_and_later() {
    let world = World::new(&fresh(), -3600);
    world.expect(Step::StageNextCa, Reason::CurrentInvalid);
    let (_, ca_set) = world.carried_out();
    let back = World::new(&ca_set, -3600);
    back.expect(Step::ActivateNextCa, Reason::Propagated);
    let (_, ca_set) = back.carried_out();
    World::new(&ca_set, -3600).expect(Step::Wait, Reason::UpToDate);
    World::new(&ca_set, -3600 + IN_USE - 1).expect(Step::Wait, Reason::UpToDate);
}

#[test]
fn a_clock_that_jumps_forward_drops_nothing_that_a_replica_may_still_show() {
    let world = World::new(&promoted(), 6100 + IN_USE);
    let heard = TIMES.propagation_bound().as_secs();
    assert_eq!(world.decide_at(heard - 1), plan(Step::Wait, Reason::PreviousCaInUse));
    assert_eq!(world.decide_at(heard), plan(Step::RemovePreviousCa, Reason::PreviousCaUnused));
    // Whoever has promoted it just now has not seen it sign yet.
    let mut world = world;
    world.memory = LeaderState::default().look(&found(&published()), &world.targets, moment(0));
    assert_eq!(world.decide_at(heard), plan(Step::Wait, Reason::PreviousCaInUse));
}

#[test]
fn a_successor_that_is_not_valid_is_replaced_before_it_signs() {
    let published = fresh().with_next(made(20_000));
    let world = World::new(&published, 6500);
    world.expect(Step::StageNextCa, Reason::NextInvalid);
    let (_, ca_set) = world.carried_out();
    assert_eq!(ca_set.next, Some(made(6500)));
    assert!(!ca_set.certificates().contains(&&made(20_000).certificate));
}

#[test]
fn a_leader_looks_soon_while_it_waits_for_others_and_rarely_when_all_is_well() {
    let world = World::new(&published(), 6010);
    let memory = world.memory.clone();
    let seen = world.seen(&memory, 1);
    let well = rest(&seen, plan(Step::Wait, Reason::UpToDate));
    let settling = rest(&seen, plan(Step::Wait, Reason::Propagating));
    assert!(settling < TIMES.settle && settling < well && well <= Duration::from_mins(1));
}
