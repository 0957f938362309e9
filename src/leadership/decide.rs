//! What to do about the Lease now. The rules are client-go's, and stricter in three places:
//! a leader stops at once when its Lease is gone, replaced or another's; a Lease that is new is
//! held on probation, because the leader of a deleted one may not know yet; and what could not be
//! read never makes a leader. Comes in: `Seen`. Goes out: a `Plan`. May touch: nothing; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use super::seen::{Begin, Memory, Reading, Record, Seen, Sighting, Term, Timing};
use crate::api::moment::Moment;

/// What to do, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What to do.
    pub step: Step,
    /// Which rule spoke.
    pub because: Because,
}

/// One move. Every write carries the version that was read, so that it lands on exactly the
/// Lease that the decision was made about, or nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Leave the Lease as it is and look again later.
    Wait,
    /// The Lease does not exist: make one that we hold, on probation. If another replica is
    /// faster the API server refuses; if we die after it, the others wait for it to expire.
    Create,
    /// The Lease is free or ours: write our name into it. Repeating it changes nothing but times.
    Take(Begin),
    /// We hold the Lease: say so again. Repeating it changes nothing but the time.
    Renew,
    /// We hold the Lease no longer, or cannot know that we do: stop leading, write nothing.
    StepDown,
}

/// Why a step was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// The API server did not say how the Lease stands.
    Unreadable,
    /// Another replica holds the Lease and has not been silent for long enough.
    HeldByAnother,
    /// The holder has been silent for the whole duration it asked for.
    HolderSilent,
    /// Nobody holds the Lease.
    Vacant,
    /// There is no Lease.
    Absent,
    /// A write of ours landed though we were not told.
    OwnWriteLanded,
    /// We hold the Lease.
    Held,
    /// We could not renew for the whole renew deadline.
    DeadlinePassed,
    /// The Lease that we held was deleted.
    LeaseGone,
    /// The Lease that we held was deleted, and there is another of its name.
    LeaseReplaced,
}

impl Because {
    /// The rule's name in logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unreadable => "Unreadable",
            Self::HeldByAnother => "HeldByAnother",
            Self::HolderSilent => "HolderSilent",
            Self::Vacant => "Vacant",
            Self::Absent => "Absent",
            Self::OwnWriteLanded => "OwnWriteLanded",
            Self::Held => "Held",
            Self::DeadlinePassed => "DeadlinePassed",
            Self::LeaseGone => "LeaseGone",
            Self::LeaseReplaced => "LeaseReplaced",
        }
    }
}

/// What the replica remembers after a reading that arrived at `now`.
#[must_use]
pub fn look(memory: Memory, reading: &Reading, now: Moment) -> Memory {
    let Memory {
        sighting,
        claim,
        term,
    } = memory;
    let sighting = match reading {
        Reading::Unknown => sighting,
        Reading::Absent => None,
        Reading::Found(record) => match sighting {
            Some(old) if old.record == **record => Some(old),
            _ => Some(Sighting {
                record: (**record).clone(),
                since: now,
            }),
        },
    };
    Memory {
        sighting,
        claim,
        term,
    }
}

/// What to do now. `seen.memory` has already taken in `seen.reading` through [`look`].
#[must_use]
pub fn decide(seen: &Seen<'_>, timing: &Timing) -> Plan {
    let (step, because) = match &seen.memory.term {
        Some(term) => as_holder(seen, term),
        None => as_candidate(seen, timing),
    };
    Plan { step, because }
}

fn as_holder(seen: &Seen<'_>, term: &Term) -> (Step, Because) {
    if seen.now >= term.until {
        return (Step::StepDown, Because::DeadlinePassed);
    }
    match seen.reading {
        Reading::Unknown => (Step::Wait, Because::Unreadable),
        Reading::Absent => (Step::StepDown, Because::LeaseGone),
        Reading::Found(record) if record.uid != term.uid => {
            (Step::StepDown, Because::LeaseReplaced)
        }
        Reading::Found(record) if !record.is_of(seen.identity, term.acquired) => {
            (Step::StepDown, Because::HeldByAnother)
        }
        Reading::Found(_) => (Step::Renew, Because::Held),
    }
}

fn as_candidate(seen: &Seen<'_>, timing: &Timing) -> (Step, Because) {
    let record = match seen.reading {
        Reading::Unknown => return (Step::Wait, Because::Unreadable),
        Reading::Absent => return (Step::Create, Because::Absent),
        Reading::Found(record) => record,
    };
    if let Some(claim) = &seen.memory.claim
        && record.is_of(seen.identity, claim.acquired)
    {
        return (Step::Take(claim.begin), Because::OwnWriteLanded);
    }
    if record.holder.is_none() {
        return (Step::Take(begin_after(record)), Because::Vacant);
    }
    if silence(seen) >= patience(record, timing) {
        return (Step::Take(Begin::AtOnce), Because::HolderSilent);
    }
    (Step::Wait, Because::HeldByAnother)
}

/// A free Lease without a time of renewal is as good as new: someone made it by hand, or its
/// holder let go while on probation itself.
fn begin_after(record: &Record) -> Begin {
    match record.renewed {
        Some(_) => Begin::AtOnce,
        None => Begin::OnProbation,
    }
}

/// How long the record has stood still before our eyes.
fn silence(seen: &Seen<'_>) -> Duration {
    seen.memory
        .sighting
        .as_ref()
        .map_or(Duration::ZERO, |sighting| seen.now.since(sighting.since))
}

/// The longer of what the holder asked for and what we would ask for: replicas of two versions
/// may differ while one replaces the other.
fn patience(record: &Record, timing: &Timing) -> Duration {
    record
        .duration
        .unwrap_or_default()
        .max(timing.lease_duration)
}

#[cfg(test)]
mod tests;
