//! Runs a call only while this replica leads.
//!
//! No call outlives the term it started in: its timeout ends before the term does.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time;

use crate::api::leadership::Leadership;
use crate::api::monotonic::MonotonicTime;
use crate::clients::clock::Clock;

/// The leader guard of this process. Copies follow the same election.
#[derive(Clone, Debug)]
pub(crate) struct LeaderGuard {
    leadership: watch::Receiver<Leadership>,
    clock: Clock,
}

/// Why a call has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotLeading {
    /// This replica does not lead. The call was not made.
    #[error("this replica does not lead")]
    Follower,
    /// The term or the call's own timeout ended first. It is unknown whether the call was
    /// processed.
    #[error("no response within {}ms", .0.as_millis())]
    TimedOut(Duration),
}

impl LeaderGuard {
    /// Follows `leadership`, whose times are of `clock`.
    pub(crate) const fn new(leadership: watch::Receiver<Leadership>, clock: Clock) -> Self {
        Self { leadership, clock }
    }

    /// Always allows calls, for commands that a user runs.
    pub(crate) fn always() -> Self {
        let until = MonotonicTime::new(Duration::MAX);
        let (_, leadership) = watch::channel(Leadership::Leading { until });
        Self { leadership, clock: Clock::start() }
    }

    /// Makes a call if this replica leads. Its timeout is at most what is left of the term.
    pub(crate) async fn run<T>(
        &self,
        timeout: Duration,
        call: impl Future<Output = T>,
    ) -> Result<T, NotLeading> {
        let left = self.leadership.borrow().time_left(self.clock.now());
        if left.is_zero() {
            return Err(NotLeading::Follower);
        }
        let timeout = timeout.min(left);
        time::timeout(timeout, call)
            .await
            .map_err(|time::error::Elapsed { .. }| NotLeading::TimedOut(timeout))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};

    fn until(time: Duration) -> Leadership {
        Leadership::Leading { until: MonotonicTime::new(time) }
    }

    #[tokio::test]
    async fn follower_makes_no_call() {
        let (leadership, receiver) = watch::channel(Leadership::Following);
        let guard = LeaderGuard::new(receiver, Clock::start());
        let timeout = Duration::from_secs(5);
        assert_eq!(guard.run(timeout, ready(1)).await, Err(NotLeading::Follower));
        leadership.send_replace(until(Duration::from_hours(1)));
        assert_eq!(guard.run(timeout, ready(1)).await, Ok(1));
        leadership.send_replace(until(Duration::ZERO));
        assert_eq!(guard.run(timeout, ready(1)).await, Err(NotLeading::Follower));
    }

    #[tokio::test(start_paused = true)]
    async fn call_is_cut_off_when_the_term_ends() {
        let (_leadership, receiver) = watch::channel(until(Duration::from_hours(1)));
        let guard = LeaderGuard::new(receiver, Clock::start());
        let result = guard.run(Duration::from_hours(2), pending::<()>()).await;
        let Err(NotLeading::TimedOut(waited)) = result else { panic!("{result:?}") };
        assert!(waited <= Duration::from_hours(1), "{waited:?}");
        let result = guard.run(Duration::from_secs(2), pending::<()>()).await;
        assert_eq!(result, Err(NotLeading::TimedOut(Duration::from_secs(2))));
    }
}
