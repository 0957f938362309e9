//! When a side comes to rest on others, one sentence each.

use std::time::Duration;

use super::super::changeover::{Facts, Next, Stage, next};
use super::super::company::{Company, Proof, Seat, Shown, Waits};
use super::super::footing::{Footing, Footings, Move};
use super::super::offer::Wish;
use super::super::ring::Ring;
use super::super::roots::{MOST_GIVEN, Roots, Side};
use super::given::{Elsewhere, elsewhere};
use super::*;

const DAY: i64 = 24 * 60 * 60;

/// A cluster of two in the middle of its life, of which one side is looked at.
struct Case {
    ring: Ring,
    footing: Footing,
    wish: Option<Wish>,
    is_used: bool,
    may_move: bool,
    seats: Vec<Seat>,
    proof: Option<Proof>,
    now: Timestamp,
}

fn seat(text: &str, word: &str) -> Seat {
    Seat { member: name(text), pod: format!("uid of {text}"), trusts: Some(word.to_owned()) }
}

fn wish(theirs: &Elsewhere) -> Wish {
    let roots = Roots::given(vec![theirs.authority.certificate.clone()]);
    Wish { roots, pair: Some(theirs.pair.clone()) }
}

fn ours() -> Wish {
    Wish { roots: Roots::ours(), pair: None }
}

