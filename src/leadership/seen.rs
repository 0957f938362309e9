//! What one pass over the Lease knows. Data and questions only.
//! Comes in: a Lease as the API server gave it, or why it could not be read. Goes out: `Seen`.
//! May touch: `api::moment` and k8s-openapi types. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;

use super::Leadership;
use crate::api::moment::Moment;

/// The three times of an election, each shorter than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long the others leave a silent leader alone.
    pub lease_duration: Duration,
    /// How long a leader goes on after the last renewal it began and saw succeed.
    pub renew_deadline: Duration,
    /// The pause between two passes.
    pub retry_period: Duration,
}

/// Everything that a decision needs.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    /// This replica's name in the Lease.
    pub identity: &'a str,
    /// The time, after the reading came back.
    pub now: Moment,
    /// What the API server said in this pass.
    pub reading: &'a Reading,
    /// What this replica knows from the passes before.
    pub memory: &'a Memory,
}

/// The Lease as it was read, or that it was not.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// The Lease exists.
    Found(Box<Record>),
    /// The API server said that there is no such Lease.
    Absent,
    /// The API server did not say. This is not absence.
    Unknown,
}

/// One version of the Lease, in our words.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Tells this Lease from one of the same name that was made after it was deleted.
    pub uid: String,
    /// Who holds it; none if it was released.
    pub holder: Option<String>,
    /// When the holder took it, by the holder's wall clock. Only ever compared for equality.
    pub acquired: Option<Timestamp>,
    /// When it was last renewed, by the holder's wall clock. Only ever compared for equality.
    pub renewed: Option<Timestamp>,
    /// How long the holder asks to be left alone.
    pub duration: Option<Duration>,
    /// How often it went from one holder to another.
    pub transitions: i32,
}

impl Record {
    /// What a Lease says.
    #[must_use]
    pub fn of(lease: &Lease) -> Self {
        let spec = lease.spec.clone().unwrap_or_default();
        Self {
            uid: lease.metadata.uid.clone().unwrap_or_default(),
            holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
            acquired: spec.acquire_time.map(|time| time.0),
            renewed: spec.renew_time.map(|time| time.0),
            duration: spec
                .lease_duration_seconds
                .and_then(|seconds| u64::try_from(seconds).ok())
                .map(Duration::from_secs),
            transitions: spec.lease_transitions.unwrap_or_default(),
        }
    }

    /// Whether `identity` wrote this record when it took the Lease at `acquired`. The name alone
    /// is not enough: someone may have given two processes the same one.
    #[must_use]
    pub fn is_of(&self, identity: &str, acquired: Timestamp) -> bool {
        self.holder.as_deref() == Some(identity) && self.acquired == Some(acquired)
    }
}

/// What a replica carries from one pass to the next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// The record that was last seen, and since when it has stood still.
    pub sighting: Option<Sighting>,
    /// A write of ours that may have reached the Lease without our knowing.
    pub claim: Option<Claim>,
    /// The term in which we hold the Lease, if we do.
    pub term: Option<Term>,
}

/// The pause after a refusal: someone else wrote to the Lease, and it matters soon who.
const SOON: Duration = Duration::from_millis(200);

impl Memory {
    /// Whether we lead at `now`.
    #[must_use]
    pub fn leadership(&self, now: Moment) -> Leadership {
        match &self.term {
            Some(term) if term.leads_at(now) => Leadership::Leading { until: term.until },
            Some(_) | None => Leadership::Following,
        }
    }

    /// How long one call to the API server may take: half of the renew deadline, so that there is
    /// time for a second one, and never beyond the end of our term.
    #[must_use]
    pub fn call_limit(&self, timing: &Timing, now: Moment) -> Duration {
        self.within_term(timing.renew_deadline.mul_f32(0.5), now)
    }

    /// How long to rest before the next look, and never beyond the end of our term.
    #[must_use]
    pub fn pause(&self, timing: &Timing, refused: bool, now: Moment) -> Duration {
        self.within_term(if refused { SOON } else { timing.retry_period }, now)
    }

    fn within_term(&self, span: Duration, now: Moment) -> Duration {
        self.term
            .as_ref()
            .map_or(span, |term| span.min(term.until.since(now)))
    }
}

/// A record that has not changed since a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Sighting {
    /// The record.
    pub record: Record,
    /// When it was first seen so, counted from when the answer arrived. The holder sent its
    /// renewal before that, so our count always ends after its own.
    pub since: Moment,
}

/// A write whose end we do not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The time that we wrote into the Lease as the time of taking it.
    pub acquired: Timestamp,
    /// How the term begins, should the write turn out to have landed.
    pub begin: Begin,
}

/// When a term starts to count as leading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At once: the one before us has released the Lease or has been silent for its duration.
    AtOnce,
    /// After a full lease duration: the Lease is new, and a leader that held the deleted one may
    /// not have noticed yet.
    OnProbation,
}

/// A term in which this replica holds the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The Lease that we hold.
    pub uid: String,
    /// The time that we wrote into it when we took it.
    pub acquired: Timestamp,
    /// From here on the term counts as leading.
    pub leads_from: Moment,
    /// From here on it does not: the renew deadline after our last good write was begun.
    pub until: Moment,
}

impl Term {
    /// Whether this replica leads at `now`.
    #[must_use]
    pub fn leads_at(&self, now: Moment) -> bool {
        self.leads_from <= now && now < self.until
    }
}
