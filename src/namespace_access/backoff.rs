//! State between reconciliations: backoff per namespace and object, and the conditions applied
//! last. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::conditions::AccessCondition;
use crate::api::monotonic::MonotonicTime;

/// The first delay; each further one doubles.
const MIN_RETRY_DELAY: Duration = Duration::from_secs(1);
/// A namespace can be terminating for hours, and a permission that an administrator adds takes
/// effect after this delay at the latest.
const MAX_RETRY_DELAY: Duration = Duration::from_mins(1);
/// Two to this power exceeds the longest delay.
const MAX_DOUBLINGS: u32 = 6;

/// What backs off.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BackoffKey {
    /// Everything: the API server fails, or this replica does not lead.
    All,
    /// A namespace, by name.
    Namespace(String),
    /// An object, by UID.
    Object(String),
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The step is done.
    Done,
    /// The step is not done, and nothing is wrong: the namespace is terminating, something has
    /// changed since, or the namespace has an object after all. A watch event or a retry follows.
    NotNow,
    /// The API server rejected the request.
    Rejected,
    /// The result is unknown, or the request was not sent. This concerns the API server or this
    /// replica rather than the namespace.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
struct Delay {
    until: MonotonicTime,
    failures: u32,
}

/// The condition applied last to an object, and the object's versions before and after that write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AppliedCondition {
    pub(crate) condition: AccessCondition,
    pub(crate) before: String,
    pub(crate) after: String,
}

/// Delays by key, and applied conditions by UID.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backoff {
    delays: BTreeMap<BackoffKey, Delay>,
    applied: BTreeMap<String, AppliedCondition>,
}

impl Backoff {
    /// Whether the key backs off at `now`.
    pub(crate) fn is_backing_off(&self, key: &BackoffKey, now: MonotonicTime) -> bool {
        self.delays.get(key).is_some_and(|delay| now < delay.until)
    }

    /// Records the result of a step.
    pub(crate) fn record(&mut self, key: BackoffKey, outcome: Outcome, now: MonotonicTime) {
        match outcome {
            Outcome::Done => {
                self.delays.remove(&key);
                self.delays.remove(&BackoffKey::All);
            }
            Outcome::NotNow | Outcome::Rejected => {
                self.delays.remove(&BackoffKey::All);
                self.back_off(key, now);
            }
            // A single namespace may be the cause, for example a webhook that hangs there. Its own
            // delay is longer than the delay of everything, so the other namespaces come first.
            Outcome::Unknown => {
                self.back_off(key, now);
                self.back_off(BackoffKey::All, now);
            }
        }
    }

    fn back_off(&mut self, key: BackoffKey, now: MonotonicTime) {
        let failures = self.delays.get(&key).map_or(0, |delay| delay.failures);
        let delay =
            MIN_RETRY_DELAY.saturating_mul(2_u32.saturating_pow(failures)).min(MAX_RETRY_DELAY);
        let delay = match key {
            BackoffKey::All => delay.checked_div(2).unwrap_or_default(),
            BackoffKey::Namespace(_) | BackoffKey::Object(_) => delay,
        };
        let failures = failures.saturating_add(1).min(MAX_DOUBLINGS);
        self.delays.insert(key, Delay { until: now.plus(delay), failures });
    }

    /// When the next delay ends.
    pub(crate) fn next_retry(&self, now: MonotonicTime) -> Option<MonotonicTime> {
        self.delays.values().map(|delay| delay.until).filter(|until| now < *until).min()
    }

    /// The condition applied last to the object with this UID.
    pub(crate) fn last_applied(&self, uid: &str) -> Option<&AppliedCondition> {
        self.applied.get(uid)
    }

    /// Records an applied condition.
    pub(crate) fn record_applied(&mut self, uid: &str, applied: AppliedCondition) {
        self.applied.insert(uid.to_owned(), applied);
    }

    /// Drops deleted objects, and delays that ended long ago without a retry.
    pub(crate) fn prune(&mut self, uids: &BTreeSet<&str>, now: MonotonicTime) {
        self.applied.retain(|uid, _| uids.contains(uid.as_str()));
        self.delays.retain(|_, delay| now < delay.until.plus(MAX_RETRY_DELAY));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> MonotonicTime {
        MonotonicTime::new(Duration::from_secs(seconds))
    }

    fn here() -> BackoffKey {
        BackoffKey::Namespace("here".to_owned())
    }

    #[test]
    fn each_failure_doubles_the_delay_up_to_a_minute() {
        let mut backoff = Backoff::default();
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            backoff.record(here(), Outcome::NotNow, at(100));
            assert_eq!(backoff.next_retry(at(100)), Some(at(100 + seconds)));
            assert!(backoff.is_backing_off(&here(), at(99 + seconds)));
            assert!(!backoff.is_backing_off(&here(), at(100 + seconds)));
        }
        backoff.record(here(), Outcome::Done, at(100));
        assert_eq!(backoff.next_retry(at(100)), None);
    }

    #[test]
    fn unknown_outcome_backs_off_everything_until_the_next_response() {
        let mut backoff = Backoff::default();
        backoff.record(here(), Outcome::Unknown, at(0));
        assert!(backoff.is_backing_off(&BackoffKey::All, at(0)));
        let there = BackoffKey::Namespace("there".to_owned());
        assert!(!backoff.is_backing_off(&there, at(0)));
        backoff.record(there, Outcome::Rejected, at(0));
        assert!(!backoff.is_backing_off(&BackoffKey::All, at(0)));
    }

    #[test]
    fn one_failing_namespace_does_not_starve_the_others() {
        let mut backoff = Backoff::default();
        let mut now = at(0);
        for _ in 0..20 {
            backoff.record(here(), Outcome::Unknown, now);
            now = backoff.next_retry(now).unwrap();
            assert!(!backoff.is_backing_off(&BackoffKey::All, now));
            assert!(backoff.is_backing_off(&here(), now));
            now = backoff.next_retry(now).unwrap();
        }
    }

    #[test]
    fn deleted_objects_and_old_delays_are_pruned() {
        let mut backoff = Backoff::default();
        let applied = AppliedCondition {
            condition: AccessCondition::Absent,
            before: "1".to_owned(),
            after: "2".to_owned(),
        };
        backoff.record_applied("u1", applied.clone());
        backoff.record_applied("u2", applied);
        backoff.record(here(), Outcome::NotNow, at(0));
        backoff.prune(&BTreeSet::from(["u2"]), at(60));
        assert!(backoff.last_applied("u1").is_none() && backoff.last_applied("u2").is_some());
        assert_eq!(backoff.delays.len(), 1);
        backoff.prune(&BTreeSet::new(), at(61));
        assert!(backoff.delays.is_empty() && backoff.applied.is_empty());
    }
}
