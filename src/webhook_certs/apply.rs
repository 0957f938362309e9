//! Applies a plan to the CA set, and the outcome of a write to the leader state. Pure: the leader
//! task and the model test build their writes here, so the model tests the writes that are really
//! sent.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::ca_set::CaSet;
use super::decide::{Plan, Reason, Step};
use super::state::{LeaderState, ObservedState};
use crate::api::monotonic::MonotonicTime;
use crate::pki::ca::CertificateAuthority;

/// The CA set after a step, if the step changes it. `new_ca` is called only if a CA is needed.
pub(crate) fn apply<E>(
    state: &ObservedState<'_>,
    ca_set: &CaSet,
    plan: Plan,
    new_ca: impl FnOnce() -> Result<CertificateAuthority, E>,
) -> Result<Option<CaSet>, E> {
    let ca_set = ca_set.clone();
    Ok(Some(match plan.step {
        Step::Wait | Step::InjectBundle(_) => return Ok(None),
        Step::CreateCa => CaSet::new(new_ca()?, &[]),
        // The CA set last observed without errors may be in use, whatever the Secret contains now.
        Step::StageNextCa if plan.reason == Reason::CurrentCaMissing => {
            ca_set.with_known(&state.leader_state.known).with_next(new_ca()?)
        }
        Step::StageNextCa => ca_set.with_next(new_ca()?),
        Step::RepairSecret => ca_set.with_known(&[]),
        Step::ActivateNextCa => ca_set.activate_next(state.wall),
        Step::RecordRotationTime => ca_set.with_rotation_time(state.wall),
        Step::RemovePreviousCa => ca_set.without_previous(),
    }))
}

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The API server stored it.
    Written,
    /// Not stored: the object has changed or does not exist.
    Conflict,
    /// No response: the write may or may not be stored.
    Unknown,
    /// Not stored: the API server rejected it.
    Rejected,
}

/// The leader state after a step. A write that may be stored counts as stored. A rejected injection
/// counts too, so that a target without permission does not delay the others.
pub(crate) fn after_write(
    leader_state: LeaderState,
    plan: Plan,
    outcome: Outcome,
    bundle: Vec<u8>,
    now: MonotonicTime,
) -> LeaderState {
    match (plan.step, outcome) {
        (Step::Wait, _) | (_, Outcome::Conflict) => leader_state,
        (Step::InjectBundle(target), _) => leader_state.with_injection(target, bundle, now),
        (_, Outcome::Rejected) => leader_state,
        (_, Outcome::Written | Outcome::Unknown) => {
            LeaderState { last_write: Some((plan.reason.name(), now)), ..leader_state }
        }
    }
}