impl Case {
    fn of(footing: Footing, wish: Wish) -> Self {
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

    fn next(&self) -> Next {
        let wished = self.wish.as_ref().map(|it| it.roots.list(&self.ring, Side::Client));
        let wished = wished.unwrap_or_default();
        let facts = Facts {
            footing: &self.footing,
            wish: self.wish.as_ref(),
            is_used: self.is_used,
            may_move: self.may_move,
            overlap: Duration::from_hours(24),
            now: self.now,
            proven: &self.footing.proven.list(&self.ring, Side::Client),
            wished: &wished,
            company: Company {
                word: "now",
                members: &[name("main-a"), name("main-b")],
                seats: &self.seats,
            },
        };
        next(&facts, self.proof.as_ref())
    }

    /// What comes next is done.
    fn moved(mut self) -> Self {
        let Next::Move(change) = self.next() else { panic!("{:?}", self.next()) };
        let both = Footings { client: self.footing, peer: Footing::plain() };
        self.footing = both.moved(&[(Side::Client, change)], self.now).client;
        self
    }

    fn later(mut self, second: i64) -> Self {
        self.now = at(second);
        self
    }

    fn shown(mut self, a: Shown, b: Shown) -> Self {
        self.proof = Some([(name("main-a"), a), (name("main-b"), b)].into());
        self
    }
}

#[test]
fn a_cluster_that_nobody_uses_yet_rests_on_what_it_shall_from_the_beginning() {
    let theirs = elsewhere();
    let mut case = Case::of(Footing::plain(), wish(&theirs));
    case.is_used = false;
    case.may_move = false;
    let case = case.moved();
    assert!(case.footing.rests_on(&wish(&theirs)));
    assert_eq!(case.footing.pair, Some(theirs.pair));
    assert_eq!(case.next(), Next::Rest);
}

#[test]
fn others_are_trusted_then_shown_then_alone() {
    let theirs = elsewhere();
    let case = Case::of(Footing::plain(), wish(&theirs)).moved();
    let both = Roots::ours().and(&wish(&theirs).roots);
    assert_eq!((&case.footing.told, &case.footing.proven), (&both, &Roots::ours()));
    assert_eq!(case.footing.stage(&wish(&theirs)), Stage::Introduced);
    // Everybody can read it now, and has a day.
    let case = case.moved();
    assert_eq!(case.footing.since, Some((at(0), wish(&theirs).roots)));
    assert_eq!(case.next(), Next::Wait(Waits::Until(at(DAY))));
    let case = case.later(DAY);
    assert_eq!(case.next(), Next::Prove);
    let case = case.shown(Shown::Well, Shown::Well).moved();
    assert_eq!(case.footing.proven, both);
    assert_eq!(case.footing.stage(&wish(&theirs)), Stage::Retiring);
    // From now on the operator shows what was given, and applications have a day again.
    let case = case.moved();
    assert_eq!(case.footing.pair, Some(theirs.pair.clone()));
    let case = case.moved();
    assert_eq!(case.next(), Next::Wait(Waits::Until(at(2 * DAY))));
    let case = case.later(2 * DAY).moved();
    assert_eq!(case.footing.stage(&wish(&theirs)), Stage::Dropped);
    assert_eq!(case.footing.told, wish(&theirs).roots);
    let case = case.moved();
    assert!(case.footing.rests_on(&wish(&theirs)));
    assert_eq!(case.next(), Next::Rest);
}

/// A cluster that was told to trust nobody but these any more.
fn dropped(theirs: &Elsewhere) -> Case {
    let case = Case::of(Footing::plain(), wish(theirs)).moved().moved().later(DAY);
    let case = case.shown(Shown::Well, Shown::Well).moved().moved().moved();
    let mut case = case.later(2 * DAY).moved();
    case.proof = None;
    case
}

#[test]
fn who_was_dropped_is_remembered_until_every_member_has_shown_that_it_trusts_others() {
    let theirs = elsewhere();
    let mut case = dropped(&theirs);
    let ours = Roots::ours().list(&case.ring, Side::Client);
    assert_eq!(case.footing.unnamed(&case.ring, Side::Client), ours);
    assert!(!case.footing.rests_on(&wish(&theirs)), "our own authorities must not turn meanwhile");
    assert_eq!(case.next(), Next::Prove, "applications are not waited for");
    case.seats = vec![seat("main-a", "now"), seat("main-b", "before")];
    assert_eq!(case.next(), Next::Wait(Waits::Started(vec![name("main-b")])));
    case.seats = vec![seat("main-a", "now"), seat("main-b", "now")];
    let case = case.shown(Shown::Well, Shown::StillTrusts);
    assert_eq!(case.next(), Next::Wait(Waits::Shown(name("main-b"), Shown::StillTrusts)));
    let case = case.shown(Shown::Well, Shown::Well);
    assert_eq!(case.next(), Next::Move(Move::Forget));
    assert_eq!(case.moved().next(), Next::Rest);
}

#[test]
fn nothing_is_at_rest_that_is_on_its_way_also_if_nobody_knows_whereto() {
    let theirs = elsewhere();
    assert!(Footing::plain().is_at_rest());
    let asked = Case::of(Footing::plain(), wish(&theirs));
    assert_eq!(asked.footing.stage(&wish(&theirs)), Stage::Asked);
    let introduced = asked.moved();
    assert!(!introduced.footing.is_at_rest());
    let retiring = introduced.moved().later(DAY).shown(Shown::Well, Shown::Well).moved();
    assert_eq!(retiring.footing.stage(&wish(&theirs)), Stage::Retiring);
    assert!(!retiring.footing.is_at_rest(), "members show theirs, and trust ours");
    let dropped = dropped(&theirs);
    assert!(!dropped.footing.is_at_rest());
    assert!(dropped.shown(Shown::Well, Shown::Well).moved().footing.is_at_rest());
}

#[test]
fn too_many_authorities_are_told_and_not_waited_for_in_silence() {
    let several = |count: usize| {
        let all = (0..count).map(|_| elsewhere().authority.certificate).collect();
        Wish { roots: Roots::given(all), pair: None }
    };
    let (a, b) = (several(MOST_GIVEN), several(MOST_GIVEN));
    let both = a.roots.and(&b.roots);
    let footing = Footing { proven: both.clone(), told: both, ..Footing::plain() };
    assert_eq!(Case::of(footing.clone(), several(1)).next(), Next::Wait(Waits::Room));
    assert_ne!(Case::of(footing, b).next(), Next::Wait(Waits::Room), "that is the way out");
}

#[test]
fn what_an_older_release_has_written_down_is_read() {
    let held = ring().secret(&blueprint(&spec()));
    let moves = [(Side::Client, Move::Settle(wish(&elsewhere()).roots, None))];
    let footings = Footings::plain().moved(&moves, at(0));
    let patch = footings.written(&held);
    let text: ByteString = serde_json::from_value(patch["data"]["sources"].clone()).unwrap();
    let mut written: serde_json::Value = serde_json::from_slice(&text.0).unwrap();
    for side in ["client", "peer"] {
        assert!(written[side].as_object_mut().unwrap().remove("dropped").is_some());
    }
    let older = written.to_string();
    assert_eq!(Footings::read(&spoiled(&held, "sources", Some(older.as_bytes()))), Ok(footings));
}

#[test]
fn who_was_dropped_and_comes_back_may_be_named_again() {
    let mut case = dropped(&elsewhere());
    case.wish = Some(ours());
    let case = case.moved();
    assert_eq!(case.footing.stage(&ours()), Stage::Introduced);
    assert_eq!(case.footing.unnamed(&case.ring, Side::Client), []);
}

#[test]
fn who_was_dropped_is_asked_for_on_the_way_to_others_too() {
    let others = elsewhere();
    let mut case = dropped(&elsewhere());
    case.wish = Some(wish(&others));
    let case = case.moved().moved().later(3 * DAY);
    let ours = Roots::ours().list(&case.ring, Side::Client);
    assert_eq!(case.footing.unnamed(&case.ring, Side::Client), ours);
    let case = case.shown(Shown::Well, Shown::Well).moved();
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
        Certificate::of_authority(made.der()).unwrap()
    };
    let (before, after) = (namesake(), namesake());
    assert_ne!(before, after);
    let roots = Roots::given(vec![after]);
    let gone = vec![before];
    let footing =
        Footing { proven: roots.clone(), told: roots, dropped: gone.clone(), ..Footing::plain() };
    assert_eq!(footing.unnamed(&ring(), Side::Client), []);
    let footing = Footing { dropped: gone.clone(), ..Footing::plain() };
    assert_eq!(footing.unnamed(&ring(), Side::Client), gone);
}

