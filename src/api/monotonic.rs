//! A point on the process's own monotonic clock, as plain data.
//! Comes in: the time since the clock was started. Goes out: comparisons and sums.
//! May touch: std durations only. Wall clocks jump; nothing about leadership may depend on one.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

/// How long the process's clock has run. Moments of two processes cannot be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MonotonicTime(Duration);

impl MonotonicTime {
    /// The moment at which the clock shows `since_start`.
    #[must_use]
    pub const fn new(since_start: Duration) -> Self {
        Self(since_start)
    }

    /// The moment `span` later. The end of time stays the end of time.
    #[must_use]
    pub const fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }

    /// How long after `earlier` this moment is; nothing, if it is not after it.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}
