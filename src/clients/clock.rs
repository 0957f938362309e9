//! The two clocks: a monotonic one for every decision, the wall clock for timestamps that users
//! read.
//!
//! The monotonic clock of Linux stops while the machine is suspended. A leader on a node that
//! resumes believes in its old term until its first read is answered, at most for the rest of its
//! renew deadline.

use std::time::Instant;

use jiff::{Timestamp, Unit};

use crate::api::monotonic::MonotonicTime;

/// The monotonic clock of this process. Copies have the same time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that starts now.
    pub(crate) fn start() -> Self {
        Self { start: Instant::now() }
    }

    /// How long the clock has run.
    pub(crate) fn now(self) -> MonotonicTime {
        MonotonicTime::new(self.start.elapsed())
    }
}

/// The wall clock in microseconds: Kubernetes truncates a finer time.
pub(crate) fn wall() -> Timestamp {
    let now = Timestamp::now();
    now.round(Unit::Microsecond).unwrap_or(now)
}
