//! What one pass over the ring and its targets knows. Data and questions only.
//! Comes in: what the API server said, or that it did not. Goes out: `Seen`, and a `Memory` that is
//! carried from pass to pass. May touch: `api`. Pure. What could not be read is unknown, and unknown
//! is neither absent nor as it was.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::Timestamp;

use super::lifetimes::Lifetimes;
use super::ring::{Damage, Ring};
use crate::api::moment::Moment;
use crate::pki::authority::Certificate;

/// Everything that a decision about the ring needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    /// How long things live.
    pub(crate) lifetimes: &'a Lifetimes,
    /// The wall clock: what certificates are judged by. It jumps.
    pub(crate) wall: Timestamp,
    /// The monotonic clock: what waiting is counted by.
    pub(crate) now: Moment,
    /// The Secret.
    pub(crate) reading: &'a Reading,
    /// The targets, always in the same order.
    pub(crate) targets: &'a [Sight],
    /// What this leader knows, this pass included; see [`Memory::look`].
    pub(crate) memory: &'a Memory,
}

/// The Secret as it was read, or that it was not.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reading {
    /// The Secret exists.
    Found {
        /// What it says.
        ring: Box<Ring>,
        /// What of it is broken.
        damage: Vec<Damage>,
    },
    /// The API server said that there is none.
    Absent,
    /// The API server did not say.
    Unknown(Unread),
}

/// One object that holds a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// It asks our Service, once or more often.
    Found {
        /// Its uid and its generation: if it is the same, nobody has changed it in between.
        mark: String,
        /// The bundle of each of its webhooks.
        bundles: Vec<Vec<u8>>,
    },
    /// It is there, and does not ask our Service: it is not ours to touch.
    Elsewhere,
    /// The API server said that there is none.
    Absent,
    /// The API server did not say.
    Unknown(Unread),
}

/// Why something could not be read. It makes no difference to what is safe, only to who can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// The API server understood and said no.
    Refused,
    /// No answer came, or one that said nothing.
    Unanswered,
}

impl Sight {
    /// Whether it holds this bundle and nothing else, as far as it asks us at all; none, if that
    /// is not known.
    pub(crate) fn has(&self, bundle: &[u8]) -> Option<bool> {
        match self {
            Self::Found { mark: _, bundles } => Some(bundles.iter().all(|it| it == bundle)),
            Self::Elsewhere | Self::Absent => Some(true),
            Self::Unknown(_) => None,
        }
    }
}

/// What a leader carries from one pass to the next. A term begins without any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// The bundle that every target holds, and since when.
    pub(crate) trusted: Option<Trusted>,
    /// The bundle that was last put into each target, and when.
    pub(crate) injected: Vec<Injected>,
    /// The rule that last wrote the Secret, and when.
    pub(crate) written: Option<(&'static str, Moment)>,
    /// What signs, by its bytes, and since when this leader has seen it do so.
    pub(crate) signing: Option<(Vec<u8>, Moment)>,
    /// The certificates of the last ring that was whole.
    pub(crate) known: Vec<Certificate>,
}

/// A bundle that all targets were seen to hold in every pass since a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trusted {
    bundle: Vec<u8>,
    marks: Vec<String>,
    since: Moment,
}

/// A bundle that was put into a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Injected {
    pub(crate) target: usize,
    pub(crate) bundle: Vec<u8>,
    pub(crate) at: Moment,
}

impl Memory {
    /// What is remembered after a look whose answers were there at `now`.
    pub(crate) fn look(mut self, reading: &Reading, targets: &[Sight], now: Moment) -> Self {
        let Reading::Found { ring, damage } = reading else {
            return self;
        };
        let current = ring.current.as_ref().map(|it| it.certificate.der.clone());
        if current.is_some() && damage.is_empty() {
            self.known = ring.certificates().into_iter().cloned().collect();
        }
        self.signing = match (self.signing, current) {
            (Some((der, since)), Some(current)) if der == current => Some((der, since)),
            (_, current) => current.map(|der| (der, now)),
        };
        self.trusted = look_again(self.trusted, ring.bundle(), targets, now);
        self
    }

    /// What is remembered after a bundle was put into a target, or may have been.
    pub(crate) fn injected(mut self, target: usize, bundle: Vec<u8>, at: Moment) -> Self {
        self.injected.retain(|it| it.target != target);
        self.injected.push(Injected { target, bundle, at });
        self
    }

    /// How long this leader has seen the same authority sign.
    pub(crate) fn signed_for(&self, now: Moment) -> Duration {
        self.signing.as_ref().map_or(Duration::ZERO, |(_, since)| now.since(*since))
    }

    /// How long all targets have held this bundle before our eyes.
    pub(crate) fn settled(&self, bundle: &[u8], now: Moment) -> Option<Duration> {
        let trusted = self.trusted.as_ref().filter(|it| it.bundle == bundle)?;
        Some(now.since(trusted.since))
    }
}

/// Goes on counting if every target is as it was at the last look, mark for mark, and begins anew
/// otherwise. A look that was not answered says nothing: if the marks are the same at the next one,
/// nothing was changed in between.
fn look_again(
    before: Option<Trusted>,
    bundle: Vec<u8>,
    targets: &[Sight],
    now: Moment,
) -> Option<Trusted> {
    let held: Vec<Option<bool>> = targets.iter().map(|target| target.has(&bundle)).collect();
    let before = before.filter(|it| it.bundle == bundle);
    if held.contains(&Some(false)) {
        return None;
    }
    if held.contains(&None) {
        return before;
    }
    let marks: Vec<String> = targets.iter().map(mark).collect();
    let since = before.filter(|it| it.marks == marks).map_or(now, |it| it.since);
    Some(Trusted { bundle, marks, since })
}

fn mark(target: &Sight) -> String {
    match target {
        Sight::Found { mark, bundles: _ } => mark.clone(),
        Sight::Elsewhere => "elsewhere".to_owned(),
        Sight::Absent => "absent".to_owned(),
        Sight::Unknown(_) => "unknown".to_owned(),
    }
}