#[test]
fn nothing_is_shown_before_all_have_shown_to_take_it() {
    let case = Case::of(Footing::plain(), wish(&elsewhere())).moved().moved().later(DAY);
    let refuses = Next::Wait(Waits::Shown(name("main-b"), Shown::Refuses));
    assert_eq!(case.shown(Shown::Well, Shown::Refuses).next(), refuses);
    let mut case = Case::of(Footing::plain(), wish(&elsewhere())).moved().moved().later(DAY);
    case.seats = vec![seat("main-a", "now"), seat("main-b", "before")];
    assert_eq!(case.next(), Next::Wait(Waits::Started(vec![name("main-b")])));
    case.seats = vec![seat("main-a", "now")];
    assert_eq!(case.next(), Next::Wait(Waits::Started(vec![name("main-b")])));
}

#[test]
fn what_the_same_authority_signed_is_shown_at_once() {
    let theirs = elsewhere();
    let mut case = Case::of(Footing::plain(), wish(&theirs));
    case.is_used = false;
    let mut case = case.moved();
    case.is_used = true;
    case.may_move = false;
    let again = Elsewhere { pair: theirs.application.clone(), ..theirs.clone() };
    case.wish = Some(wish(&again));
    let case = case.moved();
    assert_eq!(case.footing.pair, Some(theirs.application));
    assert_eq!(case.next(), Next::Rest);
}

#[test]
fn a_change_is_taken_back_on_its_way() {
    let theirs = elsewhere();
    let mut case = Case::of(Footing::plain(), wish(&theirs)).moved().moved();
    case.wish = Some(ours());
    let case = case.moved();
    assert_eq!(case.footing, Footing::plain());
    assert_eq!(case.next(), Next::Rest);
}

#[test]
fn whoever_changes_their_mind_gives_applications_their_time_again() {
    let theirs = elsewhere();
    let case = Case::of(Footing::plain(), wish(&theirs)).moved().moved().later(DAY);
    let case = case.shown(Shown::Well, Shown::Well).moved().moved().moved();
    let mut case = case.later(2 * DAY - 1);
    assert_eq!(case.next(), Next::Wait(Waits::Until(at(2 * DAY))), "ours are about to go");
    case.wish = Some(ours());
    let case = case.moved();
    assert_eq!(case.next(), Next::Wait(Waits::Until(at(3 * DAY - 1))));
}

#[test]
fn whoever_comes_home_forgets_what_was_given() {
    let theirs = elsewhere();
    let mut case = Case::of(Footing::plain(), wish(&theirs));
    case.is_used = false;
    let mut case = case.moved();
    case.is_used = true;
    case.wish = Some(ours());
    let case = case.moved().moved().later(DAY).shown(Shown::Well, Shown::Well).moved();
    assert_eq!(case.footing.pair, Some(theirs.pair), "the operator must still be known");
    let case = case.moved().later(3 * DAY).moved();
    assert_eq!(case.footing.pair, None);
    assert_eq!(case.moved().footing, Footing::plain());
}

#[test]
fn what_cannot_be_used_changes_nothing() {
    let mut case = Case::of(Footing::plain(), wish(&elsewhere())).moved();
    case.wish = None;
    assert_eq!(case.next(), Next::Rest);
}

#[test]
fn a_cluster_that_is_left_alone_stays_where_it_is() {
    let mut case = Case::of(Footing::plain(), wish(&elsewhere()));
    case.may_move = false;
    assert_eq!(case.next(), Next::Wait(Waits::Allowed));
}

#[test]
fn a_footing_that_somebody_has_written_to_is_named_and_not_quoted() {
    let ring = ring();
    let held = ring.secret(&blueprint(&spec()));
    assert_eq!(Footings::read(&held), Ok(Footings::plain()));
    for text in ["hunter2", "{}", r#"{"client": {"key": "hunter2"}, "peer": null}"#] {
        let broken = Footings::read(&spoiled(&held, "sources", Some(text.as_bytes()))).unwrap_err();
        assert_eq!((broken.key, broken.why), ("sources", Unfit::Garbled));
        assert!(!format!("{broken} {broken:?}").contains("hunter2"));
    }
    let moves = [(Side::Client, Move::Settle(Roots::given(Vec::new()), None))];
    let nobody = Footings::plain().moved(&moves, at(0)).written(&held);
    let value = serde_json::from_value(nobody["data"]["sources"].clone()).unwrap();
    let mut held = held;
    held.data.as_mut().unwrap().insert("sources".to_owned(), value);
    assert!(Footings::read(&held).is_err(), "somebody must be trusted");
}
