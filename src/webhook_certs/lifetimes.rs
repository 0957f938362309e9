//! How long authorities and certificates live, and every time that follows from it.
//! Comes in: three durations from the settings. Goes out: derived times, or what is wrong with them.
//! May touch: std durations and timestamps. Pure. The times depend on each other, so that a
//! certificate is never without an authority that everybody trusts; see [`Lifetimes::max_leaf_lifetime`].
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

const DAY: Duration = Duration::from_hours(24);
/// How far back a new certificate is valid, for clocks that are a little late.
const BACKDATED: Duration = Duration::from_mins(5);
/// How far two clocks may be apart, and how long a write may be on its way.
const CLOCK_SKEW: Duration = Duration::from_mins(1);
/// No call to the API server takes longer.
const CALL: Duration = Duration::from_secs(10);
/// Containers are paused and clocks jump, so nobody rests longer than this.
const MAX_RESYNC_INTERVAL: Duration = Duration::from_mins(1);
/// Nobody looks more often than this because of a clock.
const MIN_RESYNC_INTERVAL: Duration = Duration::from_millis(500);
const MIN_LEAF_LIFETIME: Duration = Duration::from_secs(10);
const MIN_PROPAGATION_DELAY: Duration = Duration::from_secs(1);
/// Ten years, about: dates stay within what every reader of certificates takes.
const MAX_CA_LIFETIME: Duration = Duration::from_hours(24 * 3660);

/// The flags that set them.
pub(crate) const CA: &str = "--webhook-ca-lifetime";
pub(crate) const LEAF: &str = "--webhook-leaf-lifetime";
pub(crate) const PROPAGATION_DELAY_FLAG: &str = "--webhook-ca-propagation-delay";

/// The three times that the settings choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lifetimes {
    /// How long an authority lives.
    pub(crate) ca: Duration,
    /// How long a certificate lives that a replica signs for itself.
    pub(crate) leaf: Duration,
    /// How long a new authority must have been in every target before it signs: every API server
    /// has learned of it by then.
    pub(crate) settle: Duration,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self {
            ca: DAY.saturating_mul(90),
            leaf: DAY.saturating_mul(7),
            settle: Duration::from_secs(30),
        }
    }
}

impl Lifetimes {
    /// What is wrong with these times: the flag, and what it must be. Nothing, if they can be used.
    pub(crate) fn problems(&self) -> Vec<(&'static str, String)> {
        let Self { ca, leaf, settle } = *self;
        let mut found = Vec::new();
        if leaf < MIN_LEAF_LIFETIME {
            found.push((LEAF, format!("it must be at least {}", words(MIN_LEAF_LIFETIME))));
        }
        if leaf > quarter(ca) {
            found.push((LEAF, format!("it must be at most a quarter of {CA} {}", words(ca))));
        }
        if ca > MAX_CA_LIFETIME {
            found.push((CA, format!("it must be at most {}", words(MAX_CA_LIFETIME))));
        }
        if settle < MIN_PROPAGATION_DELAY {
            found.push((
                PROPAGATION_DELAY_FLAG,
                format!("it must be at least {}", words(MIN_PROPAGATION_DELAY)),
            ));
        }
        if settle > quarter(leaf) {
            found.push((
                PROPAGATION_DELAY_FLAG,
                format!("it must be at most a quarter of {LEAF} {}", words(leaf)),
            ));
        }
        found
    }

    /// How old the authorities that a replica signs with may be, counted from before they were
    /// asked for. A replica that is cut off keeps the certificate it has, and signs no other.
    pub(crate) fn max_staleness(&self) -> Duration {
        self.leaf.checked_div(3).unwrap_or_default()
    }

    /// How long a certificate may be in use that was signed by an authority which signs no more:
    /// the last one was signed with authorities that were just fresh enough, and then lived on.
    pub(crate) fn max_leaf_lifetime(&self) -> Duration {
        self.max_staleness().saturating_add(self.leaf).saturating_add(self.skew())
    }

    /// How long it takes until every replica that can reach the API server has seen a change, even
    /// if no watch tells it.
    pub(crate) fn propagation_bound(&self) -> Duration {
        self.rest(None).saturating_add(self.call())
    }

    /// The limit of one call to the API server. It is a part of the skew, because a change counts
    /// from before it was sent.
    pub(crate) fn call(&self) -> Duration {
        CALL.min(self.skew().checked_div(2).unwrap_or_default())
    }

    fn skew(&self) -> Duration {
        CLOCK_SKEW.min(quarter(self.leaf))
    }

