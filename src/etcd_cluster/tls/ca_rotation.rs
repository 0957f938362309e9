//! Decides the next step of the rotation of the managed CAs, and what that step waits for. Pure.
//!
//! Guarantees: etcd reads its trust bundle only at start, so a new CA issues no certificate while a
//! running member may not trust it; no CA is removed while a member may present a certificate of
//! it; a removed CA is recorded until the probes of all members confirm the removal.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::Timestamp;

use super::ca_pair::CaPair;
use super::ca_set::{CaSet, RotationPhase};
use super::lifetimes::{Lifetimes, after, is_renewal_due};
use super::readiness::{MemberReadiness, ProbeResults, Readiness, WaitingFor};
use crate::pki::ca::Certificate;

/// All that the next step depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RotationContext<'a> {
    pub(crate) ca_set: &'a CaSet,
    pub(crate) lifetimes: Lifetimes,
    pub(crate) now: Timestamp,
    /// The rotation request in the annotation of the EtcdCluster.
    pub(crate) rotation_request: Option<&'a str>,
    /// Whether steps are allowed: the cluster is bootstrapped, uses managed CAs, and is not paused.
    pub(crate) may_rotate: bool,
    /// Whether a rotation may start: no trust change is in progress. A rotation that has started
    /// continues, even if a trust change is requested meanwhile.
    pub(crate) may_start: bool,
    pub(crate) readiness: MemberReadiness<'a>,
}

/// The next step of the rotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RotationDecision {
    Idle,
    /// Issue new CAs and add them to the trust bundles.
    Start,
    /// All Secrets are up to date: the overlap starts.
    StartOverlap,
    /// The new CAs issue certificates.
    SwitchIssuer(Box<CaPair>),
    /// Remove the old CAs from the trust bundles.
    RemoveOldCa,
    /// No member trusts the old CAs.
    Finish,
    /// The members must be probed first.
    NeedsProbe,
    Wait(WaitingFor),
}

/// A rotation in progress, and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RotationStatus {
    pub(crate) phase: RotationPhase,
    pub(crate) waiting_for: WaitingFor,
}

/// Decides. Without probe results the decision is `NeedsProbe` if they are needed.
pub(crate) fn next(
    context: &RotationContext<'_>,
    results: Option<&ProbeResults>,
) -> RotationDecision {
    let phase = &context.ca_set.phase;
    match (phase, context.may_rotate) {
        (RotationPhase::Idle, true) if context.may_start && context.must_start() => {
            return RotationDecision::Start;
        }
        (RotationPhase::Idle, _) => return RotationDecision::Idle,
        (
            RotationPhase::Distributing(_)
            | RotationPhase::Retiring(_)
            | RotationPhase::Verifying(_),
            false,
        ) => {
            return RotationDecision::Wait(WaitingFor::Unpause);
        }
        (
            RotationPhase::Distributing(_)
            | RotationPhase::Retiring(_)
            | RotationPhase::Verifying(_),
            true,
        ) => {}
    }
    // The caller decides only when all Secrets are up to date, so the overlap can start.
    let Some(overlap_start) = context.ca_set.overlap_start else {
        return RotationDecision::StartOverlap;
    };
    let ready_at = match phase {
        RotationPhase::Distributing(_) => context.switch_at(overlap_start),
        RotationPhase::Retiring(old) => context.remove_at(overlap_start, old),
        // Applications are not affected anymore.
        RotationPhase::Idle | RotationPhase::Verifying(_) => overlap_start,
    };
    match context.readiness.ready(ready_at, context.now, results) {
        Readiness::Ready => {}
        Readiness::NeedsProbe => return RotationDecision::NeedsProbe,
        Readiness::Wait(waiting_for) => return RotationDecision::Wait(waiting_for),
    }
    match phase {
        RotationPhase::Idle => RotationDecision::Idle,
        RotationPhase::Distributing(next) => RotationDecision::SwitchIssuer(next.clone()),
        RotationPhase::Retiring(_) => RotationDecision::RemoveOldCa,
        RotationPhase::Verifying(_) => RotationDecision::Finish,
    }
}

impl RotationContext<'_> {
    /// Whether a new rotation is requested, or a CA is due and a new one would live longer.
    fn must_start(&self) -> bool {
        let is_requested = self.rotation_request.is_some()
            && self.rotation_request != self.ca_set.rotation_request.as_deref();
        let new_until = self.lifetimes.ca_validity(self.now).until;
        let is_due = |ca: &&Certificate| is_renewal_due(ca, self.now) && new_until > ca.until;
        is_requested || self.ca_set.current.certificates().iter().any(is_due)
    }

    /// When applications have had the overlap to trust the new CAs; at most half of the remaining
    /// lifetime of the current CAs, so that these do not expire before the switch.
    fn switch_at(&self, overlap_start: Timestamp) -> Timestamp {
        let [client, peer] = self.ca_set.current.certificates();
        let end = client.until.min(peer.until);
        let left = Duration::try_from(end.duration_since(overlap_start)).unwrap_or_default();
        after(overlap_start, self.lifetimes.overlap.min(left.checked_div(2).unwrap_or_default()))
    }

    /// When applications have had the overlap to use certificates of the new CAs; at the latest
    /// when the old CAs have expired.
    fn remove_at(&self, overlap_start: Timestamp, [client, peer]: &[Certificate; 2]) -> Timestamp {
        after(overlap_start, self.lifetimes.overlap).min(client.until.max(peer.until))
    }
}
