//! Decides the leader's next step for the CA set. Pure.
//!
//! A new CA is trusted before it signs: it is staged as `next`, injected into every target, kept
//! there until every API server has observed it, and then activated. The previous CA stays trusted
//! until the last certificate it signed has expired. A CA that can no longer sign is replaced in
//! the same way, because certificates it signed may still be valid for other clocks.
//!
//! Clocks jump. A certificate that has expired by this clock may be in use elsewhere, so expiry
//! alone never removes a certificate: in a bundle it does no harm until it is removed as
//! `previous`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use super::ca_set::{CaSet, InvalidEntry};
use super::lifetimes::{since, two_thirds};
use super::state::{InjectionRecord, ObservedState, ReadFailure, SecretState, TargetState};
use crate::pki::ca::CertificateAuthority;

/// Minimum time between two writes of the same bundle into the same target. If another controller
/// writes there too, the two must not race: each write to a CRD closes all watches of its kind.
const REPAIR_INTERVAL: Duration = Duration::from_secs(10);

/// The requeue delay while another replica or controller has to act.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The next step and its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The step.
    pub(crate) step: Step,
    /// The rule that chose it.
    pub(crate) reason: Reason,
}

/// One step, with at most one write. Each write to the Secret carries the uid and the
/// resourceVersion that were read, so that it changes exactly the CA set that was decided about, or
/// fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Write nothing and observe again later.
    Wait,
    /// Create a CA that signs at once. Only if no other CA may be in use.
    CreateCa,
    /// Create a CA as `next`: trusted first, signing later.
    StageNextCa,
    /// Write the CA set without its invalid entries.
    RepairSecret,
    /// Inject the bundle into the target with this index.
    InjectBundle(usize),
    /// Make `next` the signing CA.
    ActivateNextCa,
    /// Record the current time as that of the last rotation.
    RecordRotationTime,
    /// Remove the previous CAs from the trust bundle.
    RemovePreviousCa,
}

/// Why a step was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The Secret could not be read.
    SecretUnreadable,
    /// The API server forbids reading the Secret.
    SecretForbidden,
    /// The Secret does not exist. Any replica creates it.
    SecretMissing,
    /// There is no CA, and this leader has never observed one.
    NoCa,
    /// The current CA is missing or invalid.
    CurrentCaMissing,
    /// The current CA is outside its validity period, by this clock.
    CurrentInvalid,
    /// The next CA is outside its validity period, by this clock.
    NextInvalid,
    /// The current CA has used two thirds of its lifetime.
    CaRenewalDue,
    /// The Secret has invalid entries, and none of them is in use.
    SecretInvalid,
    /// A target does not have the bundle.
    BundleMissing,
    /// A recent write was reverted or rejected.
    WriteReverted,
    /// A target could not be read.
    TargetUnknown,
    /// Every target has the bundle, but not for the whole propagation delay.
    Propagating,
    /// Certificates of the previous CA may still be in use.
    PreviousCaInUse,
    /// Every API server trusts the next CA.
    Propagated,
    /// The time of the last rotation is unknown.
    RotationTimeMissing,
    /// No certificate of the previous CA is in use any more.
    PreviousCaUnused,
    /// The CA set and its targets are up to date.
    UpToDate,
}

impl Reason {
    /// The reason's name in logs and metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::SecretUnreadable => "SecretUnreadable",
            Self::SecretForbidden => "SecretForbidden",
            Self::SecretMissing => "SecretMissing",
            Self::NoCa => "NoCa",
            Self::CurrentCaMissing => "CurrentCaMissing",
            Self::CurrentInvalid => "CurrentInvalid",
            Self::NextInvalid => "NextInvalid",
            Self::CaRenewalDue => "CaRenewalDue",
            Self::SecretInvalid => "SecretInvalid",
            Self::BundleMissing => "BundleMissing",
            Self::WriteReverted => "WriteReverted",
            Self::TargetUnknown => "TargetUnknown",
            Self::Propagating => "Propagating",
            Self::PreviousCaInUse => "PreviousCaInUse",
            Self::Propagated => "Propagated",
            Self::RotationTimeMissing => "RotationTimeMissing",
            Self::PreviousCaUnused => "PreviousCaUnused",
            Self::UpToDate => "UpToDate",
        }
    }
}

