//! Whether this replica leads, as a value that whoever acts as a leader asks before each act.
//! Comes in: nothing. Goes out: the type. May touch: `moment`. The wing `leadership` finds it out;
//! the type stands here because every other wing needs it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use crate::api::monotonic::MonotonicTime;

/// Whether this replica leads. Given to whoever may act only while it does.
///
/// A watcher learns of a change a little late, and a process can be paused between asking and
/// acting. Ask [`Leadership::holds_at`] with the time of the act, and give no risky call more
/// time than [`Leadership::time_left`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// Another replica leads, or none does.
    Following,
    /// This replica leads, and stops by itself at `until` if it cannot renew before.
    Leading {
        /// The first moment at which this replica must not act any more.
        until: MonotonicTime,
    },
}

impl Leadership {
    /// Whether this replica may act at `now`.
    #[must_use]
    pub fn holds_at(self, now: MonotonicTime) -> bool {
        match self {
            Self::Following => false,
            Self::Leading { until } => now < until,
        }
    }

    /// How long a call that begins at `now` may take at most; nothing, if it may not begin.
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
    fn a_call_may_take_as_long_as_the_term_lasts_and_a_follower_may_not_call() {
        let at = |second| MonotonicTime::new(Duration::from_secs(second));
        let leading = Leadership::Leading { until: at(10) };
        assert_eq!(leading.time_left(at(7)), Duration::from_secs(3));
        assert!(leading.holds_at(at(9)) && !leading.holds_at(at(10)));
        assert_eq!(leading.time_left(at(11)), Duration::ZERO);
        assert_eq!(Leadership::Following.time_left(at(0)), Duration::ZERO);
    }
}
