//! When a side comes to rest on others, one sentence each.

use std::time::Duration;

use super::super::ca_set::CaSet;
use super::super::readiness::{MemberReadiness, PodTrust, ProbeResults, TlsProbe, WaitingFor};
use super::super::source::DesiredTrust;
use super::super::trust_bundle::{MAX_EXTERNAL_CAS, Side, TrustBundle};
use super::super::trust_change::{TrustChangeContext, TrustDecision, TrustPhase, next};
use super::super::trust_state::{TrustState, TrustStates, TrustStep};
use super::external_secret::{Elsewhere, elsewhere};
use super::*;

const DAY: i64 = 24 * 60 * 60;

/// A cluster of two in the middle of its life, of which one side is looked at.
struct Case {
    ring: CaSet,
    footing: TrustState,
    wish: Option<DesiredTrust>,
    is_used: bool,
    may_move: bool,
    seats: Vec<PodTrust>,
    proof: Option<ProbeResults>,
    now: Timestamp,
}

fn seat(text: &str, word: &str) -> PodTrust {
    PodTrust { member: name(text), pod: format!("uid of {text}"), trusts: Some(word.to_owned()) }
}

fn wish(theirs: &Elsewhere) -> DesiredTrust {
    let roots = TrustBundle::external(vec![theirs.authority.certificate.clone()]);
    DesiredTrust { roots, pair: Some(theirs.pair.clone()) }
}

fn ours() -> DesiredTrust {
    DesiredTrust { roots: TrustBundle::managed(), pair: None }
}

impl Case {
    fn of(footing: TrustState, wish: DesiredTrust) -> Self {
        Self {
            ring: ring(),
            footing,
            wish: Some(wish),
            is_used: true,
            may_move: true,
            seats: vec![seat("main-a", "now"), seat("main-b", "now")],
            proof: None,
            now: at(0),
        }
    }

    fn next(&self) -> TrustDecision {
        let wished = self.wish.as_ref().map(|it| it.roots.list(&self.ring, Side::Client));
        let wished = wished.unwrap_or_default();
        let facts = TrustChangeContext {
            footing: &self.footing,
            wish: self.wish.as_ref(),
            is_used: self.is_used,
            may_move: self.may_move,
            overlap: Duration::from_hours(24),
            now: self.now,
            proven: &self.footing.proven.list(&self.ring, Side::Client),
            wished: &wished,
            company: MemberReadiness {
                word: "now",
                members: &[name("main-a"), name("main-b")],
                seats: &self.seats,
            },
        };
        next(&facts, self.proof.as_ref())
    }

    /// What comes next is done.
    fn moved(mut self) -> Self {
        let TrustDecision::Apply(change) = self.next() else { panic!("{:?}", self.next()) };
        let both = TrustStates { client: self.footing, peer: TrustState::managed() };
        self.footing = both.moved(&[(Side::Client, change)], self.now).client;
        self
    }

    fn later(mut self, second: i64) -> Self {
        self.now = at(second);
        self
    }

    fn shown(mut self, a: TlsProbe, b: TlsProbe) -> Self {
        self.proof = Some([(name("main-a"), a), (name("main-b"), b)].into());
        self
    }
}

#[test]
fn a_cluster_that_nobody_uses_yet_rests_on_what_it_shall_from_the_beginning() {
    let theirs = elsewhere();
    let mut case = Case::of(TrustState::managed(), wish(&theirs));
    case.is_used = false;
    case.may_move = false;
    let case = case.moved();
    assert!(case.footing.rests_on(&wish(&theirs)));
    assert_eq!(case.footing.pair, Some(theirs.pair));
    assert_eq!(case.next(), TrustDecision::Idle);
}