/// Decides the next step.
pub(crate) fn decide(state: &ObservedState<'_>) -> Plan {
    let (ca_set, invalid) = match state.secret_state {
        SecretState::Unknown(ReadFailure::Forbidden) => {
            return plan(Step::Wait, Reason::SecretForbidden);
        }
        SecretState::Unknown(ReadFailure::NoResponse) => {
            return plan(Step::Wait, Reason::SecretUnreadable);
        }
        SecretState::NotFound => return plan(Step::Wait, Reason::SecretMissing),
        SecretState::Found { ca_set, invalid } => (ca_set, invalid),
    };
    // First create CAs, then distribute trust, then use them.
    let plan = create_or_repair(state, ca_set, invalid)
        .or_else(|| inject_bundle(state, ca_set))
        .or_else(|| remove_previous(state, ca_set))
        .or_else(|| activate_next(state, ca_set))
        .unwrap_or_else(|| plan(Step::Wait, Reason::UpToDate));
    rate_limited(state, plan)
}

/// The same rule does not write twice within [`REPAIR_INTERVAL`], whatever makes it apply again.
fn rate_limited(state: &ObservedState<'_>, planned: Plan) -> Plan {
    let repeated = state.leader_state.last_write.is_some_and(|(rule, at)| {
        rule == planned.reason.name() && state.now.since(at) < REPAIR_INTERVAL
    });
    match planned.step {
        Step::Wait | Step::InjectBundle(_) => planned,
        Step::CreateCa
        | Step::StageNextCa
        | Step::RepairSecret
        | Step::ActivateNextCa
        | Step::RecordRotationTime
        | Step::RemovePreviousCa => {
            if repeated {
                plan(Step::Wait, Reason::WriteReverted)
            } else {
                planned
            }
        }
    }
}

const fn plan(step: Step, reason: Reason) -> Plan {
    Plan { step, reason }
}

/// Creates a CA that is missing or due for renewal, or repairs the Secret.
fn create_or_repair(
    state: &ObservedState<'_>,
    ca_set: &CaSet,
    invalid: &[InvalidEntry],
) -> Option<Plan> {
    let valid = |ca: &CertificateAuthority| ca.certificate.valid_at(state.wall);
    if ca_set.next.as_ref().is_some_and(|next| !valid(next)) {
        // The next CA has signed nothing yet, so it can be replaced.
        return Some(plan(Step::StageNextCa, Reason::NextInvalid));
    }
    let reason = match &ca_set.current {
        None if ca_set.certificates().is_empty() && state.leader_state.known.is_empty() => {
            return Some(plan(Step::CreateCa, Reason::NoCa));
        }
        None => Some(Reason::CurrentCaMissing),
        Some(current) if !valid(current) => Some(Reason::CurrentInvalid),
        Some(current) if is_renewal_due(state, current) => Some(Reason::CaRenewalDue),
        Some(_) => None,
    };
    match (reason, &ca_set.next) {
        (Some(reason), None) => Some(plan(Step::StageNextCa, reason)),
        (Some(_) | None, _) if !invalid.is_empty() => {
            Some(plan(Step::RepairSecret, Reason::SecretInvalid))
        }
        (Some(_), Some(_)) | (None, _) => None,
    }
}

/// By the CA's own lifetime, not the configured one: a changed setting must not rotate at once.
fn is_renewal_due(state: &ObservedState<'_>, current: &CertificateAuthority) -> bool {
    let lifetime = since(current.certificate.from, current.certificate.until);
    since(current.certificate.from, state.wall) >= two_thirds(lifetime)
}

