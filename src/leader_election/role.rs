//! A replica's role: follower, holder, or uncertain because the response to a write was lost. Pure.
//! An unconfirmed write is dropped as soon as a read shows that the write can no longer succeed.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;

use super::state::{LeaseRecord, LeaseState};
use crate::api::monotonic::MonotonicTime;

/// A replica's role towards the Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum LeaseRole {
    /// Does not hold the Lease.
    #[default]
    Follower,
    /// A write of this replica may have succeeded without a response.
    Uncertain(UnconfirmedWrite),
    /// Holds the Lease.
    Holder(Term),
}

/// A write whose outcome is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnconfirmedWrite {
    /// The uid of the Lease that was written to; none if the write was a create.
    pub(crate) uid: Option<String>,
    /// The `acquireTime` of the write.
    pub(crate) acquired: Timestamp,
    /// When the term leads, if the write turns out to have succeeded.
    pub(crate) lead_from: LeadFrom,
}

/// When a term starts to count as leading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeadFrom {
    /// At once: the previous holder released the Lease, or its lease duration is over.
    Now,
    /// After a full lease duration: the Lease is new or its holder was cleared by hand, and the
    /// previous leader may not have noticed yet.
    AfterProbation,
}

/// A term in which this replica holds the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Term {
    /// The uid of the held Lease.
    pub(crate) uid: String,
    /// The `acquireTime` that this replica wrote.
    pub(crate) acquired: Timestamp,
    /// The first instant at which the term leads.
    pub(crate) leads_from: MonotonicTime,
    /// The first instant at which it no longer leads: the renew deadline, counted from the start of
    /// the last successful write.
    pub(crate) until: MonotonicTime,
}

impl UnconfirmedWrite {
    /// Whether `record` is the result of this write. A Lease with another uid never is.
    pub(crate) fn matches(&self, identity: &str, record: &LeaseRecord) -> bool {
        let same_lease = self.uid.as_ref().is_none_or(|uid| *uid == record.uid);
        same_lease && record.is_of(identity, self.acquired)
    }
}

impl LeadFrom {
    /// The later of two.
    pub(crate) const fn later(self, other: Self) -> Self {
        match (self, other) {
            (Self::Now, Self::Now) => Self::Now,
            (Self::AfterProbation, _) | (_, Self::AfterProbation) => Self::AfterProbation,
        }
    }
}

impl Term {
    /// Whether this replica leads at `now`.
    pub(crate) fn leads_at(&self, now: MonotonicTime) -> bool {
        self.leads_from <= now && now < self.until
    }

    /// Whether `record` is the Lease held in this term.
    pub(crate) fn holds(&self, identity: &str, record: &LeaseRecord) -> bool {
        self.uid == record.uid && record.is_of(identity, self.acquired)
    }
}

impl LeaseRole {
    /// Drops an unconfirmed write that can no longer succeed. A write carries the resourceVersion
    /// it was based on: once another client changed or deleted the Lease, it can only conflict.
    pub(super) fn observe(
        self,
        identity: &str,
        before: Option<&LeaseRecord>,
        lease_state: &LeaseState,
    ) -> Self {
        let Self::Uncertain(unconfirmed) = self else {
            return self;
        };
        let still_possible = match lease_state {
            LeaseState::Unknown(_) => true,
            LeaseState::NotFound => unconfirmed.uid.is_none(),
            LeaseState::Found(record) => {
                unconfirmed.matches(identity, record) || before == Some(record.as_ref())
            }
        };
        if still_possible { Self::Uncertain(unconfirmed) } else { Self::Follower }
    }
}
