//! What the leader does about the ring of authorities, in one pass.
//!
//! A new authority is first trusted and only then used: it is added as `next`, put into every
//! target, left there until every API server has learned of it, and promoted. What signed before is
//! trusted until the last certificate that it signed has ended. An authority that can no longer sign
//! is followed in the same way, because certificates which it signed may still be good for others.
//!
//! Clocks jump. What is expired by our clock may be in use by others, so expiry alone never drops a
//! certificate: it harms nobody in a bundle, and goes when its time is over.
//! Comes in: `ObservedState`. Goes out: a `Plan`. May touch: nothing; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use super::ca_set::{CaSet, InvalidEntry};
use super::lifetimes::{since, two_thirds};
use super::state::{Injected, ObservedState, ReadFailure, SecretState, TargetState};
use crate::pki::ca::CertificateAuthority;

/// The least time between two writes of the same bundle into the same target. If someone else writes
/// there, too, it must not become a race: each write closes all watches of a kind.
const REPAIR_INTERVAL: Duration = Duration::from_secs(10);

/// The rest when someone else is about to do something.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// What to do, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// What to do.
    pub(crate) step: Step,
    /// Which rule spoke.
    pub(crate) reason: Reason,
}

/// One move, with one write at most. Each write to the Secret carries the uid and the version that
/// were read, so that it lands on exactly the ring that the decision was made about, or nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Write nothing and look again.
    Wait,
    /// Make a new authority that signs at once. Only if nothing is trusted that could be lost.
    CreateCa,
    /// Make a new authority that is trusted first.
    StageNextCa,
    /// Write the ring as it was understood, without what is broken.
    RepairSecret,
    /// Put the bundle into the target at this place.
    InjectBundle(usize),
    /// Let `next` sign from now on.
    ActivateNextCa,
    /// Count the time of what signed before from now on.
    RecordRotationTime,
    /// Forget what signed before.
    RemovePreviousCa,
}

/// Why a step was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The API server did not say how the Secret stands.
    SecretUnreadable,
    /// The API server refuses to show us the Secret.
    SecretForbidden,
    /// There is no Secret yet. Every replica makes one if there is none.
    SecretMissing,
    /// Nothing signs, and nothing was ever trusted.
    NoCa,
    /// The authority that signs is lost or broken.
    CurrentCaMissing,
    /// The authority that signs is not valid at this time, by our clock.
    CurrentInvalid,
    /// The authority to come is not valid at this time, by our clock.
    NextInvalid,
    /// The authority that signs has spent two thirds of its life.
    CaRenewalDue,
    /// Something in the Secret is broken that is not in use.
    SecretInvalid,
    /// A target does not hold the bundle.
    BundleMissing,
    /// What was written just now is not there, or was refused.
    WriteReverted,
    /// The API server did not say how a target stands.
    TargetUnknown,
    /// Every target holds the bundle, but not for long enough.
    Propagating,
    /// What signed before may still be in use.
    PreviousCaInUse,
    /// Everybody trusts the authority to come.
    Propagated,
    /// Nobody knows when the authority that signs was promoted.
    RotationTimeMissing,
    /// Nothing is in use any more that was signed by what signed before.
    PreviousCaUnused,
    /// There is nothing to do.
    UpToDate,
}

