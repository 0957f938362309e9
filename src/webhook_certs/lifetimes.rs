//! The lifetimes of CAs and leaf certificates, and every duration derived from them. Pure.
//! The durations depend on each other, so that every leaf in use has a CA that all API servers
//! trust; see [`Lifetimes::max_leaf_lifetime`].
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

const DAY: Duration = Duration::from_hours(24);
/// How far `notBefore` of a new certificate lies in the past, for clocks that are slow.
const BACKDATING_GRACE: Duration = Duration::from_mins(5);
/// Bound of the difference between two clocks, plus the time a write may be in flight.
const CLOCK_SKEW: Duration = Duration::from_mins(1);
/// Upper bound of the timeout of one API call.
const MAX_CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Containers are paused and clocks jump, so no replica waits longer than this.
const MAX_RESYNC_INTERVAL: Duration = Duration::from_mins(1);
/// No replica observes more often than this because of a clock.
const MIN_RESYNC_INTERVAL: Duration = Duration::from_millis(500);
const MIN_LEAF_LIFETIME: Duration = Duration::from_secs(10);
const MIN_PROPAGATION_DELAY: Duration = Duration::from_secs(1);
/// About ten years: dates stay within what every X.509 parser accepts.
const MAX_CA_LIFETIME: Duration = Duration::from_hours(24 * 3660);

/// The flags that set the lifetimes.
pub(crate) const CA_LIFETIME_FLAG: &str = "--webhook-ca-lifetime";
pub(crate) const LEAF_LIFETIME_FLAG: &str = "--webhook-leaf-lifetime";
pub(crate) const PROPAGATION_DELAY_FLAG: &str = "--webhook-ca-propagation-delay";

/// The three configured durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lifetimes {
    /// Lifetime of a CA.
    pub(crate) ca: Duration,
    /// Lifetime of a leaf certificate, which each replica issues for itself.
    pub(crate) leaf: Duration,
    /// How long a new CA must have been in every target before it signs: every API server has
    /// observed it by then.
    pub(crate) propagation_delay: Duration,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self {
            ca: DAY.saturating_mul(90),
            leaf: DAY.saturating_mul(7),
            propagation_delay: Duration::from_secs(30),
        }
    }
}

impl Lifetimes {
    /// The invalid flags, each with the values it accepts. Empty if the durations are valid.
    pub(crate) fn problems(&self) -> Vec<(&'static str, String)> {
        let Self { ca, leaf, propagation_delay } = *self;
        let mut found = Vec::new();
        if leaf < MIN_LEAF_LIFETIME {
            found.push((
                LEAF_LIFETIME_FLAG,
                format!("must be at least {}", seconds(MIN_LEAF_LIFETIME)),
            ));
        }
        if leaf > quarter(ca) {
            found.push((
                LEAF_LIFETIME_FLAG,
                format!("must be at most a quarter of {CA_LIFETIME_FLAG} {}", seconds(ca)),
            ));
        }
        if ca > MAX_CA_LIFETIME {
            let expected = format!("must be at most {}", seconds(MAX_CA_LIFETIME));
            found.push((CA_LIFETIME_FLAG, expected));
        }
        if propagation_delay < MIN_PROPAGATION_DELAY {
            found.push((
                PROPAGATION_DELAY_FLAG,
                format!("must be at least {}", seconds(MIN_PROPAGATION_DELAY)),
            ));
        }
        if propagation_delay > quarter(leaf) {
            found.push((
                PROPAGATION_DELAY_FLAG,
                format!("must be at most a quarter of {LEAF_LIFETIME_FLAG} {}", seconds(leaf)),
            ));
        }
        found
    }

    /// How old the CA set that a replica signs with may be, counted from before its read was sent.
    /// A replica that cannot reach the API server keeps its certificate and issues no other.
    pub(crate) fn max_staleness(&self) -> Duration {
        self.leaf.checked_div(3).unwrap_or_default()
    }

    /// How long a leaf of a CA may be in use after the CA stopped signing: the last leaf was issued
    /// from a CA set of maximum staleness, and then lived its whole lifetime.
    pub(crate) fn max_leaf_lifetime(&self) -> Duration {
        self.max_staleness().saturating_add(self.leaf).saturating_add(self.skew())
    }

    /// How long it takes until every replica that reaches the API server has observed a change,
    /// even without a watch event.
    pub(crate) fn propagation_bound(&self) -> Duration {
        self.requeue_delay(None).saturating_add(self.call_timeout())
    }

    /// Timeout of one API call. It is a part of the skew, because a change counts from before the
    /// write was sent.
    pub(crate) fn call_timeout(&self) -> Duration {
        MAX_CALL_TIMEOUT.min(self.skew().checked_div(2).unwrap_or_default())
    }

    fn skew(&self) -> Duration {
        CLOCK_SKEW.min(quarter(self.leaf))
    }

