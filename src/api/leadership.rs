//! Whether this replica is the leader. `leader_election` determines it; the type is here because
//! every controller needs it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use crate::api::monotonic::MonotonicTime;

/// Whether this replica is the leader.
///
/// A change is observed with a delay, and a process can be paused between a check and a write. Call
/// [`Leadership::holds_at`] with the time of the write, and bound every request by
/// [`Leadership::time_left`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// Another replica is the leader, or none is.
    Following,
    /// This replica is the leader until `until`, unless the lease is renewed before.
    Leading {
        /// From this time on the replica must not act as the leader.
        until: MonotonicTime,
    },
}

impl Leadership {
    /// Whether this replica may act as the leader at `now`.
    #[must_use]
    pub fn holds_at(self, now: MonotonicTime) -> bool {
        match self {
            Self::Following => false,
            Self::Leading { until } => now < until,
        }
    }

    /// Maximum duration of a request that starts at `now`; zero if it must not start.
    #[must_use]
    pub fn time_left(self, now: MonotonicTime) -> Duration {
        match self {
            Self::Following => Duration::ZERO,
            Self::Leading { until } => until.since(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_bounded_by_the_lease_and_a_follower_has_no_time() {
        let at = |second| MonotonicTime::new(Duration::from_secs(second));
        let leading = Leadership::Leading { until: at(10) };
        assert_eq!(leading.time_left(at(7)), Duration::from_secs(3));
        assert!(leading.holds_at(at(9)) && !leading.holds_at(at(10)));
        assert_eq!(leading.time_left(at(11)), Duration::ZERO);
        assert_eq!(Leadership::Following.time_left(at(0)), Duration::ZERO);
    }
}
