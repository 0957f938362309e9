//! What is told about those who get no review.
//! Comes in: why, and where they came from. Goes out: a count for each, a line at debug for each,
//! and a line at warn once a minute for each reason. May touch: log, metrics, the monotonic clock.
//! A stranger decides how often it is refused, and must not decide how much is logged.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Error;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinError;
use tokio::time::Instant;

use crate::telemetry::{Refused, WebhookMetrics, chain};

const SILENCE: Duration = Duration::from_mins(1);

/// Tells, and remembers what was said lately.
pub(super) struct Tell {
    /// What is counted.
    pub(super) metrics: WebhookMetrics,
    said: Mutex<BTreeMap<Refused, Said>>,
}

/// What was said last about one reason.
#[derive(Clone, Copy)]
struct Said {
    at: Instant,
    /// How many came since.
    unsaid: u64,
}

impl Tell {
    /// Nothing was said yet.
    pub(super) fn new(metrics: WebhookMetrics) -> Self {
        Self { metrics, said: Mutex::default() }
    }

    /// Somebody was refused. `detail` must not be what they sent.
    pub(super) fn refused(&self, why: Refused, peer: IpAddr, detail: impl Display) {
        self.metrics.refused(why);
        tracing::debug!(why = why.word(), %peer, %detail, "refused at the webhook port");
        if let Some(count) = self.due(why) {
            tracing::warn!(why = why.word(), count, %peer, %detail, "refused at the webhook port");
        }
    }

    /// The system would not hand over a connection; out of file descriptors, most likely.
    pub(super) fn failed_to_accept(&self, error: &Error) {
        self.metrics.refused(Refused::Accept);
        if let Some(count) = self.due(Refused::Accept) {
            tracing::warn!(%error, count, "failed to accept a connection on the webhook port");
        }
    }

    /// A connection ended by a bug. Its message went to stderr; here it is counted.
    pub(super) fn panicked(&self, error: &JoinError) {
        self.metrics.refused(Refused::Panicked);
        if let Some(count) = self.due(Refused::Panicked) {
            tracing::error!(
                error = chain(error),
                count,
                "a connection to the webhook port ended by a bug"
            );
        }
    }

    /// How many have to be told of now, if any.
    fn due(&self, why: Refused) -> Option<u64> {
        let now = Instant::now();
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = said.get_mut(&why) {
            last.unsaid = last.unsaid.saturating_add(1);
            if now.saturating_duration_since(last.at) < SILENCE {
                return None;
            }
        }
        let count = said.insert(why, Said { at: now, unsaid: 0 }).map_or(1, |last| last.unsaid);
        Some(count)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::telemetry::Metrics;

    #[tokio::test(start_paused = true)]
    async fn a_reason_is_told_once_a_minute_with_how_often_it_came() {
        let tell = Tell::new(Metrics::new(Timestamp::UNIX_EPOCH).webhook());
        assert_eq!(tell.due(Refused::Path), Some(1));
        assert_eq!(tell.due(Refused::Path), None);
        assert_eq!(tell.due(Refused::Busy), Some(1));
        tokio::time::advance(SILENCE).await;
        assert_eq!(tell.due(Refused::Path), Some(2));
        assert_eq!(tell.due(Refused::Path), None);
    }
}
