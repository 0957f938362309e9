//! Runs a call only while this replica leads.
//!
//! No call outlives the term it started in: its timeout ends before the term does.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time;

use crate::api::leadership::Leadership;
use crate::api::monotonic::MonotonicTime;
use crate::clients::clock::Clock;

/// The guard of this process. Copies ask the same election.
#[derive(Clone, Debug)]
pub(crate) struct LeaderGuard {
    leadership: watch::Receiver<Leadership>,
    clock: Clock,
}

/// Why a call has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotLeading {
    /// Another replica leads, or none does. The call was not made.
    #[error("this replica does not lead")]
    Follower,
    /// The term or the call's own timeout ended first. Nobody knows whether it was done.
    #[error("no answer within {}ms", .0.as_millis())]
    TimedOut(Duration),
}

impl LeaderGuard {
    /// What `leadership` says, on the clock by which it counts.
    pub(crate) const fn new(leadership: watch::Receiver<Leadership>, clock: Clock) -> Self {
        Self { leadership, clock }
    }

    /// The guard of whoever sits at a terminal: no election is asked.
    pub(crate) fn always() -> Self {
        let until = MonotonicTime::new(Duration::MAX);
        let (_, leadership) = watch::channel(Leadership::Leading { until });
        Self { leadership, clock: Clock::start() }
    }

    /// Makes one call that only a leader may make. It gets `timeout`, and no more than is left of the
    /// term.
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
    async fn a_follower_calls_nobody() {
        let (leadership, asked) = watch::channel(Leadership::Following);
        let guard = LeaderGuard::new(asked, Clock::start());
        let timeout = Duration::from_secs(5);
        assert_eq!(guard.run(timeout, ready(1)).await, Err(NotLeading::Follower));
        leadership.send_replace(until(Duration::from_hours(1)));
        assert_eq!(guard.run(timeout, ready(1)).await, Ok(1));
        leadership.send_replace(until(Duration::ZERO));
        assert_eq!(guard.run(timeout, ready(1)).await, Err(NotLeading::Follower));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_ends_before_the_term_that_it_began_under() {
        let (_told, asked) = watch::channel(until(Duration::from_hours(1)));
        let guard = LeaderGuard::new(asked, Clock::start());
        let ended = guard.run(Duration::from_hours(2), pending::<()>()).await;
        let Err(NotLeading::TimedOut(waited)) = ended else { panic!("{ended:?}") };
        assert!(waited <= Duration::from_hours(1), "{waited:?}");
        let ended = guard.run(Duration::from_secs(2), pending::<()>()).await;
        assert_eq!(ended, Err(NotLeading::TimedOut(Duration::from_secs(2))));
    }
}
