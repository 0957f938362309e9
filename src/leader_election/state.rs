//! The observed state of the election: the Lease as read, and what this replica knows from earlier
//! reads and writes. Pure data and questions about it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;

use super::role::{LeaseRole, Term};
use crate::api::leadership::Leadership;
use crate::api::monotonic::MonotonicTime;
use crate::api::names;

/// No replica writes a longer lease duration. A record with a longer one was not written by a
/// replica, and must not keep the others waiting for years.
pub(crate) const MAX_LEASE_DURATION: Duration = Duration::from_hours(1);

/// The three durations of leader election, each shorter than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    /// How long other replicas wait after the last renewal before they acquire the Lease.
    pub(crate) lease_duration: Duration,
    /// How long a leader leads after the start of its last successful renewal.
    pub(crate) renew_deadline: Duration,
    /// The delay between two reconciliations of the Lease.
    pub(crate) retry_period: Duration,
}

impl Timing {
    /// Timeout of one API call: half of the renew deadline, so that there is time for a retry.
    pub(crate) fn call_timeout(&self) -> Duration {
        self.renew_deadline.checked_div(2).unwrap_or_default()
    }

    /// Timeout of a release: the end of a write in progress, a read, and the last write.
    pub(crate) fn release_timeout(&self) -> Duration {
        self.call_timeout().saturating_mul(3)
    }
}

/// Everything that a decision depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObservedState<'a> {
    /// This replica's identity in the Lease.
    pub(crate) identity: &'a str,
    /// This replica's durations.
    pub(crate) timing: &'a Timing,
    /// The time after the read returned.
    pub(crate) now: MonotonicTime,
    /// The Lease as read in this reconciliation.
    pub(crate) lease_state: &'a LeaseState,
    /// What this replica knows, this read included; see [`ElectionState::observe`].
    pub(crate) election: &'a ElectionState,
}

/// The Lease as read, or why it is unknown.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LeaseState {
    /// The Lease exists.
    Found(Box<LeaseRecord>),
    /// The Lease does not exist.
    NotFound,
    /// The read failed. This is not absence.
    Unknown(ReadFailure),
}

/// Why the Lease could not be read. The decision is the same; the hint to the admin differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadFailure {
    /// The API server rejected the read.
    Forbidden,
    /// No usable response, or no time left for a call.
    NoResponse,
}

/// One version of the Lease.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LeaseRecord {
    /// Distinguishes this Lease from a later one of the same name.
    pub(crate) uid: String,
    /// Identity of the holder, if the Lease is held.
    pub(crate) holder: Option<String>,
    /// Whether the holder released this very Lease after it stopped leading. An empty holder alone
    /// does not prove that: any client can clear the field while the holder still leads.
    pub(crate) released: bool,
    /// `acquireTime` by the holder's wall clock. Only compared for equality.
    pub(crate) acquired: Option<Timestamp>,
    /// `renewTime` by the holder's wall clock. Only compared for equality.
    pub(crate) renewed: Option<Timestamp>,
    /// The holder's lease duration.
    pub(crate) duration: Option<Duration>,
    /// Number of changes of the holder.
    pub(crate) transitions: i32,
}

impl LeaseRecord {
    /// Reads a Lease.
    pub(crate) fn from_lease(lease: &Lease) -> Self {
        let spec = lease.spec.clone().unwrap_or_default();
        let uid = lease.metadata.uid.clone().unwrap_or_default();
        let holder = spec.holder_identity.filter(|holder| !holder.is_empty());
        let annotations = lease.metadata.annotations.as_ref();
        let mark = annotations.and_then(|annotations| annotations.get(names::RELEASED_ANNOTATION));
        Self {
            // The mark is the uid of the released Lease: a Lease restored from a copy has the mark
            // of another one.
            released: holder.is_none() && mark.is_some_and(|mark| !uid.is_empty() && *mark == uid),
            uid,
            holder,
            acquired: spec.acquire_time.map(|time| time.0),
            renewed: spec.renew_time.map(|time| time.0),
            duration: spec
                .lease_duration_seconds
                .and_then(|seconds| u64::try_from(seconds).ok())
                .map(|seconds| Duration::from_secs(seconds).min(MAX_LEASE_DURATION)),
            transitions: spec.lease_transitions.unwrap_or_default(),
        }
    }

