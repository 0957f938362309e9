//! Turns a plan into the one write that executes it, and a shutdown into the write that releases
//! the Lease. Pure: the elector and the model test build their writes here, so the model tests the
//! writes that are really sent.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;

use super::decide::{Acquired, Step};
use super::lease::{self as lease_object, LeaseHolder, LeaseRef};
use super::role::{LeadFrom, LeaseRole};
use super::state::{ElectionState, LeaseRecord, ObservedState};
use crate::api::monotonic::MonotonicTime;

/// A step in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PendingWrite {
    /// What was decided.
    pub(crate) step: Step,
    /// The uid of the Lease that the step writes to; none if no Lease exists.
    pub(crate) uid: Option<String>,
    /// The `acquireTime` written into the Lease.
    pub(crate) acquired: Timestamp,
    /// The instant just before the write was sent.
    pub(crate) sent: MonotonicTime,
}

/// What to send to the API server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Write {
    /// Create this Lease.
    Create(Box<Lease>),
    /// Replace the Lease that was read.
    Replace(Box<Lease>),
}

/// The step as it starts at `sent`, and its write, if the step writes.
pub(crate) fn prepare(
    state: &ObservedState<'_>,
    step: Step,
    lease: Option<&Lease>,
    lease_ref: LeaseRef<'_>,
    (sent, wall): (MonotonicTime, Timestamp),
) -> (PendingWrite, Option<Write>) {
    let acquired = acquired(&state.election.role, step).unwrap_or(wall);
    let pending = PendingWrite {
        step,
        uid: lease.and_then(|lease| lease.metadata.uid.clone()),
        acquired,
        sent,
    };
    let holder =
        LeaseHolder { identity: state.identity, acquired, duration: state.timing.lease_duration };
    let write = match (step, lease) {
        (Step::Create { .. }, _) => {
            Some(Write::Create(Box::new(lease_object::created(lease_ref, &holder, wall))))
        }
        (Step::Acquire { .. } | Step::Renew, Some(lease)) => {
            Some(Write::Replace(Box::new(lease_object::held(lease, &holder, wall))))
        }
        (Step::Acquire { .. } | Step::Renew, None) | (Step::Wait | Step::StepDown { .. }, _) => {
            None
        }
    };
    (pending, write)
}

/// The `acquireTime` of this replica's earlier write, if the step continues that acquisition.
fn acquired(role: &LeaseRole, step: Step) -> Option<Timestamp> {
    let keep = match step {
        Step::Create { acquired } | Step::Acquire { acquired, .. } => acquired == Acquired::Keep,
        Step::Renew => true,
        Step::Wait | Step::StepDown { .. } => false,
    };
    match role {
        LeaseRole::Uncertain(unconfirmed) if keep => Some(unconfirmed.acquired),
        LeaseRole::Holder(term) if keep => Some(term.acquired),
        LeaseRole::Uncertain(_) | LeaseRole::Holder(_) | LeaseRole::Follower => None,
    }
}

/// Whether this replica may hold the Lease, so that a shutdown has to release it.
pub(crate) fn may_hold_lease(election: &ElectionState) -> bool {
    match election.role {
        LeaseRole::Follower => false,
        LeaseRole::Uncertain(_) | LeaseRole::Holder(_) => true,
    }
}

/// The Lease as a stopping replica releases it; none if the Lease is not held by this process.
/// Precondition: no leader task runs in this process any more.
pub(crate) fn released_lease(
    election: &ElectionState,
    identity: &str,
    lease: Option<&Lease>,
    (now, wall): (MonotonicTime, Timestamp),
) -> Option<Lease> {
    let lease = lease?;
    let record = LeaseRecord::from_lease(lease);
    let (ours, on_probation) = match &election.role {
        LeaseRole::Follower => (false, false),
        LeaseRole::Uncertain(unconfirmed) => {
            let on_probation = unconfirmed.lead_from == LeadFrom::AfterProbation;
            (unconfirmed.matches(identity, &record), on_probation)
        }
        LeaseRole::Holder(term) => (term.holds(identity, &record), now < term.leads_from),
    };
    ours.then(|| lease_object::released(lease, on_probation, wall))
}

#[cfg(test)]
mod tests;
