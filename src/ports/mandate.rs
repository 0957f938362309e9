//! The right to act as a leader, asked for before each call that only a leader may make.
//! Comes in: what the election says, and a call. Goes out: the call's answer, or that it was not
//! made or not waited for. May touch: the monotonic clock. No call outlives the term that it began
//! under: its time ends before the term does.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time;

use crate::api::leadership::Leadership;
use crate::api::moment::Moment;
use crate::ports::clock::Clock;

/// The mandate of this process. Copies ask the same election.
#[derive(Clone, Debug)]
pub(crate) struct Mandate {
    told: watch::Receiver<Leadership>,
    clock: Clock,
}

/// Why a call has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unled {
    /// Another replica leads, or none does. The call was not made.
    #[error("this replica does not lead")]
    NotLeading,
    /// The term or the call's own limit ended first. Nobody knows whether it was done.
    #[error("no answer within {}ms", .0.as_millis())]
    OutOfTime(Duration),
}

impl Mandate {
    /// What `told` says, on the clock by which it counts.
    pub(crate) const fn new(told: watch::Receiver<Leadership>, clock: Clock) -> Self {
        Self { told, clock }
    }

    /// The mandate of whoever sits at a terminal: no election is asked.
    pub(crate) fn of_a_person() -> Self {
        let until = Moment::new(Duration::MAX);
        let (_, told) = watch::channel(Leadership::Leading { until });
        Self { told, clock: Clock::start() }
    }

    /// Makes one call that only a leader may make. It gets `limit`, and no more than is left of the
    /// term.
    pub(crate) async fn during<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = T>,
    ) -> Result<T, Unled> {
        let left = self.told.borrow().time_left(self.clock.now());
        if left.is_zero() {
            return Err(Unled::NotLeading);
        }
        let limit = limit.min(left);
        time::timeout(limit, call)
            .await
            .map_err(|time::error::Elapsed { .. }| Unled::OutOfTime(limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};

    fn until(time: Duration) -> Leadership {
        Leadership::Leading { until: Moment::new(time) }
    }

    #[tokio::test]
    async fn a_follower_calls_nobody() {
        let (told, asked) = watch::channel(Leadership::Following);
        let mandate = Mandate::new(asked, Clock::start());
        let limit = Duration::from_secs(5);
        assert_eq!(mandate.during(limit, ready(1)).await, Err(Unled::NotLeading));
        told.send_replace(until(Duration::from_hours(1)));
        assert_eq!(mandate.during(limit, ready(1)).await, Ok(1));
        told.send_replace(until(Duration::ZERO));
        assert_eq!(mandate.during(limit, ready(1)).await, Err(Unled::NotLeading));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_ends_before_the_term_that_it_began_under() {
        let (_told, asked) = watch::channel(until(Duration::from_hours(1)));
        let mandate = Mandate::new(asked, Clock::start());
        let ended = mandate.during(Duration::from_hours(2), pending::<()>()).await;
        let Err(Unled::OutOfTime(waited)) = ended else { panic!("{ended:?}") };
        assert!(waited <= Duration::from_hours(1), "{waited:?}");
        let ended = mandate.during(Duration::from_secs(2), pending::<()>()).await;
        assert_eq!(ended, Err(Unled::OutOfTime(Duration::from_secs(2))));
    }
}
