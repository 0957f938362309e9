//! What one pass over the ring and its targets knows. Data and questions only.
//! Comes in: what the API server said, or that it did not. Goes out: `ObservedState`, and a `LeaderState` that is
//! carried from pass to pass. May touch: `api`. Pure. What could not be read is unknown, and unknown
//! is neither absent nor as it was.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::Timestamp;

use super::ca_set::{CaSet, InvalidEntry};
use super::lifetimes::Lifetimes;
use crate::api::monotonic::MonotonicTime;
use crate::pki::ca::Certificate;

/// Everything that a decision about the ring needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObservedState<'a> {
    /// How long things live.
    pub(crate) lifetimes: &'a Lifetimes,
    /// The wall clock: what certificates are judged by. It jumps.
    pub(crate) wall: Timestamp,
    /// The monotonic clock: what waiting is counted by.
    pub(crate) now: MonotonicTime,
    /// The Secret.
    pub(crate) secret_state: &'a SecretState,
    /// The targets, always in the same order.
    pub(crate) targets: &'a [TargetState],
    /// What this leader knows, this pass included; see [`LeaderState::look`].
    pub(crate) memory: &'a LeaderState,
}

/// The Secret as it was read, or that it was not.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SecretState {
    /// The Secret exists.
    Found {
        /// What it says.
        ca_set: Box<CaSet>,
        /// What of it is broken.
        invalid: Vec<InvalidEntry>,
    },
    /// The API server said that there is none.
    NotFound,
    /// The API server did not say.
    Unknown(ReadFailure),
}

/// One object that holds a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TargetState {
    /// It asks our Service, once or more often.
    Managed {
        /// Its uid and its generation: if it is the same, nobody has changed it in between.
        mark: String,
        /// The bundle of each of its webhooks.
        bundles: Vec<Vec<u8>>,
    },
    /// It is there, and does not ask our Service: it is not ours to touch.
    NotOurs,
    /// The API server said that there is none.
    NotFound,
    /// The API server did not say.
    Unknown(ReadFailure),
}

/// Why something could not be read. It makes no difference to what is safe, only to who can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadFailure {
    /// The API server understood and said no.
    Forbidden,
    /// No answer came, or one that said nothing.
    NoResponse,
}

impl TargetState {
    /// Whether it holds this bundle and nothing else, as far as it asks us at all; none, if that
    /// is not known.
    pub(crate) fn has(&self, bundle: &[u8]) -> Option<bool> {
        match self {
            Self::Managed { mark: _, bundles } => Some(bundles.iter().all(|it| it == bundle)),
            Self::NotOurs | Self::NotFound => Some(true),
            Self::Unknown(_) => None,
        }
    }
}

/// What a leader carries from one pass to the next. A term begins without any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeaderState {
    /// The bundle that every target holds, and since when.
    pub(crate) trusted: Option<Trusted>,
    /// The bundle that was last put into each target, and when.
    pub(crate) injected: Vec<Injected>,
    /// The rule that last wrote the Secret, and when.
    pub(crate) written: Option<(&'static str, MonotonicTime)>,
    /// What signs, by its bytes, and since when this leader has seen it do so.
    pub(crate) signing: Option<(Vec<u8>, MonotonicTime)>,
    /// The certificates of the last ring that was whole.
    pub(crate) known: Vec<Certificate>,
}

/// A bundle that all targets were seen to hold in every pass since a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trusted {
    bundle: Vec<u8>,
    marks: Vec<String>,
    since: MonotonicTime,
}

/// A bundle that was put into a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Injected {
    pub(crate) target: usize,
    pub(crate) bundle: Vec<u8>,
    pub(crate) at: MonotonicTime,
}

impl LeaderState {
    /// What is remembered after a look whose answers were there at `now`.
    pub(crate) fn look(
        mut self,
        secret_state: &SecretState,
        targets: &[TargetState],
        now: MonotonicTime,
    ) -> Self {
        let SecretState::Found { ca_set, invalid } = secret_state else {
            return self;
        };
        let current = ca_set.current.as_ref().map(|it| it.certificate.der.clone());
        if current.is_some() && invalid.is_empty() {
            self.known = ca_set.certificates().into_iter().cloned().collect();
        }
        self.signing = match (self.signing, current) {
            (Some((der, since)), Some(current)) if der == current => Some((der, since)),
            (_, current) => current.map(|der| (der, now)),
        };
        self.trusted = update_trusted(self.trusted, ca_set.bundle(), targets, now);
        self
    }

    /// What is remembered after a bundle was put into a target, or may have been.
    pub(crate) fn injected(mut self, target: usize, bundle: Vec<u8>, at: MonotonicTime) -> Self {
        self.injected.retain(|it| it.target != target);
        self.injected.push(Injected { target, bundle, at });
        self
    }

    /// How long this leader has seen the same authority sign.
    pub(crate) fn signed_for(&self, now: MonotonicTime) -> Duration {
        self.signing.as_ref().map_or(Duration::ZERO, |(_, since)| now.since(*since))
    }

    /// How long all targets have held this bundle before our eyes.
    pub(crate) fn propagated_for(&self, bundle: &[u8], now: MonotonicTime) -> Option<Duration> {
        let trusted = self.trusted.as_ref().filter(|it| it.bundle == bundle)?;
        Some(now.since(trusted.since))
    }
}

/// Goes on counting if every target is as it was at the last look, mark for mark, and begins anew
/// otherwise. A look that was not answered says nothing: if the marks are the same at the next one,
/// nothing was changed in between.
fn update_trusted(
    before: Option<Trusted>,
    bundle: Vec<u8>,
    targets: &[TargetState],
    now: MonotonicTime,
) -> Option<Trusted> {
    let replica: Vec<Option<bool>> = targets.iter().map(|target| target.has(&bundle)).collect();
    let before = before.filter(|it| it.bundle == bundle);
    if replica.contains(&Some(false)) {
        return None;
    }
    if replica.contains(&None) {
        return before;
    }
    let marks: Vec<String> = targets.iter().map(mark).collect();
    let since = before.filter(|it| it.marks == marks).map_or(now, |it| it.since);
    Some(Trusted { bundle, marks, since })
}

fn mark(target: &TargetState) -> String {
    match target {
        TargetState::Managed { mark, bundles: _ } => mark.clone(),
        TargetState::NotOurs => "elsewhere".to_owned(),
        TargetState::NotFound => "absent".to_owned(),
        TargetState::Unknown(_) => "unknown".to_owned(),
    }
}
