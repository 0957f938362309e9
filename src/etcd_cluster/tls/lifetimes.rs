//! How long authorities and certificates live, and when another is due.
//! Comes in: three durations, and the time. Goes out: derived times. May touch: std durations and
//! timestamps; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::pki::ca::Certificate;
use crate::pki::issue::Validity;

const DAY: Duration = Duration::from_hours(24);
/// How far back something new is valid, for clocks that are a little late.
const BACKDATED: Duration = Duration::from_mins(5);

/// How long things live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lifetimes {
    /// How long an authority lives.
    pub(crate) authority: Duration,
    /// How long what it signs lives.
    pub(crate) leaf: Duration,
    /// How long applications have to hear of a new authority before it signs, and again to take up what it signed
    /// before the old one is trusted no more.
    pub(crate) overlap: Duration,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self {
            authority: DAY.saturating_mul(3650),
            leaf: DAY.saturating_mul(90),
            overlap: DAY.saturating_mul(3),
        }
    }
}

impl Lifetimes {
    /// The life of an authority that is made at `now`.
    pub(crate) fn of_authority(&self, now: Timestamp) -> Validity {
        Validity { from: before(now, self.backdated()), until: after(now, self.authority) }
    }

    /// The life of something that is signed at `now`: within the life of what signs it.
    pub(crate) fn of_leaf(&self, authority: &Certificate, now: Timestamp) -> Validity {
        let from = before(now, self.backdated()).max(authority.from);
        Validity { from, until: after(now, self.leaf).min(authority.until) }
    }

    /// When something is due that is signed at `now`.
    pub(crate) fn next(&self, authority: &Certificate, now: Timestamp) -> Timestamp {
        let Validity { from, until } = self.of_leaf(authority, now);
        two_thirds(from, until)
    }

    /// A part of its life at most, or something that lives shortly would be old when it is made.
    fn backdated(&self) -> Duration {
        BACKDATED.min(self.leaf.checked_div(10).unwrap_or_default())
    }
}

/// When something else should take its place: after two thirds of its life.
pub(crate) fn due_at(certificate: &Certificate) -> Timestamp {
    two_thirds(certificate.from, certificate.until)
}

/// Whether that time has come.
pub(crate) fn due(certificate: &Certificate, now: Timestamp) -> bool {
    due_at(certificate) <= now
}

fn two_thirds(from: Timestamp, until: Timestamp) -> Timestamp {
    let life = Duration::try_from(until.duration_since(from)).unwrap_or_default();
    after(from, life.checked_div(3).unwrap_or_default().saturating_mul(2))
}

/// The time after another one.
pub(super) fn after(time: Timestamp, span: Duration) -> Timestamp {
    let span = SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX);
    time.saturating_add(span).unwrap_or(Timestamp::MAX)
}

/// Not all readers of certificates know of a time before Unix time.
pub(super) fn before(time: Timestamp, span: Duration) -> Timestamp {
    let span = SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX);
    time.saturating_sub(span).unwrap_or(Timestamp::MIN).max(Timestamp::UNIX_EPOCH)
}