#[test]
fn others_are_trusted_then_shown_then_alone() {
    let theirs = elsewhere();
    let case = Case::of(TrustState::managed(), wish(&theirs)).moved();
    let both = TrustBundle::managed().and(&wish(&theirs).roots);
    assert_eq!((&case.footing.told, &case.footing.proven), (&both, &TrustBundle::managed()));
    assert_eq!(case.footing.stage(&wish(&theirs)), TrustPhase::Distributing);
    // Everybody can read it now, and has a day.
    let case = case.moved();
    assert_eq!(case.footing.since, Some((at(0), wish(&theirs).roots)));
    assert_eq!(case.next(), TrustDecision::Wait(WaitingFor::Overlap(at(DAY))));
    let case = case.later(DAY);
    assert_eq!(case.next(), TrustDecision::NeedsProbe);
    let case = case.shown(TlsProbe::Ok, TlsProbe::Ok).moved();
    assert_eq!(case.footing.proven, both);
    assert_eq!(case.footing.stage(&wish(&theirs)), TrustPhase::Retiring);
    // From now on the operator shows what was given, and applications have a day again.
    let case = case.moved();
    assert_eq!(case.footing.pair, Some(theirs.pair.clone()));
    let case = case.moved();
    assert_eq!(case.next(), TrustDecision::Wait(WaitingFor::Overlap(at(2 * DAY))));
    let case = case.later(2 * DAY).moved();
    assert_eq!(case.footing.stage(&wish(&theirs)), TrustPhase::Verifying);
    assert_eq!(case.footing.told, wish(&theirs).roots);
    let case = case.moved();
    assert!(case.footing.rests_on(&wish(&theirs)));
    assert_eq!(case.next(), TrustDecision::Idle);
}

/// A cluster that was told to trust nobody but these any more.
fn dropped(theirs: &Elsewhere) -> Case {
    let case = Case::of(TrustState::managed(), wish(theirs)).moved().moved().later(DAY);
    let case = case.shown(TlsProbe::Ok, TlsProbe::Ok).moved().moved().moved();
    let mut case = case.later(2 * DAY).moved();
    case.proof = None;
    case
}

#[test]
fn who_was_dropped_is_remembered_until_every_member_has_shown_that_it_trusts_others() {
    let theirs = elsewhere();
    let mut case = dropped(&theirs);
    let ours = TrustBundle::managed().list(&case.ring, Side::Client);
    assert_eq!(case.footing.unnamed(&case.ring, Side::Client), ours);
    assert!(!case.footing.rests_on(&wish(&theirs)), "our own authorities must not turn meanwhile");
    assert_eq!(case.next(), TrustDecision::NeedsProbe, "applications are not waited for");
    case.seats = vec![seat("main-a", "now"), seat("main-b", "before")];
    assert_eq!(case.next(), TrustDecision::Wait(WaitingFor::Restart(vec![name("main-b")])));
    case.seats = vec![seat("main-a", "now"), seat("main-b", "now")];
    let case = case.shown(TlsProbe::Ok, TlsProbe::TrustsOldCa);
    assert_eq!(
        case.next(),
        TrustDecision::Wait(WaitingFor::Probe(name("main-b"), TlsProbe::TrustsOldCa))
    );
    let case = case.shown(TlsProbe::Ok, TlsProbe::Ok);
    assert_eq!(case.next(), TrustDecision::Apply(TrustStep::Finish));
    assert_eq!(case.moved().next(), TrustDecision::Idle);
}

#[test]
fn nothing_is_at_rest_that_is_on_its_way_also_if_nobody_knows_whereto() {
    let theirs = elsewhere();
    assert!(TrustState::managed().is_at_rest());
    let asked = Case::of(TrustState::managed(), wish(&theirs));
    assert_eq!(asked.footing.stage(&wish(&theirs)), TrustPhase::Requested);
    let introduced = asked.moved();
    assert!(!introduced.footing.is_at_rest());
    let retiring = introduced.moved().later(DAY).shown(TlsProbe::Ok, TlsProbe::Ok).moved();
    assert_eq!(retiring.footing.stage(&wish(&theirs)), TrustPhase::Retiring);
    assert!(!retiring.footing.is_at_rest(), "members show theirs, and trust ours");
    let dropped = dropped(&theirs);
    assert!(!dropped.footing.is_at_rest());
    assert!(dropped.shown(TlsProbe::Ok, TlsProbe::Ok).moved().footing.is_at_rest());
}