    /// `notBefore` of a certificate issued at `now`.
    pub(crate) fn not_before(&self, now: Timestamp) -> Timestamp {
        // At most a part of the lifetime, or a short-lived leaf would be due when it is issued.
        // Not all X.509 parsers accept dates before the Unix epoch.
        earlier(now, BACKDATING_GRACE.min(quarter(self.leaf))).max(Timestamp::UNIX_EPOCH)
    }

    /// The delay before the next reconciliation, if something is due after `due` or nothing is.
    pub(crate) fn requeue_delay(&self, due: Option<Duration>) -> Duration {
        let longest =
            MAX_RESYNC_INTERVAL.min(self.max_staleness().checked_div(2).unwrap_or_default());
        due.unwrap_or(longest).clamp(MIN_RESYNC_INTERVAL, longest.max(MIN_RESYNC_INTERVAL))
    }
}

fn quarter(whole: Duration) -> Duration {
    whole.checked_div(4).unwrap_or_default()
}

/// Seconds in the syntax of the flags.
fn seconds(time: Duration) -> String {
    format!("{}s", time.as_secs_f64())
}

/// The time `span` after `time`, saturating.
pub(crate) fn later(time: Timestamp, span: Duration) -> Timestamp {
    let span = SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX);
    time.saturating_add(span).unwrap_or(Timestamp::MAX)
}

/// The time `span` before `time`, saturating.
pub(crate) fn earlier(time: Timestamp, span: Duration) -> Timestamp {
    let span = SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX);
    time.saturating_sub(span).unwrap_or(Timestamp::MIN)
}

/// How long `time` is after `start`; zero if it is not.
pub(crate) fn since(start: Timestamp, time: Timestamp) -> Duration {
    Duration::try_from(time.duration_since(start)).unwrap_or_default()
}

/// Two thirds of a lifetime: when a renewal is due.
pub(crate) fn two_thirds(lifetime: Duration) -> Duration {
    lifetime.checked_div(3).unwrap_or_default().saturating_mul(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_seconds(ca: u64, leaf: u64, propagation_delay: u64) -> Lifetimes {
        Lifetimes {
            ca: Duration::from_secs(ca),
            leaf: Duration::from_secs(leaf),
            propagation_delay: Duration::from_secs(propagation_delay),
        }
    }

    #[test]
    fn default_and_shortest_lifetimes_are_valid() {
        assert_eq!(Lifetimes::default().problems(), []);
        assert_eq!(with_seconds(40, 10, 2).problems(), []);
    }

    #[test]
    fn every_invalid_lifetime_is_reported_with_its_flag() {
        for (invalid, flag, expected) in [
            (with_seconds(40, 9, 1), LEAF_LIFETIME_FLAG, "must be at least 10s"),
            (
                with_seconds(40, 11, 2),
                LEAF_LIFETIME_FLAG,
                "must be at most a quarter of --webhook-ca-lifetime 40s",
            ),
            (with_seconds(400_000_000, 10, 1), CA_LIFETIME_FLAG, "must be at most 316224000s"),
            (with_seconds(40, 10, 0), PROPAGATION_DELAY_FLAG, "must be at least 1s"),
            (
                with_seconds(40, 10, 3),
                PROPAGATION_DELAY_FLAG,
                "must be at most a quarter of --webhook-leaf-lifetime 10s",
            ),
        ] {
            let found = invalid.problems();
            assert!(found.contains(&(flag, expected.to_owned())), "{flag} {expected}: {found:?}");
        }
    }

    #[test]
    fn previous_ca_is_removed_before_its_successor_is_due_for_renewal() {
        for lifetimes in [Lifetimes::default(), with_seconds(40, 10, 2), with_seconds(400, 100, 25)]
        {
            let spent = lifetimes.max_leaf_lifetime().saturating_add(lifetimes.propagation_delay);
            assert!(spent < two_thirds(lifetimes.ca), "{lifetimes:?}");
            assert!(lifetimes.call_timeout() < lifetimes.skew(), "{lifetimes:?}");
        }
    }

    #[test]
    fn requeue_delay_is_at_most_a_minute_and_never_zero() {
        let lifetimes = Lifetimes::default();
        assert_eq!(lifetimes.requeue_delay(None), MAX_RESYNC_INTERVAL);
        assert_eq!(lifetimes.requeue_delay(Some(DAY)), MAX_RESYNC_INTERVAL);
        assert_eq!(lifetimes.requeue_delay(Some(Duration::ZERO)), MIN_RESYNC_INTERVAL);
        assert!(with_seconds(40, 10, 1).requeue_delay(None) < Duration::from_secs(2));
    }

    #[test]
    fn timestamps_saturate_and_do_not_wrap() {
        assert_eq!(later(Timestamp::MAX, Duration::MAX), Timestamp::MAX);
        assert_eq!(earlier(Timestamp::MIN, Duration::MAX), Timestamp::MIN);
        assert_eq!(since(Timestamp::MAX, Timestamp::MIN), Duration::ZERO);
    }
}