/// Injects the bundle where it is missing. An unknown target does not delay the others.
fn inject_bundle(state: &ObservedState<'_>, ca_set: &CaSet) -> Option<Plan> {
    let bundle = ca_set.bundle();
    let lacks = |target: &TargetState| target.has_bundle(&bundle) == Some(false);
    let mut lacking = (0..).zip(state.targets).filter(|(_, target)| lacks(target)).peekable();
    lacking.peek()?;
    let injected_recently = |target: usize| {
        let same = |record: &&InjectionRecord| record.target == target && record.bundle == bundle;
        let before = state.leader_state.injections.iter().find(same);
        before.is_some_and(|record| state.now.since(record.at) < REPAIR_INTERVAL)
    };
    match lacking.find(|(target, _)| !injected_recently(*target)) {
        Some((target, _)) => Some(plan(Step::InjectBundle(target), Reason::BundleMissing)),
        None => Some(plan(Step::Wait, Reason::WriteReverted)),
    }
}

/// Removes the previous CAs once none of their certificates is in use. The wall clock decides that,
/// and may have jumped. So the current CA must be valid by the same clock, and by the monotonic
/// clock every replica that reaches the API server must have switched to the current CA.
fn remove_previous(state: &ObservedState<'_>, ca_set: &CaSet) -> Option<Plan> {
    if ca_set.previous.is_empty() || !current_signs(state, ca_set) {
        return None;
    }
    let max_leaf_lifetime = state.lifetimes.max_leaf_lifetime();
    match ca_set.rotated_at {
        // Far in the future: recorded by a wrong clock.
        Some(time) if since(state.wall, time) > max_leaf_lifetime => {
            Some(plan(Step::RecordRotationTime, Reason::RotationTimeMissing))
        }
        Some(time) if since(time, state.wall) >= max_leaf_lifetime => {
            let current_for = state.leader_state.current_for(state.now);
            let all_switched = current_for >= state.lifetimes.propagation_bound();
            let remove = plan(Step::RemovePreviousCa, Reason::PreviousCaUnused);
            Some(if all_switched { remove } else { plan(Step::Wait, Reason::PreviousCaInUse) })
        }
        None => Some(plan(Step::RecordRotationTime, Reason::RotationTimeMissing)),
        Some(_) => None,
    }
}

/// Activates the next CA once every API server trusts it.
fn activate_next(state: &ObservedState<'_>, ca_set: &CaSet) -> Option<Plan> {
    ca_set.next.as_ref()?;
    let bundle = ca_set.bundle();
    let wait = |reason| Some(plan(Step::Wait, reason));
    if state.targets.iter().any(|target| target.has_bundle(&bundle).is_none()) {
        return wait(Reason::TargetUnknown);
    }
    match state.leader_state.propagated_for(&bundle, state.now) {
        Some(time) if time >= state.lifetimes.propagation_delay => {}
        Some(_) | None => return wait(Reason::Propagating),
    }
    // Only while the current CA signs there is time to wait for the previous one.
    if current_signs(state, ca_set) && !ca_set.previous.is_empty() {
        return wait(Reason::PreviousCaInUse);
    }
    Some(plan(Step::ActivateNextCa, Reason::Propagated))
}

fn current_signs(state: &ObservedState<'_>, ca_set: &CaSet) -> bool {
    ca_set.current.as_ref().is_some_and(|current| current.certificate.valid_at(state.wall))
}

/// The requeue delay after a reconciliation without a write.
pub(crate) fn requeue_delay(state: &ObservedState<'_>, plan: Plan) -> Duration {
    let quarter = state.lifetimes.propagation_delay.checked_div(4).unwrap_or_default();
    let due = match plan.reason {
        Reason::Propagating | Reason::TargetUnknown => Some(quarter),
        Reason::WriteReverted | Reason::SecretMissing => Some(RETRY_DELAY),
        Reason::SecretUnreadable
        | Reason::SecretForbidden
        | Reason::NoCa
        | Reason::CurrentCaMissing
        | Reason::CurrentInvalid
        | Reason::NextInvalid
        | Reason::CaRenewalDue
        | Reason::SecretInvalid
        | Reason::BundleMissing
        | Reason::PreviousCaInUse
        | Reason::Propagated
        | Reason::RotationTimeMissing
        | Reason::PreviousCaUnused
        | Reason::UpToDate => None,
    };
    state.lifetimes.requeue_delay(due)
}

#[cfg(test)]
mod tests;