#[test]
fn too_many_authorities_are_told_and_not_waited_for_in_silence() {
    let several = |count: usize| {
        let all = (0..count).map(|_| elsewhere().authority.certificate).collect();
        DesiredTrust { roots: TrustBundle::external(all), pair: None }
    };
    let (a, b) = (several(MAX_EXTERNAL_CAS), several(MAX_EXTERNAL_CAS));
    let both = a.roots.and(&b.roots);
    let footing = TrustState { proven: both.clone(), told: both, ..TrustState::managed() };
    assert_eq!(
        Case::of(footing.clone(), several(1)).next(),
        TrustDecision::Wait(WaitingFor::BundleSpace)
    );
    assert_ne!(
        Case::of(footing, b).next(),
        TrustDecision::Wait(WaitingFor::BundleSpace),
        "that is the way out"
    );
}

#[test]
fn what_an_older_release_has_written_down_is_read() {
    let held = ring().secret(&blueprint(&spec()));
    let moves = [(Side::Client, TrustStep::Initialize(wish(&elsewhere()).roots, None))];
    let footings = TrustStates::managed().moved(&moves, at(0));
    let patch = footings.written(&held);
    let text: ByteString = serde_json::from_value(patch["data"]["trust-state"].clone()).unwrap();
    let mut written: serde_json::Value = serde_json::from_slice(&text.0).unwrap();
    for side in ["client", "peer"] {
        assert!(written[side].as_object_mut().unwrap().remove("dropped").is_some());
    }
    let older = written.to_string();
    assert_eq!(
        TrustStates::read(&spoiled(&held, "trust-state", Some(older.as_bytes()))),
        Ok(footings)
    );
}

#[test]
fn who_was_dropped_and_comes_back_may_be_named_again() {
    let mut case = dropped(&elsewhere());
    case.wish = Some(ours());
    let case = case.moved();
    assert_eq!(case.footing.stage(&ours()), TrustPhase::Distributing);
    assert_eq!(case.footing.unnamed(&case.ring, Side::Client), []);
}

#[test]
fn who_was_dropped_is_asked_for_on_the_way_to_others_too() {
    let others = elsewhere();
    let mut case = dropped(&elsewhere());
    case.wish = Some(wish(&others));
    let case = case.moved().moved().later(3 * DAY);
    let ours = TrustBundle::managed().list(&case.ring, Side::Client);
    assert_eq!(case.footing.unnamed(&case.ring, Side::Client), ours);
    let case = case.shown(TlsProbe::Ok, TlsProbe::Ok).moved();
    assert_eq!(case.footing.dropped, [], "the same calls have shown it");
}

#[test]
fn who_has_the_name_of_somebody_who_is_trusted_is_not_asked_for() {
    // Ours have numbers in their names; those of others need not.
    let namesake = || {
        let mut params = rcgen::CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.key_usages = vec![rcgen::KeyUsagePurpose::KeyCertSign];
        let made = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        Certificate::parse_ca_der(made.der()).unwrap()
    };
    let (before, after) = (namesake(), namesake());
    assert_ne!(before, after);
    let roots = TrustBundle::external(vec![after]);
    let gone = vec![before];
    let footing = TrustState {
        proven: roots.clone(),
        told: roots,
        dropped: gone.clone(),
        ..TrustState::managed()
    };
    assert_eq!(footing.unnamed(&ring(), Side::Client), []);
    let footing = TrustState { dropped: gone.clone(), ..TrustState::managed() };
    assert_eq!(footing.unnamed(&ring(), Side::Client), gone);
}

#[test]
fn nothing_is_shown_before_all_have_shown_to_take_it() {
    let case = Case::of(TrustState::managed(), wish(&elsewhere())).moved().moved().later(DAY);
    let refuses = TrustDecision::Wait(WaitingFor::Probe(name("main-b"), TlsProbe::RejectsNewCa));
    assert_eq!(case.shown(TlsProbe::Ok, TlsProbe::RejectsNewCa).next(), refuses);
    let mut case = Case::of(TrustState::managed(), wish(&elsewhere())).moved().moved().later(DAY);
    case.seats = vec![seat("main-a", "now"), seat("main-b", "before")];
    assert_eq!(case.next(), TrustDecision::Wait(WaitingFor::Restart(vec![name("main-b")])));
    case.seats = vec![seat("main-a", "now")];
    assert_eq!(case.next(), TrustDecision::Wait(WaitingFor::Restart(vec![name("main-b")])));
}