    /// When a certificate is first valid that is made at `now`.
    pub(crate) fn from(&self, now: Timestamp) -> Timestamp {
        // A part of its life, or one that lives shortly would be old when it is made.
        // Not all readers of certificates know of a time before Unix time.
        earlier(now, BACKDATED.min(quarter(self.leaf))).max(Timestamp::UNIX_EPOCH)
    }

    /// How long to rest when something is due after `due`, and when nothing is.
    pub(crate) fn rest(&self, due: Option<Duration>) -> Duration {
        let longest =
            MAX_RESYNC_INTERVAL.min(self.max_staleness().checked_div(2).unwrap_or_default());
        due.unwrap_or(longest).clamp(MIN_RESYNC_INTERVAL, longest.max(MIN_RESYNC_INTERVAL))
    }
}

fn quarter(whole: Duration) -> Duration {
    whole.checked_div(4).unwrap_or_default()
}

/// Whole seconds, in the words of the flags.
fn words(time: Duration) -> String {
    format!("{}s", time.as_secs_f64())
}

/// The time `span` after `time`; the end of time stays the end of time.
pub(crate) fn later(time: Timestamp, span: Duration) -> Timestamp {
    let span = SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX);
    time.saturating_add(span).unwrap_or(Timestamp::MAX)
}

/// The time `span` before `time`.
pub(crate) fn earlier(time: Timestamp, span: Duration) -> Timestamp {
    let span = SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX);
    time.saturating_sub(span).unwrap_or(Timestamp::MIN)
}

/// How long `time` is after `start`; nothing, if it is not after it.
pub(crate) fn since(start: Timestamp, time: Timestamp) -> Duration {
    Duration::try_from(time.duration_since(start)).unwrap_or_default()
}

/// Two thirds of a life: the time to see to what comes after it.
pub(crate) fn two_thirds(life: Duration) -> Duration {
    life.checked_div(3).unwrap_or_default().saturating_mul(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(ca: u64, leaf: u64, settle: u64) -> Lifetimes {
        Lifetimes {
            ca: Duration::from_secs(ca),
            leaf: Duration::from_secs(leaf),
            settle: Duration::from_secs(settle),
        }
    }

    #[test]
    fn the_default_and_the_shortest_times_are_fine() {
        assert_eq!(Lifetimes::default().problems(), []);
        assert_eq!(times(40, 10, 2).problems(), []);
    }

    #[test]
    fn every_time_that_breaks_a_rule_is_named_with_its_flag() {
        for (wrong, flag, words) in [
            (times(40, 9, 1), LEAF, "it must be at least 10s"),
            (times(40, 11, 2), LEAF, "it must be at most a quarter of --webhook-ca-lifetime 40s"),
            (times(400_000_000, 10, 1), CA, "it must be at most 316224000s"),
            (times(40, 10, 0), PROPAGATION_DELAY_FLAG, "it must be at least 1s"),
            (
                times(40, 10, 3),
                PROPAGATION_DELAY_FLAG,
                "it must be at most a quarter of --webhook-leaf-lifetime 10s",
            ),
        ] {
            let found = wrong.problems();
            assert!(found.contains(&(flag, words.to_owned())), "{flag} {words}: {found:?}");
        }
    }

    #[test]
    fn what_has_lost_its_right_to_sign_is_gone_before_its_successor_is_old() {
        for lifetimes in [Lifetimes::default(), times(40, 10, 2), times(400, 100, 25)] {
            let spent = lifetimes.max_leaf_lifetime().saturating_add(lifetimes.settle);
            assert!(spent < two_thirds(lifetimes.ca), "{lifetimes:?}");
            assert!(lifetimes.call() < lifetimes.skew(), "{lifetimes:?}");
        }
    }

    #[test]
    fn nobody_rests_longer_than_a_minute_nor_looks_without_a_pause() {
        let lifetimes = Lifetimes::default();
        assert_eq!(lifetimes.rest(None), MAX_RESYNC_INTERVAL);
        assert_eq!(lifetimes.rest(Some(DAY)), MAX_RESYNC_INTERVAL);
        assert_eq!(lifetimes.rest(Some(Duration::ZERO)), MIN_RESYNC_INTERVAL);
        assert!(times(40, 10, 1).rest(None) < Duration::from_secs(2));
    }

    #[test]
    fn time_ends_and_does_not_wrap() {
        assert_eq!(later(Timestamp::MAX, Duration::MAX), Timestamp::MAX);
        assert_eq!(earlier(Timestamp::MIN, Duration::MAX), Timestamp::MIN);
        assert_eq!(since(Timestamp::MAX, Timestamp::MIN), Duration::ZERO);
    }
}
