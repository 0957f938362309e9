//! How a replica stands to the Lease: it waits, it may hold it without knowing, or it holds it.
//! Comes in: what was read. Goes out: the claims and terms that are still worth something.
//! May touch: `api::moment`. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;

use super::seen::{Reading, Record};
use crate::api::moment::Moment;

/// How a replica stands to the Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It does not hold it.
    #[default]
    Candidate,
    /// A write of ours may have reached it without our knowing.
    Unsure(Claim),
    /// We hold it.
    Holding(Term),
}

/// A write whose end we do not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// The Lease that the write was made on; none, if it was to create one.
    pub(crate) uid: Option<String>,
    /// The time that we wrote into the Lease as the time of taking it.
    pub(crate) acquired: Timestamp,
    /// How the term begins, should the write turn out to have landed.
    pub(crate) begin: Begin,
}

/// When a term starts to count as leading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// At once: the one before us has released the Lease or has been silent for its duration.
    AtOnce,
    /// After a full lease duration: the Lease is new or was emptied by a stranger, and a leader
    /// that held it before may not have noticed yet.
    OnProbation,
}

/// A term in which this replica holds the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Term {
    /// The Lease that we hold.
    pub(crate) uid: String,
    /// The time that we wrote into it when we took it.
    pub(crate) acquired: Timestamp,
    /// From here on the term counts as leading.
    pub(crate) leads_from: Moment,
    /// From here on it does not: the renew deadline after our last good write was begun.
    pub(crate) until: Moment,
}

impl Claim {
    /// Whether `record` is what our write made. A Lease with another uid never is.
    pub(crate) fn made(&self, identity: &str, record: &Record) -> bool {
        let here = self.uid.as_ref().is_none_or(|uid| *uid == record.uid);
        here && record.is_of(identity, self.acquired)
    }
}

impl Begin {
    /// The more careful of two.
    pub(crate) const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::AtOnce, Self::AtOnce) => Self::AtOnce,
            (Self::OnProbation, _) | (_, Self::OnProbation) => Self::OnProbation,
        }
    }
}

impl Term {
    /// Whether this replica leads at `now`.
    pub(crate) fn leads_at(&self, now: Moment) -> bool {
        self.leads_from <= now && now < self.until
    }

    /// Whether `record` is the one that we hold.
    pub(crate) fn holds(&self, identity: &str, record: &Record) -> bool {
        self.uid == record.uid && record.is_of(identity, self.acquired)
    }
}

impl Standing {
    /// Drops a claim that cannot come true any more. A write names the version that it was made
    /// on; once the record has changed in other hands, or is gone, it can only be refused.
    pub(super) fn look(self, identity: &str, before: Option<&Record>, reading: &Reading) -> Self {
        let Self::Unsure(claim) = self else {
            return self;
        };
        let alive = match reading {
            Reading::Unknown(_) => true,
            Reading::Absent => claim.uid.is_none(),
            Reading::Found(record) => {
                claim.made(identity, record) || before == Some(record.as_ref())
            }
        };
        if alive { Self::Unsure(claim) } else { Self::Candidate }
    }
}