#[test]
fn what_the_same_authority_signed_is_shown_at_once() {
    let theirs = elsewhere();
    let mut case = Case::of(TrustState::managed(), wish(&theirs));
    case.is_used = false;
    let mut case = case.moved();
    case.is_used = true;
    case.may_move = false;
    let again = Elsewhere { pair: theirs.application.clone(), ..theirs.clone() };
    case.wish = Some(wish(&again));
    let case = case.moved();
    assert_eq!(case.footing.pair, Some(theirs.application));
    assert_eq!(case.next(), TrustDecision::Idle);
}

#[test]
fn a_change_is_taken_back_on_its_way() {
    let theirs = elsewhere();
    let mut case = Case::of(TrustState::managed(), wish(&theirs)).moved().moved();
    case.wish = Some(ours());
    let case = case.moved();
    assert_eq!(case.footing, TrustState::managed());
    assert_eq!(case.next(), TrustDecision::Idle);
}

#[test]
fn whoever_changes_their_mind_gives_applications_their_time_again() {
    let theirs = elsewhere();
    let case = Case::of(TrustState::managed(), wish(&theirs)).moved().moved().later(DAY);
    let case = case.shown(TlsProbe::Ok, TlsProbe::Ok).moved().moved().moved();
    let mut case = case.later(2 * DAY - 1);
    assert_eq!(
        case.next(),
        TrustDecision::Wait(WaitingFor::Overlap(at(2 * DAY))),
        "ours are about to go"
    );
    case.wish = Some(ours());
    let case = case.moved();
    assert_eq!(case.next(), TrustDecision::Wait(WaitingFor::Overlap(at(3 * DAY - 1))));
}

#[test]
fn whoever_comes_home_forgets_what_was_given() {
    let theirs = elsewhere();
    let mut case = Case::of(TrustState::managed(), wish(&theirs));
    case.is_used = false;
    let mut case = case.moved();
    case.is_used = true;
    case.wish = Some(ours());
    let case = case.moved().moved().later(DAY).shown(TlsProbe::Ok, TlsProbe::Ok).moved();
    assert_eq!(case.footing.pair, Some(theirs.pair), "the operator must still be known");
    let case = case.moved().later(3 * DAY).moved();
    assert_eq!(case.footing.pair, None);
    assert_eq!(case.moved().footing, TrustState::managed());
}

#[test]
fn what_cannot_be_used_changes_nothing() {
    let mut case = Case::of(TrustState::managed(), wish(&elsewhere())).moved();
    case.wish = None;
    assert_eq!(case.next(), TrustDecision::Idle);
}

#[test]
fn a_cluster_that_is_left_alone_stays_where_it_is() {
    let mut case = Case::of(TrustState::managed(), wish(&elsewhere()));
    case.may_move = false;
    assert_eq!(case.next(), TrustDecision::Wait(WaitingFor::Unpause));
}

#[test]
fn a_footing_that_somebody_has_written_to_is_named_and_not_quoted() {
    let ring = ring();
    let held = ring.secret(&blueprint(&spec()));
    assert_eq!(TrustStates::read(&held), Ok(TrustStates::managed()));
    for text in ["hunter2", "{}", r#"{"client": {"key": "hunter2"}, "peer": null}"#] {
        let broken =
            TrustStates::read(&spoiled(&held, "trust-state", Some(text.as_bytes()))).unwrap_err();
        assert_eq!((broken.key, broken.why), ("trust-state", ParseError::Modified));
        assert!(!format!("{broken} {broken:?}").contains("hunter2"));
    }
    let moves = [(Side::Client, TrustStep::Initialize(TrustBundle::external(Vec::new()), None))];
    let nobody = TrustStates::managed().moved(&moves, at(0)).written(&held);
    let value = serde_json::from_value(nobody["data"]["trust-state"].clone()).unwrap();
    let mut held = held;
    held.data.as_mut().unwrap().insert("trust-state".to_owned(), value);
    assert!(TrustStates::read(&held).is_err(), "somebody must be trusted");
}
