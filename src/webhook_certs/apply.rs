//! From a plan to the ring that it makes, and to what is remembered of it.
//! Comes in: `ObservedState`, a plan, how its write ended. Goes out: the ring to write, and the next `LeaderState`.
//! May touch: nothing; pure. The real corridor and the model world make their rings here, so that the
//! model proves what is run.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::ca_set::CaSet;
use super::decide::{Plan, Reason, Step};
use super::state::{LeaderState, ObservedState};
use crate::api::monotonic::MonotonicTime;
use crate::pki::ca::CertificateAuthority;

/// The ring after a step, if the step changes it. `fresh` makes an authority, and is asked only if
/// one is needed.
pub(crate) fn apply<E>(
    seen: &ObservedState<'_>,
    ca_set: &CaSet,
    plan: Plan,
    fresh: impl FnOnce() -> Result<CertificateAuthority, E>,
) -> Result<Option<CaSet>, E> {
    let ca_set = ca_set.clone();
    Ok(Some(match plan.step {
        Step::Wait | Step::InjectBundle(_) => return Ok(None),
        Step::CreateCa => CaSet::new(fresh()?, &[]),
        // What was whole when we last looked may be in use, whatever the Secret says now.
        Step::StageNextCa if plan.reason == Reason::CurrentCaMissing => {
            ca_set.with_remembered(&seen.memory.known).with_next(fresh()?)
        }
        Step::StageNextCa => ca_set.with_next(fresh()?),
        Step::RepairSecret => ca_set.with_remembered(&[]),
        Step::ActivateNextCa => ca_set.promote(seen.wall),
        Step::RecordRotationTime => ca_set.stamp(seen.wall),
        Step::RemovePreviousCa => ca_set.without_previous(),
    }))
}

/// How a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was done.
    Written,
    /// What it was about has changed: nothing was done.
    Late,
    /// It may have been done.
    Unknown,
    /// It was refused.
    Refused,
}

/// What is remembered after a step. A write that may have landed counts as one that has. A target
/// that was refused to us must not keep the others waiting, so it counts, too.
pub(crate) fn after_write(
    memory: LeaderState,
    plan: Plan,
    outcome: Outcome,
    bundle: Vec<u8>,
    now: MonotonicTime,
) -> LeaderState {
    match (plan.step, outcome) {
        (Step::Wait, _) | (_, Outcome::Late) => memory,
        (Step::InjectBundle(place), _) => memory.injected(place, bundle, now),
        (_, Outcome::Refused) => memory,
        (_, Outcome::Written | Outcome::Unknown) => {
            LeaderState { written: Some((plan.reason.name(), now)), ..memory }
        }
    }
}
