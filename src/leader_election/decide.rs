//! Decides what to do with the Lease. The rules are client-go's, and stricter in three places:
//! a leader stops at once when its Lease is deleted, replaced or held by another replica; a Lease
//! that is new, or whose holder was cleared by hand, is held on probation first, because the
//! previous leader may not have noticed yet; and a failed read never makes a leader.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use super::role::{LeadFrom, LeaseRole, Term, UnconfirmedWrite};
use super::state::{LeaseRecord, LeaseState, ObservedState, ReadFailure};

/// The next step and its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The step.
    pub(crate) step: Step,
    /// The rule that chose it.
    pub(crate) reason: Reason,
}

/// One step. Every write carries the uid and the resourceVersion that were read, so that it
/// changes exactly the Lease that was decided about, or fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::enum_variant_names, reason = "step down is the term of leader election")]
pub(crate) enum Step {
    /// Write nothing and read the Lease again later.
    Wait,
    /// The Lease does not exist: create one that this replica holds on probation. If another
    /// replica is faster the create conflicts; if this replica crashes afterwards, the others wait
    /// for the Lease to expire.
    Create {
        /// Which `acquireTime` to write.
        acquired: Acquired,
    },
    /// The Lease is free or held by this replica: write its identity. A repeat only changes times.
    Acquire {
        /// When the term starts to count as leading.
        lead_from: LeadFrom,
        /// Which `acquireTime` to write.
        acquired: Acquired,
    },
    /// This replica holds the Lease: renew. A repeat only changes the time.
    Renew,
    /// The Lease is lost, or this replica cannot know that it still holds it: stop leading, write
    /// nothing.
    StepDown {
        /// Whether this replica may lead again if the Lease turns out to be still its own.
        may_resume: bool,
    },
}

/// Which `acquireTime` a write carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acquired {
    /// That of the unconfirmed write: the same acquisition, retried or confirmed. Whichever of the
    /// two writes succeeded, this replica recognises it.
    Keep,
    /// The current time.
    New,
}

/// Why a step was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The Lease could not be read.
    LeaseUnreadable,
    /// The API server forbids reading the Lease.
    LeaseForbidden,
    /// Another replica holds the Lease, and the Lease has not expired.
    HeldByAnother,
    /// The holder did not renew for its whole lease duration.
    HolderExpired,
    /// The last holder released the Lease.
    Released,
    /// The Lease has no holder and no release mark: it was created or its holder was cleared by
    /// hand, or its holder released it while still on probation.
    HolderCleared,
    /// The Lease does not exist.
    LeaseNotFound,
    /// A write of this replica succeeded although its response was lost.
    OwnWriteConfirmed,
    /// This replica holds the Lease.
    Holding,
    /// This replica could not renew within the renew deadline.
    RenewDeadlineExceeded,
    /// The Lease that this replica held was deleted.
    LeaseDeleted,
    /// The Lease that this replica held was deleted and created again.
    LeaseReplaced,
}

impl Reason {
    /// The reason's name in logs.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::LeaseUnreadable => "LeaseUnreadable",
            Self::LeaseForbidden => "LeaseForbidden",
            Self::HeldByAnother => "HeldByAnother",
            Self::HolderExpired => "HolderExpired",
            Self::Released => "Released",
            Self::HolderCleared => "HolderCleared",
            Self::LeaseNotFound => "LeaseNotFound",
            Self::OwnWriteConfirmed => "OwnWriteConfirmed",
            Self::Holding => "Holding",
            Self::RenewDeadlineExceeded => "RenewDeadlineExceeded",
            Self::LeaseDeleted => "LeaseDeleted",
            Self::LeaseReplaced => "LeaseReplaced",
        }
    }
}

