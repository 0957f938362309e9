//! What one pass over the Lease knows. Data and questions only.
//! Comes in: a Lease as the API server gave it, or why it could not be read. Goes out: `Seen`.
//! May touch: `api` and k8s-openapi types. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;

use super::standing::{Standing, Term};
use crate::api::leadership::Leadership;
use crate::api::moment::Moment;
use crate::api::names;

/// No replica asks for longer. A record that says more was not written by one, and must not keep
/// the others waiting for years.
pub(crate) const LONGEST: Duration = Duration::from_hours(1);

/// The three times of an election, each shorter than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    /// How long the others leave a silent leader alone.
    pub(crate) lease_duration: Duration,
    /// How long a leader goes on after the last renewal it began and saw succeed.
    pub(crate) renew_deadline: Duration,
    /// The pause between two passes.
    pub(crate) retry_period: Duration,
}

impl Timing {
    /// How long one call to the API server may take: half of the renew deadline, so that there is
    /// time for a second one.
    pub(crate) fn call_limit(&self) -> Duration {
        self.renew_deadline.checked_div(2).unwrap_or_default()
    }

    /// How long it may take to let the Lease go: the end of a write that was begun, a look, and
    /// the last write.
    pub(crate) fn release_limit(&self) -> Duration {
        self.call_limit().saturating_mul(3)
    }
}

/// Everything that a decision needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    /// This replica's name in the Lease.
    pub(crate) identity: &'a str,
    /// This replica's times.
    pub(crate) timing: &'a Timing,
    /// The time, after the reading came back.
    pub(crate) now: Moment,
    /// What the API server said in this pass.
    pub(crate) reading: &'a Reading,
    /// What this replica knows, this reading included; see [`Memory::look`].
    pub(crate) memory: &'a Memory,
}

/// The Lease as it was read, or that it was not.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reading {
    /// The Lease exists.
    Found(Box<Record>),
    /// The API server said that there is no such Lease.
    Absent,
    /// The API server did not say. This is not absence.
    Unknown(Unread),
}

/// Why a Lease could not be read. It makes no difference to what is safe, only to who can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// The API server understood and said no.
    Refused,
    /// No answer came, or one that said nothing; or there was no time left to ask.
    Unanswered,
}

/// One version of the Lease, in our words.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    /// Tells this Lease from one of the same name that was made after it was deleted.
    pub(crate) uid: String,
    /// Who holds it; none if nobody does.
    pub(crate) holder: Option<String>,
    /// Whether a holder let go of this very Lease after it had stopped leading. An empty holder
    /// alone does not say that: anyone can empty the field while the holder leads on.
    pub(crate) released: bool,
    /// When the holder took it, by the holder's wall clock. Only ever compared for equality.
    pub(crate) acquired: Option<Timestamp>,
    /// When it was last renewed, by the holder's wall clock. Only ever compared for equality.
    pub(crate) renewed: Option<Timestamp>,
    /// How long the holder asks to be left alone.
    pub(crate) duration: Option<Duration>,
    /// How often it went from one holder to another.
    pub(crate) transitions: i32,
}

impl Record {
    /// What a Lease says.
    pub(crate) fn of(lease: &Lease) -> Self {
        let spec = lease.spec.clone().unwrap_or_default();
        let uid = lease.metadata.uid.clone().unwrap_or_default();
        let holder = spec.holder_identity.filter(|holder| !holder.is_empty());
        let notes = lease.metadata.annotations.as_ref();
        let mark = notes.and_then(|notes| notes.get(names::RELEASED_ANNOTATION));
        Self {
            // The mark names the Lease that it was written on: one that was restored from a copy
            // carries the mark of another.
            released: holder.is_none() && mark.is_some_and(|mark| !uid.is_empty() && *mark == uid),
            uid,
            holder,
            acquired: spec.acquire_time.map(|time| time.0),
            renewed: spec.renew_time.map(|time| time.0),
            duration: spec
                .lease_duration_seconds
                .and_then(|seconds| u64::try_from(seconds).ok())
                .map(|seconds| Duration::from_secs(seconds).min(LONGEST)),
            transitions: spec.lease_transitions.unwrap_or_default(),
        }
    }

