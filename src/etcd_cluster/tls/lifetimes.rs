//! Lifetimes of CAs and leaf certificates, and when renewal is due. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::pki::ca::Certificate;
use crate::pki::issue::Validity;

const DAY: Duration = Duration::from_hours(24);
/// New certificates are backdated, for clocks that are slightly behind.
const CLOCK_SKEW_GRACE: Duration = Duration::from_mins(5);

/// Lifetimes of certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lifetimes {
    /// Lifetime of a CA.
    pub(crate) ca: Duration,
    /// Lifetime of a leaf certificate.
    pub(crate) leaf: Duration,
    /// How long applications have to trust a new CA before it issues certificates, and again to use
    /// certificates of it before the old CA is removed.
    pub(crate) overlap: Duration,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self {
            ca: DAY.saturating_mul(3650),
            leaf: DAY.saturating_mul(90),
            overlap: DAY.saturating_mul(3),
        }
    }
}

impl Lifetimes {
    /// The validity of a CA that is issued at `now`.
    pub(crate) fn ca_validity(&self, now: Timestamp) -> Validity {
        Validity { from: before(now, self.backdate()), until: after(now, self.ca) }
    }

    /// The validity of a leaf certificate that is issued at `now`, within the validity of its CA.
    pub(crate) fn leaf_validity(&self, ca: &Certificate, now: Timestamp) -> Validity {
        let from = before(now, self.backdate()).max(ca.from);
        Validity { from, until: after(now, self.leaf).min(ca.until) }
    }

    /// When renewal is due for a leaf certificate that is issued at `now`.
    pub(crate) fn leaf_renewal(&self, ca: &Certificate, now: Timestamp) -> Timestamp {
        let Validity { from, until } = self.leaf_validity(ca, now);
        two_thirds(from, until)
    }

    /// At most a tenth of the lifetime, or a short-lived certificate would be due when issued.
    fn backdate(&self) -> Duration {
        CLOCK_SKEW_GRACE.min(self.leaf.checked_div(10).unwrap_or_default())
    }
}

/// When renewal of a certificate is due: after two thirds of its lifetime.
pub(crate) fn renewal_time(certificate: &Certificate) -> Timestamp {
    two_thirds(certificate.from, certificate.until)
}

/// Whether renewal of a certificate is due.
pub(crate) fn is_renewal_due(certificate: &Certificate, now: Timestamp) -> bool {
    renewal_time(certificate) <= now
}

fn two_thirds(from: Timestamp, until: Timestamp) -> Timestamp {
    let lifetime = Duration::try_from(until.duration_since(from)).unwrap_or_default();
    after(from, lifetime.checked_div(3).unwrap_or_default().saturating_mul(2))
}

/// `time` plus `span`, saturating.
pub(super) fn after(time: Timestamp, span: Duration) -> Timestamp {
    let span = SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX);
    time.saturating_add(span).unwrap_or(Timestamp::MAX)
}

/// `time` minus `span`, not before the Unix epoch: not all certificate parsers accept older times.
pub(super) fn before(time: Timestamp, span: Duration) -> Timestamp {
    let span = SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX);
    time.saturating_sub(span).unwrap_or(Timestamp::MIN).max(Timestamp::UNIX_EPOCH)
}
