//! Decides the next step of a trust change of one side, and what that step waits for. Pure.
//! The same steps serve a new source, a changed `ca.crt`, and the way back.
//!
//! ```text
//!                AddRoots            SwitchLeaves           RemoveRoots           Finish
//!   published:   old ---> old and new ----------> old and new -------> new ----------> new
//!   confirmed:   old      old                     old and new          new             new
//!   presented:   old      old                     new                  new             new
//!   may still be trusted by a member that was not restarted:           old
//! ```
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::Timestamp;

use super::lifetimes::after;
use super::readiness::{MemberReadiness, ProbeResults, Readiness, WaitingFor};
use super::source::DesiredTrust;
use super::trust_bundle::{MAX_EXTERNAL_CAS, Side};
use super::trust_state::{TrustState, TrustStep};
use crate::pki::ca::Certificate;

/// All that the next step of one side depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrustChangeContext<'a> {
    pub(crate) trust_state: &'a TrustState,
    /// `None` if the current trust is kept.
    pub(crate) desired: Option<&'a DesiredTrust>,
    /// Whether a member may use certificates on this side.
    pub(crate) is_used: bool,
    /// Whether steps are allowed: the cluster is bootstrapped and not paused, and no CA rotation is
    /// in progress.
    pub(crate) may_change: bool,
    /// How long applications have to read their Secret.
    pub(crate) overlap: Duration,
    pub(crate) now: Timestamp,
    /// The CA certificates of the confirmed bundle.
    pub(crate) confirmed_cas: &'a [Certificate],
    /// The CA certificates of the desired bundle.
    pub(crate) desired_cas: &'a [Certificate],
    pub(crate) readiness: MemberReadiness<'a>,
}

/// The next step of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TrustDecision {
    Idle,
    Apply(TrustStep),
    /// The members must be probed first.
    NeedsProbe,
    Wait(WaitingFor),
}

/// The phase of a trust change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrustPhase {
    /// The new CAs are not in the trust bundles yet.
    Requested,
    /// The new CAs are trusted in addition to the old ones.
    Distributing,
    /// Members present certificates of the new CAs.
    Retiring,
    /// The old CAs are removed, but members may still trust them.
    Verifying,
}

/// A trust change in progress, and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrustChangeStatus {
    pub(crate) side: Side,
    pub(crate) phase: TrustPhase,
    pub(crate) waiting_for: WaitingFor,
}

impl TrustState {
    /// The phase of the change to the desired trust.
    pub(crate) fn phase(&self, desired: &DesiredTrust) -> TrustPhase {
        if self.is_bundle(desired) {
            TrustPhase::Verifying
        } else if self.published != self.confirmed.union(&desired.bundle) {
            TrustPhase::Requested
        } else if self.published == self.confirmed {
            TrustPhase::Retiring
        } else {
            TrustPhase::Distributing
        }
    }

    /// Whether exactly the desired bundle is published and confirmed.
    fn is_bundle(&self, desired: &DesiredTrust) -> bool {
        self.published == desired.bundle && self.confirmed == desired.bundle
    }

    /// Whether no change is in progress, whatever is desired.
    pub(crate) fn is_idle(&self) -> bool {
        let is_one_source = !self.published.managed || self.published.external.is_empty();
        is_one_source && self.published == self.confirmed && self.removed.is_empty()
    }

    /// Whether the change to the desired trust is complete, removal of old CAs included.
    pub(crate) fn is_complete(&self, desired: &DesiredTrust) -> bool {
        self.is_bundle(desired) && self.removed.is_empty()
    }
}

