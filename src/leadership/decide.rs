//! What to do about the Lease now. The rules are client-go's, and stricter in three places:
//! a leader stops at once when its Lease is gone, replaced or another's; a Lease that is new or
//! was emptied by a stranger is held on probation, because its leader may not know yet; and what
//! could not be read never makes a leader.
//! Comes in: `Seen`. Goes out: a `Plan`. May touch: nothing; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use super::seen::{Reading, Record, Seen, Unread};
use super::standing::{Begin, Claim, Standing, Term};

/// What to do, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// What to do.
    pub(crate) step: Step,
    /// Which rule spoke.
    pub(crate) because: Because,
}

/// One move. Every write carries the uid and the version that were read, so that it lands on
/// exactly the Lease that the decision was made about, or nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::enum_variant_names, reason = "to step down is one word")]
pub(crate) enum Step {
    /// Leave the Lease as it is and look again later.
    Wait,
    /// The Lease does not exist: make one that we hold, on probation. If another replica is
    /// faster the API server refuses; if we die after it, the others wait for it to expire.
    Create {
        /// Which time to write as the time of taking it.
        acquired: Acquired,
    },
    /// The Lease is free or ours: write our name into it. Repeating it changes nothing but times.
    Take {
        /// When the term starts to count as leading.
        begin: Begin,
        /// Which time to write as the time of taking it.
        acquired: Acquired,
    },
    /// We hold the Lease: say so again. Repeating it changes nothing but the time.
    Renew,
    /// We hold the Lease no longer, or cannot know that we do: stop leading, write nothing.
    StepDown {
        /// Whether we may go on, should the Lease turn out to be ours still.
        may_resume: bool,
    },
}

/// Which time stands in the Lease as the time of taking it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acquired {
    /// The one of our claim: this is the same taking, tried again or taken up. Whichever of two
    /// writes lands, we know it for ours.
    Keep,
    /// The present.
    New,
}

/// Why a step was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Because {
    /// The API server did not say how the Lease stands.
    Unreadable,
    /// The API server refuses to show us the Lease.
    ReadRefused,
    /// Another replica holds the Lease and has not been silent for long enough.
    HeldByAnother,
    /// The holder has been silent for the whole duration it asked for.
    HolderSilent,
    /// Its last holder let the Lease go.
    Released,
    /// Nobody holds the Lease, and nobody released it: someone made or emptied it by hand, or its
    /// holder let go while on probation itself.
    Emptied,
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
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Unreadable => "Unreadable",
            Self::ReadRefused => "ReadRefused",
            Self::HeldByAnother => "HeldByAnother",
            Self::HolderSilent => "HolderSilent",
            Self::Released => "Released",
            Self::Emptied => "Emptied",
            Self::Absent => "Absent",
            Self::OwnWriteLanded => "OwnWriteLanded",
            Self::Held => "Held",
            Self::DeadlinePassed => "DeadlinePassed",
            Self::LeaseGone => "LeaseGone",
            Self::LeaseReplaced => "LeaseReplaced",
        }
    }
}

/// What to do now.
pub(crate) fn decide(seen: &Seen<'_>) -> Plan {
    let (step, because) = match &seen.memory.standing {
        Standing::Holding(term) => as_holder(seen, term),
        Standing::Unsure(claim) => as_candidate(seen, Some(claim)),
        Standing::Candidate => as_candidate(seen, None),
    };
    Plan { step, because }
}

fn as_holder(seen: &Seen<'_>, term: &Term) -> (Step, Because) {
    // After a mere silence of the API server the Lease may still be ours. Once it was seen in
    // other hands it is not, whatever it says later.
    let resume = Step::StepDown { may_resume: true };
    let lost = Step::StepDown { may_resume: false };
    if seen.now >= term.until {
        return (resume, Because::DeadlinePassed);
    }
    match seen.reading {
        Reading::Unknown(why) => (Step::Wait, unread(*why)),
        Reading::Absent => (lost, Because::LeaseGone),
        Reading::Found(record) if record.uid != term.uid => (lost, Because::LeaseReplaced),
        Reading::Found(record) if !term.holds(seen.identity, record) => {
            (lost, Because::HeldByAnother)
        }
        Reading::Found(_) => (Step::Renew, Because::Held),
    }
}

fn as_candidate(seen: &Seen<'_>, claim: Option<&Claim>) -> (Step, Because) {
    let record = match seen.reading {
        Reading::Unknown(why) => return (Step::Wait, unread(*why)),
        Reading::Absent => {
            let acquired = claim.map_or(Acquired::New, |_| Acquired::Keep);
            return (Step::Create { acquired }, Because::Absent);
        }
        Reading::Found(record) => record,
    };
    if let Some(claim) = claim
        && claim.made(seen.identity, record)
    {
        let (begin, acquired) = (claim.begin, Acquired::Keep);
        return (Step::Take { begin, acquired }, Because::OwnWriteLanded);
    }
    match record.holder {
        None if record.released => (take(Begin::AtOnce, claim), Because::Released),
        None => (take(Begin::OnProbation, claim), Because::Emptied),
        Some(_) if silence(seen) >= patience(seen, record) => {
            (take(Begin::AtOnce, claim), Because::HolderSilent)
        }
        Some(_) => (Step::Wait, Because::HeldByAnother),
    }
}

/// A claim that is still alive here was made on this very version of the record: to try again is
/// the same taking, and begins as carefully as the first attempt would have.
fn take(begin: Begin, claim: Option<&Claim>) -> Step {
    match claim {
        Some(claim) => Step::Take { begin: begin.and(claim.begin), acquired: Acquired::Keep },
        None => Step::Take { begin, acquired: Acquired::New },
    }
}

const fn unread(why: Unread) -> Because {
    match why {
        Unread::Refused => Because::ReadRefused,
        Unread::Unanswered => Because::Unreadable,
    }
}

/// How long the record has stood still before our eyes.
fn silence(seen: &Seen<'_>) -> Duration {
    let sighting = seen.memory.sighting.as_ref();
    sighting.map_or(Duration::ZERO, |sighting| seen.now.since(sighting.since))
}

/// The longest of what the holder asks for, what one before it asked for, and what we would ask
/// for: replicas of two versions may differ while one replaces the other.
fn patience(seen: &Seen<'_>, record: &Record) -> Duration {
    let asked = record.duration.unwrap_or_default();
    asked.max(seen.memory.longest).max(seen.timing.lease_duration)
}

#[cfg(test)]
mod tests;
