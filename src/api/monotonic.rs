//! Time on the monotonic clock of the process, as plain data. Wall clocks jump, so leader election
//! must not depend on them.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

/// Time since the clock of the process started. Values of two processes are not comparable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MonotonicTime(Duration);

impl MonotonicTime {
    /// The time `since_start` after the start of the clock.
    #[must_use]
    pub const fn new(since_start: Duration) -> Self {
        Self(since_start)
    }

    /// The time `duration` later, saturating.
    #[must_use]
    pub const fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }

    /// The duration since `earlier`; zero if that is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}