/// Decides the next step.
pub(crate) fn decide(state: &ObservedState<'_>) -> Plan {
    let (step, reason) = match &state.election.role {
        LeaseRole::Holder(term) => as_holder(state, term),
        LeaseRole::Uncertain(unconfirmed) => as_candidate(state, Some(unconfirmed)),
        LeaseRole::Follower => as_candidate(state, None),
    };
    Plan { step, reason }
}

fn as_holder(state: &ObservedState<'_>, term: &Term) -> (Step, Reason) {
    // After failed reads alone the Lease may still belong to this replica. Once another holder was
    // seen it does not, whatever the Lease contains later.
    let resume = Step::StepDown { may_resume: true };
    let lost = Step::StepDown { may_resume: false };
    if state.now >= term.until {
        return (resume, Reason::RenewDeadlineExceeded);
    }
    match state.lease_state {
        LeaseState::Unknown(failure) => (Step::Wait, read_failure(*failure)),
        LeaseState::NotFound => (lost, Reason::LeaseDeleted),
        LeaseState::Found(record) if record.uid != term.uid => (lost, Reason::LeaseReplaced),
        LeaseState::Found(record) if !term.holds(state.identity, record) => {
            (lost, Reason::HeldByAnother)
        }
        LeaseState::Found(_) => (Step::Renew, Reason::Holding),
    }
}

fn as_candidate(
    state: &ObservedState<'_>,
    unconfirmed: Option<&UnconfirmedWrite>,
) -> (Step, Reason) {
    let record = match state.lease_state {
        LeaseState::Unknown(failure) => return (Step::Wait, read_failure(*failure)),
        LeaseState::NotFound => {
            let acquired = unconfirmed.map_or(Acquired::New, |_| Acquired::Keep);
            return (Step::Create { acquired }, Reason::LeaseNotFound);
        }
        LeaseState::Found(record) => record,
    };
    if let Some(unconfirmed) = unconfirmed
        && unconfirmed.matches(state.identity, record)
    {
        let (lead_from, acquired) = (unconfirmed.lead_from, Acquired::Keep);
        return (Step::Acquire { lead_from, acquired }, Reason::OwnWriteConfirmed);
    }
    match record.holder {
        None if record.released => (acquire(LeadFrom::Now, unconfirmed), Reason::Released),
        None => (acquire(LeadFrom::AfterProbation, unconfirmed), Reason::HolderCleared),
        Some(_) if time_since_renewal(state) >= expiry(state, record) => {
            (acquire(LeadFrom::Now, unconfirmed), Reason::HolderExpired)
        }
        Some(_) => (Step::Wait, Reason::HeldByAnother),
    }
}

/// An unconfirmed write that is still possible was made on this very resourceVersion: a retry is
/// the same acquisition, and leads no earlier than the first write would have.
fn acquire(lead_from: LeadFrom, unconfirmed: Option<&UnconfirmedWrite>) -> Step {
    match unconfirmed {
        Some(unconfirmed) => Step::Acquire {
            lead_from: lead_from.later(unconfirmed.lead_from),
            acquired: Acquired::Keep,
        },
        None => Step::Acquire { lead_from, acquired: Acquired::New },
    }
}

const fn read_failure(failure: ReadFailure) -> Reason {
    match failure {
        ReadFailure::Forbidden => Reason::LeaseForbidden,
        ReadFailure::NoResponse => Reason::LeaseUnreadable,
    }
}

/// How long this replica has seen the record unchanged.
fn time_since_renewal(state: &ObservedState<'_>) -> Duration {
    let last_seen = state.election.last_seen.as_ref();
    last_seen.map_or(Duration::ZERO, |last_seen| state.now.since(last_seen.since))
}

/// The longest of the holder's lease duration, those of earlier holders, and this replica's own:
/// replicas of two releases may differ during a rolling update.
fn expiry(state: &ObservedState<'_>, record: &LeaseRecord) -> Duration {
    let holders_own = record.duration.unwrap_or_default();
    holders_own.max(state.election.longest).max(state.timing.lease_duration)
}

#[cfg(test)]
mod tests;
