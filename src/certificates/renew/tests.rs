//! What a replica does about its own certificate, rule by rule.
#![expect(clippy::arithmetic_side_effects, reason = "the numbers of a test are small")]

use super::*;
use crate::certificates::seen::Unread;
use crate::pki::authority::{Authority, PrivateKey, bundle};

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
    Times { now: Moment::new(Duration::from_secs(second)), wall }
}

fn made(second: i64) -> Authority {
    let der = second.to_be_bytes().to_vec();
    let (from, until) = (TIMES.from(at(second)), later(at(second), TIMES.ca));
    Authority { certificate: Certificate { der, from, until }, key: PrivateKey::new(Vec::new()) }
}

fn leaf(authority: &Authority, second: i64) -> Leaf {
    let (from, until) = span(&TIMES, &authority.certificate, at(second));
    Leaf { authority: authority.certificate.clone(), signed: at(second), from, until }
}

fn found(ring: &Ring) -> Reading {
    Reading::Found { ring: Box::new(ring.clone()), damage: Vec::new() }
}

fn held(ring: &Ring, leaf: Option<Leaf>) -> Held {
    Held { leaf, ring: Some((ring.clone(), times(0))) }
}

fn ring() -> Ring {
    Ring::new(made(0), &[])
}

const SILENCE: Reading = Reading::Unknown(Unread::Unanswered);

#[test]
fn a_secret_is_made_only_if_the_api_server_says_that_there_is_none() {
    let nothing = Held::default();
    let plan = renew(&TIMES, &nothing, &Reading::Absent, times(0));
    assert_eq!(plan, Renewal { step: Step::Create, because: Because::Absent });
    for why in [Unread::Refused, Unread::Unanswered] {
        let plan = renew(&TIMES, &nothing, &Reading::Unknown(why), times(0));
        assert_eq!(plan, Renewal { step: Step::Rest, because: Because::Stale });
    }
}

#[test]
fn a_certificate_is_signed_once_and_again_after_two_thirds_of_its_life() {
    let plan = |leaf, second| {
        let held = Held { ring: Some((ring(), times(second))), leaf };
        renew(&TIMES, &held, &found(&ring()), times(second)).because
    };
    assert_eq!(plan(None, 0), Because::First);
    let leaf = Some(leaf(&made(0), 0));
    assert_eq!(plan(leaf.clone(), 599), Because::Well);
    assert_eq!(plan(leaf.clone(), 600), Because::Old);
    assert_eq!(plan(leaf, 900), Because::Invalid);
}

#[test]
fn another_authority_signs_at_once() {
    let promoted = ring().with_next(made(10)).promote(at(20));
    let plan = renew(&TIMES, &held(&promoted, Some(leaf(&made(0), 0))), &SILENCE, times(30));
    assert_eq!(plan, Renewal { step: Step::Sign, because: Because::Promoted });
}

#[test]
fn a_replica_that_is_cut_off_keeps_what_it_has_once_it_cannot_know_what_signs() {
    let held = held(&ring(), None);
    let plan = |times| renew(&TIMES, &held, &SILENCE, times);
    assert_eq!(plan(times(FRESH)).step, Step::Sign);
    assert_eq!(plan(times(FRESH + 1)), Renewal { step: Step::Rest, because: Because::Stale });
    // A machine that slept: only the wall clock knows. A clock that was put back: only the other.
    let slept = Times { wall: at(400), ..times(1) };
    let jumped = Times { wall: at(-400), ..times(1) };
    for times in [slept, jumped] {
        assert_eq!(plan(times).because, Because::Stale);
    }
}

#[test]
fn what_is_not_valid_now_signs_nothing() {
    let mut held = held(&ring(), Some(leaf(&made(0), 0)));
    let asked = Times { wall: at(20_000), ..times(0) };
    held.ring = Some((ring(), asked));
    let plan = renew(&TIMES, &held, &SILENCE, asked);
    assert_eq!(plan, Renewal { step: Step::Rest, because: Because::NothingSigns });
    let lost = Ring { current: None, ..ring() };
    held.ring = Some((lost, times(0)));
    assert_eq!(renew(&TIMES, &held, &SILENCE, times(0)).because, Because::NothingSigns);
}

#[test]
fn a_clock_that_is_put_back_gets_a_certificate_that_is_valid_then() {
    let early = made(-4000);
    let ring = Ring::new(early.clone(), &[]);
    let back = Times { wall: at(-3600), ..times(0) };
    let held = Held { ring: Some((ring, back)), leaf: Some(leaf(&early, 0)) };
    let plan = renew(&TIMES, &held, &SILENCE, back);
    assert_eq!(plan, Renewal { step: Step::Sign, because: Because::Invalid });
    let leaf = leaf(&early, -3600);
    assert!(leaf.from <= at(-3600) && at(-3600) < leaf.until);
}

#[test]
fn a_certificate_never_outlives_its_authority_and_is_not_signed_again_for_nothing() {
    let last = leaf(&made(0), 8500);
    assert_eq!(last.until, made(0).certificate.until);
    let held = Held { ring: Some((ring(), times(8900))), leaf: Some(last) };
    let plan = renew(&TIMES, &held, &SILENCE, times(8900));
    assert_eq!(plan, Renewal { step: Step::Rest, because: Because::Well });
    assert!(rest(&TIMES, &held, plan, at(8900)) >= Duration::from_secs(30));
}

#[test]
fn a_replica_can_be_called_when_every_target_that_asks_us_trusts_its_authority() {
    let with = |bundles: Vec<Vec<u8>>| Sight::Found { mark: String::new(), bundles };
    let ours = made(0).certificate;
    let (good, both) = (bundle([&ours]), bundle([&made(5).certificate, &ours]));
    let other = bundle([&made(5).certificate]);
    let held = held(&ring(), Some(leaf(&made(0), 0)));
    let called = |sights: &[Sight], second| can_be_called(&held, sights, at(second));
    let trusting = [with(vec![good.clone()]), with(vec![both.clone(), good]), Sight::Absent];
    assert_eq!(called(&trusting, 1), Some(true));
    assert_eq!(called(&[Sight::Elsewhere], 1), Some(true));
    assert_eq!(called(&trusting, 901), Some(false));
    for lacking in [vec![both, other], vec![Vec::new()], vec![b"nonsense".to_vec()]] {
        assert_eq!(called(&[with(lacking)], 1), Some(false));
    }
    assert_eq!(called(&[Sight::Unknown(Unread::Refused)], 1), None);
    assert_eq!(can_be_called(&Held::default(), &[], at(1)), Some(false));
}

#[test]
fn what_was_read_last_is_remembered_when_the_secret_is_gone() {
    let asked = times(0);
    let held = Held::default().look(&found(&ring()), asked).look(&Reading::Absent, asked);
    assert_eq!(held.remembered(), [made(0).certificate]);
    let anew = Ring::new(made(50), &held.remembered());
    assert!(anew.current.is_none(), "it must be trusted before it signs");
}