impl Reason {
    /// The rule's name in logs and metrics.
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

/// What to do now.
pub(crate) fn decide(seen: &ObservedState<'_>) -> Plan {
    let (ca_set, invalid) = match seen.secret_state {
        SecretState::Unknown(ReadFailure::Forbidden) => {
            return plan(Step::Wait, Reason::SecretForbidden);
        }
        SecretState::Unknown(ReadFailure::NoResponse) => {
            return plan(Step::Wait, Reason::SecretUnreadable);
        }
        SecretState::NotFound => return plan(Step::Wait, Reason::SecretMissing),
        SecretState::Found { ca_set, invalid } => (ca_set, invalid),
    };
    // New authorities first, then trust, then use.
    let plan = make(seen, ca_set, invalid)
        .or_else(|| inject(seen, ca_set))
        .or_else(|| drop_previous(seen, ca_set))
        .or_else(|| promote(seen, ca_set))
        .unwrap_or_else(|| plan(Step::Wait, Reason::UpToDate));
    rate_limited(seen, plan)
}

/// The same rule does not write twice in a short time, whatever makes it true again.
fn rate_limited(seen: &ObservedState<'_>, planned: Plan) -> Plan {
    let again = seen.memory.written.is_some_and(|(rule, at)| {
        rule == planned.reason.name() && seen.now.since(at) < REPAIR_INTERVAL
    });
    match planned.step {
        Step::Wait | Step::InjectBundle(_) => planned,
        Step::CreateCa
        | Step::StageNextCa
        | Step::RepairSecret
        | Step::ActivateNextCa
        | Step::RecordRotationTime
        | Step::RemovePreviousCa => {
            if again {
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

/// An authority that is missing, or a Secret that must be mended.
fn make(seen: &ObservedState<'_>, ca_set: &CaSet, invalid: &[InvalidEntry]) -> Option<Plan> {
    let valid = |it: &CertificateAuthority| it.certificate.valid_at(seen.wall);
    if ca_set.next.as_ref().is_some_and(|next| !valid(next)) {
        // It has signed nothing yet, so another may take its place.
        return Some(plan(Step::StageNextCa, Reason::NextInvalid));
    }
    let reason = match &ca_set.current {
        None if ca_set.certificates().is_empty() && seen.memory.known.is_empty() => {
            return Some(plan(Step::CreateCa, Reason::NoCa));
        }
        None => Some(Reason::CurrentCaMissing),
        Some(current) if !valid(current) => Some(Reason::CurrentInvalid),
        Some(current) if is_old(seen, current) => Some(Reason::CaRenewalDue),
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

/// By its own life, and not by the one that is set today: a changed setting must not rotate at once.
fn is_old(seen: &ObservedState<'_>, current: &CertificateAuthority) -> bool {
    let life = since(current.certificate.from, current.certificate.until);
    since(current.certificate.from, seen.wall) >= two_thirds(life)
}

/// Targets that do not hold the bundle. One that is unknown does not keep the others waiting.
fn inject(seen: &ObservedState<'_>, ca_set: &CaSet) -> Option<Plan> {
    let bundle = ca_set.bundle();
    let lacks = |target: &TargetState| target.has(&bundle) == Some(false);
    let mut lacking = (0..).zip(seen.targets).filter(|(_, target)| lacks(target)).peekable();
    lacking.peek()?;
    let just_done = |place: usize| {
        let same = |it: &&Injected| it.target == place && it.bundle == bundle;
        let before = seen.memory.injected.iter().find(same);
        before.is_some_and(|it| seen.now.since(it.at) < REPAIR_INTERVAL)
    };
    match lacking.find(|(place, _)| !just_done(*place)) {
        Some((place, _)) => Some(plan(Step::InjectBundle(place), Reason::BundleMissing)),
        None => Some(plan(Step::Wait, Reason::WriteReverted)),
    }
}

/// What signed before, when its time is over. The wall clock says so, and it may have jumped: so only
/// while what signs now is valid by the same clock, and only when every replica that can reach the
/// API server must have changed over by the clock that does not jump.
fn drop_previous(seen: &ObservedState<'_>, ca_set: &CaSet) -> Option<Plan> {
    if ca_set.previous.is_empty() || !signs(seen, ca_set) {
        return None;
    }
    let max_leaf_lifetime = seen.lifetimes.max_leaf_lifetime();
    match ca_set.promoted {
        // Far in the future: it was written by a clock that was wrong.
        Some(time) if since(seen.wall, time) > max_leaf_lifetime => {
            Some(plan(Step::RecordRotationTime, Reason::RotationTimeMissing))
        }
        Some(time) if since(time, seen.wall) >= max_leaf_lifetime => {
            let heard = seen.memory.signed_for(seen.now) >= seen.lifetimes.propagation_bound();
            let drop = plan(Step::RemovePreviousCa, Reason::PreviousCaUnused);
            Some(if heard { drop } else { plan(Step::Wait, Reason::PreviousCaInUse) })
        }
        None => Some(plan(Step::RecordRotationTime, Reason::RotationTimeMissing)),
        Some(_) => None,
    }
}

/// The authority to come, when everybody trusts it.
fn promote(seen: &ObservedState<'_>, ca_set: &CaSet) -> Option<Plan> {
    ca_set.next.as_ref()?;
    let bundle = ca_set.bundle();
    let wait = |reason| Some(plan(Step::Wait, reason));
    if seen.targets.iter().any(|target| target.has(&bundle).is_none()) {
        return wait(Reason::TargetUnknown);
    }
    match seen.memory.propagated_for(&bundle, seen.now) {
        Some(time) if time >= seen.lifetimes.settle => {}
        Some(_) | None => return wait(Reason::Propagating),
    }
    // Only a ring that is well can afford to wait.
    if signs(seen, ca_set) && !ca_set.previous.is_empty() {
        return wait(Reason::PreviousCaInUse);
    }
    Some(plan(Step::ActivateNextCa, Reason::Propagated))
}

fn signs(seen: &ObservedState<'_>, ca_set: &CaSet) -> bool {
    ca_set.current.as_ref().is_some_and(|current| current.certificate.valid_at(seen.wall))
}

/// How long to rest after a pass that wrote nothing.
pub(crate) fn rest(seen: &ObservedState<'_>, plan: Plan) -> Duration {
    let quarter = seen.lifetimes.settle.checked_div(4).unwrap_or_default();
    let soon = match plan.reason {
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
    seen.lifetimes.rest(soon)
}

#[cfg(test)]
mod tests;