    /// Whether `identity` acquired the Lease at `acquired`. The identity alone does not suffice:
    /// two processes may have been given the same one.
    pub(crate) fn is_of(&self, identity: &str, acquired: Timestamp) -> bool {
        self.holder.as_deref() == Some(identity) && self.acquired == Some(acquired)
    }
}

/// What a replica keeps from one reconciliation to the next.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ElectionState {
    /// The record read last, and since when it is unchanged.
    pub(crate) last_seen: Option<LastSeen>,
    /// The longest lease duration seen that may still matter: a leader whose Lease was deleted or
    /// cleared may lead on for nearly as long.
    pub(crate) longest: Duration,
    /// This replica's role.
    pub(crate) role: LeaseRole,
}

/// A record and the instant since which it is unchanged.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LastSeen {
    /// The record.
    pub(crate) record: LeaseRecord,
    /// When this version was first read, counted from the response. The holder sent its renewal
    /// before that, so this count always ends after the holder's own.
    pub(crate) since: MonotonicTime,
}

/// The delay after a conflict: another replica wrote to the Lease, and may have acquired it.
const CONFLICT_RETRY_DELAY: Duration = Duration::from_millis(200);

impl ElectionState {
    /// The election state after a read that returned at `now`.
    pub(crate) fn observe(
        self,
        identity: &str,
        lease_state: &LeaseState,
        now: MonotonicTime,
    ) -> Self {
        let leads = self.leadership(now).holds_at(now);
        let Self { last_seen, longest, role } = self;
        let before = last_seen.as_ref().map(|last_seen| &last_seen.record);
        let role = role.observe(identity, before, lease_state);
        // Once this replica leads, every earlier leader has stopped; so has one that released.
        let longest = if leads { Duration::ZERO } else { longest };
        let (last_seen, longest) = match lease_state {
            LeaseState::Unknown(_) => (last_seen, longest),
            LeaseState::NotFound => (None, longest),
            LeaseState::Found(record) => {
                let longest = match (&record.holder, record.released) {
                    (Some(_), _) => longest.max(record.duration.unwrap_or_default()),
                    (None, true) => Duration::ZERO,
                    (None, false) => longest,
                };
                (Some(update_last_seen(last_seen, record, now)), longest)
            }
        };
        Self { last_seen, longest, role }
    }

    /// Whether this replica leads at `now`.
    pub(crate) fn leadership(&self, now: MonotonicTime) -> Leadership {
        match &self.role {
            LeaseRole::Holder(term) if term.leads_at(now) => {
                Leadership::Leading { until: term.until }
            }
            LeaseRole::Holder(_) | LeaseRole::Uncertain(_) | LeaseRole::Follower => {
                Leadership::Following
            }
        }
    }

    /// Timeout of one API call, never beyond the end of the term; none if no time is left.
    pub(crate) fn call_timeout(&self, timing: &Timing, now: MonotonicTime) -> Option<Duration> {
        let timeout = self.within_term(timing.call_timeout(), now);
        (!timeout.is_zero()).then_some(timeout)
    }

    /// The delay before the next read, never beyond the end of the term.
    pub(crate) fn retry_delay(
        &self,
        timing: &Timing,
        conflict: bool,
        now: MonotonicTime,
    ) -> Duration {
        let delay = if conflict {
            CONFLICT_RETRY_DELAY.min(timing.retry_period)
        } else {
            timing.retry_period
        };
        self.within_term(delay, now)
    }

    fn within_term(&self, span: Duration, now: MonotonicTime) -> Duration {
        match &self.role {
            LeaseRole::Holder(Term { until, .. }) => span.min(until.since(now)),
            LeaseRole::Uncertain(_) | LeaseRole::Follower => span,
        }
    }
}

fn update_last_seen(
    last_seen: Option<LastSeen>,
    record: &LeaseRecord,
    now: MonotonicTime,
) -> LastSeen {
    match last_seen {
        Some(old) if old.record == *record => old,
        Some(_) | None => LastSeen { record: record.clone(), since: now },
    }
}