/// Decides. Without probe results the decision is `NeedsProbe` if they are needed.
pub(crate) fn next(
    context: &TrustChangeContext<'_>,
    results: Option<&ProbeResults>,
) -> TrustDecision {
    let TrustChangeContext { trust_state, desired, is_used, may_change, .. } = *context;
    let Some(desired) = desired else { return TrustDecision::Idle };
    if !is_used {
        let is_complete =
            trust_state.is_complete(desired) && trust_state.operator_cert == desired.operator_cert;
        if is_complete {
            return TrustDecision::Idle;
        }
        let operator_cert = desired.operator_cert.clone().map(Box::new);
        return TrustDecision::Apply(TrustStep::Initialize(desired.bundle.clone(), operator_cert));
    }
    // A certificate of CAs that all members trust can be used at once.
    if let Some(operator_cert) = &desired.operator_cert
        && trust_state.operator_cert.as_ref() != Some(operator_cert)
        && operator_cert.verify_as_client(context.confirmed_cas, context.now).is_ok()
    {
        return TrustDecision::Apply(TrustStep::UseCertificate(Box::new(operator_cert.clone())));
    }
    if trust_state.is_complete(desired) {
        return TrustDecision::Idle;
    }
    if !may_change {
        return TrustDecision::Wait(WaitingFor::Unpause);
    }
    if trust_state.is_bundle(desired) {
        return context.apply_when_ready(TrustStep::Finish, context.now, results);
    }
    let both = trust_state.confirmed.union(&desired.bundle);
    if trust_state.published != both {
        // The number of CAs that members read is bounded: a third source has to wait until this
        // change is finished.
        let fits = both.external.len() <= MAX_EXTERNAL_CAS.saturating_mul(2);
        return if fits {
            TrustDecision::Apply(TrustStep::AddRoots(both))
        } else {
            TrustDecision::Wait(WaitingFor::BundleSpace)
        };
    }
    context.after_overlap(desired, results)
}

impl TrustChangeContext<'_> {
    fn after_overlap(
        &self,
        desired: &DesiredTrust,
        results: Option<&ProbeResults>,
    ) -> TrustDecision {
        // The caller decides only when all Secrets are up to date, so the overlap can start.
        let overlap_start =
            self.trust_state.overlap_start.as_ref().filter(|(_, target)| *target == desired.bundle);
        let Some((overlap_start, _)) = overlap_start.cloned() else {
            return TrustDecision::Apply(TrustStep::StartOverlap(desired.bundle.clone()));
        };
        if self.trust_state.phase(desired) == TrustPhase::Distributing {
            let switch_at = self.switch_at(overlap_start);
            return self.apply_when_ready(TrustStep::SwitchLeaves, switch_at, results);
        }
        let old_cas = self.old_cas().cloned().collect();
        let remove = TrustStep::RemoveRoots(desired.bundle.clone(), old_cas);
        self.apply_when_ready(remove, self.remove_at(overlap_start), results)
    }

    /// Applies the step at `ready_at`, when all members have been restarted and their probes
    /// succeeded.
    fn apply_when_ready(
        &self,
        step: TrustStep,
        ready_at: Timestamp,
        results: Option<&ProbeResults>,
    ) -> TrustDecision {
        match self.readiness.ready(ready_at, self.now, results) {
            Readiness::Ready => TrustDecision::Apply(step),
            Readiness::NeedsProbe => TrustDecision::NeedsProbe,
            Readiness::Wait(waiting_for) => TrustDecision::Wait(waiting_for),
        }
    }

    /// The confirmed CAs that are not desired.
    fn old_cas(&self) -> impl Iterator<Item = &Certificate> {
        self.confirmed_cas.iter().filter(|ca| !self.desired_cas.contains(ca))
    }

    /// When applications have had the overlap to trust the new CAs; at most half of the remaining
    /// lifetime of the confirmed CAs, so that these do not expire before the switch.
    fn switch_at(&self, overlap_start: Timestamp) -> Timestamp {
        let end = self.confirmed_cas.iter().map(|ca| ca.until).min().unwrap_or(Timestamp::MAX);
        let left = Duration::try_from(end.duration_since(overlap_start)).unwrap_or_default();
        after(overlap_start, self.overlap.min(left.checked_div(2).unwrap_or_default()))
    }

    /// When applications have had the overlap to use certificates of the new CAs; at the latest
    /// when the old CAs have expired.
    fn remove_at(&self, overlap_start: Timestamp) -> Timestamp {
        let end = self.old_cas().map(|ca| ca.until).max().unwrap_or(Timestamp::MAX);
        after(overlap_start, self.overlap).min(end)
    }
}