    /// Whether `identity` wrote this record when it took the Lease at `acquired`. The name alone
    /// is not enough: someone may have given two processes the same one.
    pub(crate) fn is_of(&self, identity: &str, acquired: Timestamp) -> bool {
        self.holder.as_deref() == Some(identity) && self.acquired == Some(acquired)
    }
}

/// What a replica carries from one pass to the next.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Memory {
    /// The record that was last seen, and since when it has stood still.
    pub(crate) sighting: Option<Sighting>,
    /// The longest time that a holder was seen to ask for and that may still matter: a leader of
    /// a Lease that was deleted or emptied may go on for nearly as long.
    pub(crate) longest: Duration,
    /// How we stand to the Lease.
    pub(crate) standing: Standing,
}

/// A record that has not changed since a moment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sighting {
    /// The record.
    pub(crate) record: Record,
    /// When it was first seen so, counted from when the answer arrived. The holder sent its
    /// renewal before that, so our count always ends after its own.
    pub(crate) since: Moment,
}

/// The pause after a conflict: someone else wrote to the Lease, and it matters soon who.
const SOON: Duration = Duration::from_millis(200);

impl Memory {
    /// What the replica remembers after a reading that arrived at `now`.
    pub(crate) fn look(self, identity: &str, reading: &Reading, now: Moment) -> Self {
        let leads = self.leadership(now).holds_at(now);
        let Self { sighting, longest, standing } = self;
        let before = sighting.as_ref().map(|sighting| &sighting.record);
        let standing = standing.look(identity, before, reading);
        // Once we lead ourselves, whoever was before us has stopped; so has one that released.
        let longest = if leads { Duration::ZERO } else { longest };
        let (sighting, longest) = match reading {
            Reading::Unknown(_) => (sighting, longest),
            Reading::Absent => (None, longest),
            Reading::Found(record) => {
                let longest = match (&record.holder, record.released) {
                    (Some(_), _) => longest.max(record.duration.unwrap_or_default()),
                    (None, true) => Duration::ZERO,
                    (None, false) => longest,
                };
                (Some(seen_again(sighting, record, now)), longest)
            }
        };
        Self { sighting, longest, standing }
    }

    /// Whether we lead at `now`.
    pub(crate) fn leadership(&self, now: Moment) -> Leadership {
        match &self.standing {
            Standing::Holding(term) if term.leads_at(now) => {
                Leadership::Leading { until: term.until }
            }
            Standing::Holding(_) | Standing::Unsure(_) | Standing::Candidate => {
                Leadership::Following
            }
        }
    }

    /// How long one call to the API server may take, never beyond the end of our term; none, if
    /// no time is left to call at all.
    pub(crate) fn call_limit(&self, timing: &Timing, now: Moment) -> Option<Duration> {
        let limit = self.within_term(timing.call_limit(), now);
        (!limit.is_zero()).then_some(limit)
    }

    /// How long to rest before the next look, and never beyond the end of our term.
    pub(crate) fn pause(&self, timing: &Timing, conflict: bool, now: Moment) -> Duration {
        let pause = if conflict { SOON.min(timing.retry_period) } else { timing.retry_period };
        self.within_term(pause, now)
    }

    fn within_term(&self, span: Duration, now: Moment) -> Duration {
        match &self.standing {
            Standing::Holding(Term { until, .. }) => span.min(until.since(now)),
            Standing::Unsure(_) | Standing::Candidate => span,
        }
    }
}

fn seen_again(sighting: Option<Sighting>, record: &Record, now: Moment) -> Sighting {
    match sighting {
        Some(old) if old.record == *record => old,
        Some(_) | None => Sighting { record: record.clone(), since: now },
    }
}
