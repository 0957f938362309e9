//! The observed state of the CA set and its targets, and what the leader keeps between
//! reconciliations. Pure. A failed read is unknown: neither absent nor unchanged.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::Timestamp;

use super::ca_set::{CaSet, InvalidEntry};
use super::lifetimes::Lifetimes;
use crate::api::monotonic::MonotonicTime;
use crate::pki::ca::Certificate;

/// Everything that a decision about the CA set depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObservedState<'a> {
    /// The configured lifetimes.
    pub(crate) lifetimes: &'a Lifetimes,
    /// The wall clock, for the validity of certificates. It may jump.
    pub(crate) wall: Timestamp,
    /// The monotonic clock, for waiting times.
    pub(crate) now: MonotonicTime,
    /// The Secret.
    pub(crate) secret_state: &'a SecretState,
    /// The targets, always in the same order.
    pub(crate) targets: &'a [TargetState],
    /// What this leader knows, this observation included; see [`LeaderState::observe`].
    pub(crate) leader_state: &'a LeaderState,
}

/// The Secret as read, or why it is unknown.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SecretState {
    /// The Secret exists.
    Found {
        /// The CA set in it.
        ca_set: Box<CaSet>,
        /// Its invalid entries.
        invalid: Vec<InvalidEntry>,
    },
    /// The Secret does not exist.
    NotFound,
    /// The read failed. This is not absence.
    Unknown(ReadFailure),
}

/// One object with a CA bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TargetState {
    /// At least one of its webhooks uses the operator's Service.
    Managed {
        /// uid and generation: while both stay the same, the object has not changed.
        generation: String,
        /// The bundle of each webhook that uses the operator's Service.
        bundles: Vec<Vec<u8>>,
    },
    /// The object exists, but no webhook uses the operator's Service: it is never written.
    NotOurs,
    /// The object does not exist.
    NotFound,
    /// The read failed. This is not absence.
    Unknown(ReadFailure),
}

/// Why an object could not be read. The decision is the same; the hint to the admin differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadFailure {
    /// The API server rejected the read.
    Forbidden,
    /// No usable response.
    NoResponse,
}

impl TargetState {
    /// Whether every webhook that uses the operator's Service has exactly this bundle; none if
    /// unknown.
    pub(crate) fn has_bundle(&self, bundle: &[u8]) -> Option<bool> {
        match self {
            Self::Managed { generation: _, bundles } => {
                Some(bundles.iter().all(|found| found == bundle))
            }
            Self::NotOurs | Self::NotFound => Some(true),
            Self::Unknown(_) => None,
        }
    }
}

/// What a leader keeps from one reconciliation to the next. A term starts with the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeaderState {
    /// The bundle that every target has, and since when.
    pub(crate) propagation: Option<Propagation>,
    /// The bundle last injected into each target, and when.
    pub(crate) injections: Vec<InjectionRecord>,
    /// The reason of the last write to the Secret, and when.
    pub(crate) last_write: Option<(&'static str, MonotonicTime)>,
    /// DER of the current CA, and since when this leader has observed it as current.
    pub(crate) signing: Option<(Vec<u8>, MonotonicTime)>,
    /// The certificates of the last CA set without invalid entries.
    pub(crate) known: Vec<Certificate>,
}

/// A bundle that all targets have had in every observation since an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Propagation {
    bundle: Vec<u8>,
    generations: Vec<String>,
    since: MonotonicTime,
}

/// A bundle that was injected into a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InjectionRecord {
    pub(crate) target: usize,
    pub(crate) bundle: Vec<u8>,
    pub(crate) at: MonotonicTime,
}

impl LeaderState {
    /// The leader state after an observation that was complete at `now`.
    pub(crate) fn observe(
        mut self,
        secret_state: &SecretState,
        targets: &[TargetState],
        now: MonotonicTime,
    ) -> Self {
        let SecretState::Found { ca_set, invalid } = secret_state else {
            return self;
        };
        let current = ca_set.current.as_ref().map(|ca| ca.certificate.der.clone());
        if current.is_some() && invalid.is_empty() {
            self.known = ca_set.certificates().into_iter().cloned().collect();
        }
        self.signing = match (self.signing, current) {
            (Some((der, since)), Some(current)) if der == current => Some((der, since)),
            (_, current) => current.map(|der| (der, now)),
        };
        self.propagation = update_propagation(self.propagation, ca_set.bundle(), targets, now);
        self
    }

    /// The leader state after a bundle was injected into a target, or may have been.
    pub(crate) fn with_injection(
        mut self,
        target: usize,
        bundle: Vec<u8>,
        at: MonotonicTime,
    ) -> Self {
        self.injections.retain(|record| record.target != target);
        self.injections.push(InjectionRecord { target, bundle, at });
        self
    }

    /// How long this leader has observed the same current CA.
    pub(crate) fn current_for(&self, now: MonotonicTime) -> Duration {
        self.signing.as_ref().map_or(Duration::ZERO, |(_, since)| now.since(*since))
    }

    /// How long all targets have had this bundle in every observation.
    pub(crate) fn propagated_for(&self, bundle: &[u8], now: MonotonicTime) -> Option<Duration> {
        let propagation = self.propagation.as_ref().filter(|found| found.bundle == bundle)?;
        Some(now.since(propagation.since))
    }
}

/// Keeps counting while every target has the generation of the last observation, and restarts
/// otherwise. A failed read changes nothing: if the next read finds the same generations, no target
/// changed in between.
fn update_propagation(
    before: Option<Propagation>,
    bundle: Vec<u8>,
    targets: &[TargetState],
    now: MonotonicTime,
) -> Option<Propagation> {
    let has_bundle: Vec<Option<bool>> =
        targets.iter().map(|target| target.has_bundle(&bundle)).collect();
    let before = before.filter(|propagation| propagation.bundle == bundle);
    if has_bundle.contains(&Some(false)) {
        return None;
    }
    if has_bundle.contains(&None) {
        return before;
    }
    let generations: Vec<String> = targets.iter().map(generation).collect();
    let unchanged = before.filter(|propagation| propagation.generations == generations);
    let since = unchanged.map_or(now, |propagation| propagation.since);
    Some(Propagation { bundle, generations, since })
}

fn generation(target: &TargetState) -> String {
    match target {
        TargetState::Managed { generation, bundles: _ } => generation.clone(),
        TargetState::NotOurs => "not ours".to_owned(),
        TargetState::NotFound => "not found".to_owned(),
        TargetState::Unknown(_) => "unknown".to_owned(),
    }
}
