//! The election state after a write. Pure.
//! Guarantees: only a write that is known to have succeeded, on the Lease it was meant for, starts
//! or extends a term.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::decide::Step;
use super::role::{LeadFrom, LeaseRole, Term, UnconfirmedWrite};
use super::state::{ElectionState, Timing};
use super::write::PendingWrite;
use crate::api::monotonic::MonotonicTime;

/// The outcome of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The step writes nothing.
    NoWrite,
    /// The API server stored it, in the Lease with this uid.
    Written {
        /// The uid of the Lease.
        uid: String,
    },
    /// Not stored: the Lease changed, was deleted, or exists already.
    Conflict,
    /// Not stored, and a retry would not help: permission is missing, or the write is invalid.
    Forbidden,
    /// Not stored: the Lease does not exist.
    NotFound,
    /// No response: the write may or may not be stored.
    Unknown,
}

/// The election state at `now`, after the pending write ended with `outcome`.
pub(crate) fn after_write(
    election: ElectionState,
    pending: &PendingWrite,
    outcome: &Outcome,
    timing: &Timing,
    now: MonotonicTime,
) -> ElectionState {
    // Counted from before the write was sent: other replicas count from after they read it.
    let until = pending.sent.plus(timing.renew_deadline);
    let ElectionState { last_seen, longest, role } = election;
    let probation_end = now.plus(timing.lease_duration.max(longest));
    let acquisition = |lead_from, leads_from| Acquisition { lead_from, leads_from, until };
    let role = match pending.step {
        Step::Wait => role,
        Step::StepDown { may_resume } => after_step_down(role, may_resume, now),
        Step::Create { .. } => {
            acquisition(LeadFrom::AfterProbation, probation_end).finish(role, pending, outcome)
        }
        Step::Acquire { lead_from, .. } => {
            let leads_from = match lead_from {
                LeadFrom::Now => now,
                LeadFrom::AfterProbation => probation_end,
            };
            acquisition(lead_from, leads_from).finish(role, pending, outcome)
        }
        Step::Renew => after_renewal(role, outcome, until),
    };
    ElectionState { last_seen, longest, role }
}

fn after_step_down(role: LeaseRole, may_resume: bool, now: MonotonicTime) -> LeaseRole {
    match role {
        // A probation that was not completed starts again.
        LeaseRole::Holder(term) if may_resume => LeaseRole::Uncertain(UnconfirmedWrite {
            lead_from: if term.leads_from <= now {
                LeadFrom::Now
            } else {
                LeadFrom::AfterProbation
            },
            uid: Some(term.uid),
            acquired: term.acquired,
        }),
        LeaseRole::Holder(_) | LeaseRole::Uncertain(_) | LeaseRole::Follower => LeaseRole::Follower,
    }
}

/// The term that an acquisition starts if its write succeeds.
struct Acquisition {
    lead_from: LeadFrom,
    leads_from: MonotonicTime,
    until: MonotonicTime,
}

impl Acquisition {
    fn finish(self, role: LeaseRole, pending: &PendingWrite, outcome: &Outcome) -> LeaseRole {
        match outcome {
            Outcome::Written { uid } => match &pending.uid {
                Some(target_uid) if target_uid != uid => LeaseRole::Follower,
                Some(_) | None => LeaseRole::Holder(Term {
                    uid: uid.clone(),
                    acquired: pending.acquired,
                    leads_from: self.leads_from,
                    until: self.until,
                }),
            },
            Outcome::Unknown => LeaseRole::Uncertain(UnconfirmedWrite {
                uid: pending.uid.clone(),
                acquired: pending.acquired,
                lead_from: self.lead_from,
            }),
            // This write failed, but an earlier one may have succeeded, and may be the very reason
            // why this one failed. The earlier unconfirmed write stays until a read rules it out.
            Outcome::Conflict | Outcome::Forbidden | Outcome::NotFound | Outcome::NoWrite => role,
        }
    }
}

fn after_renewal(role: LeaseRole, outcome: &Outcome, until: MonotonicTime) -> LeaseRole {
    let LeaseRole::Holder(term) = role else {
        return role;
    };
    match outcome {
        Outcome::Written { uid } if *uid == term.uid => LeaseRole::Holder(Term { until, ..term }),
        // The Lease was deleted, or another Lease of the same name was written.
        Outcome::Written { .. } | Outcome::NotFound => LeaseRole::Follower,
        // Another client wrote to the Lease, or no response came. The next read decides; until
        // then the old deadline holds.
        Outcome::Conflict | Outcome::Forbidden | Outcome::Unknown | Outcome::NoWrite => {
            LeaseRole::Holder(term)
        }
    }
}

#[cfg(test)]
mod tests;
