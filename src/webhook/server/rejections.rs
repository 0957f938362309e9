//! Counts and logs rejected connections and requests.
//!
//! Each rejection is counted and logged at debug level, and each reason is logged as a warning once
//! a minute. A hostile client controls how often it is rejected and must not control the size of
//! the log.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Error;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinError;
use tokio::time::Instant;

use crate::telemetry::{RejectReason, WebhookMetrics, error_chain};

const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// Logs rejections, each reason at most once per interval as a warning.
pub(super) struct RejectionLog {
    /// The metrics of the server.
    pub(super) metrics: WebhookMetrics,
    logged: Mutex<BTreeMap<RejectReason, LastLogged>>,
}

/// When a reason was last logged as a warning.
#[derive(Clone, Copy)]
struct LastLogged {
    at: Instant,
    /// The number of rejections since then.
    suppressed: u64,
}

impl RejectionLog {
    /// Nothing has been logged yet.
    pub(super) fn new(metrics: WebhookMetrics) -> Self {
        Self { metrics, logged: Mutex::default() }
    }

    /// Records a rejection. `detail` must not contain data from the client.
    pub(super) fn record(&self, reason: RejectReason, peer: IpAddr, detail: impl Display) {
        self.metrics.rejected(reason);
        tracing::debug!(reason = reason.as_str(), %peer, %detail, "rejected at the webhook port");
        if let Some(count) = self.should_log(reason) {
            let reason = reason.as_str();
            tracing::warn!(reason, count, %peer, %detail, "rejected at the webhook port");
        }
    }

    /// Accepting a connection failed, most likely because file descriptors are exhausted.
    pub(super) fn accept_failed(&self, error: &Error) {
        self.metrics.rejected(RejectReason::Accept);
        if let Some(count) = self.should_log(RejectReason::Accept) {
            tracing::warn!(%error, count, "failed to accept a webhook connection");
        }
    }

    /// A connection task panicked. The panic message went to stderr; here it is counted.
    pub(super) fn panicked(&self, error: &JoinError) {
        self.metrics.rejected(RejectReason::Panicked);
        if let Some(count) = self.should_log(RejectReason::Panicked) {
            tracing::error!(error = error_chain(error), count, "webhook connection task panicked");
        }
    }

    /// The number of rejections to log now; `None` within the interval.
    fn should_log(&self, reason: RejectReason) -> Option<u64> {
        let now = Instant::now();
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = logged.get_mut(&reason) {
            last.suppressed = last.suppressed.saturating_add(1);
            if now.saturating_duration_since(last.at) < LOG_INTERVAL {
                return None;
            }
        }
        let count = logged
            .insert(reason, LastLogged { at: now, suppressed: 0 })
            .map_or(1, |last| last.suppressed);
        Some(count)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::telemetry::Metrics;

    #[tokio::test(start_paused = true)]
    async fn each_reason_is_logged_once_a_minute_with_its_count() {
        let rejections = RejectionLog::new(Metrics::new(Timestamp::UNIX_EPOCH).webhook());
        assert_eq!(rejections.should_log(RejectReason::Path), Some(1));
        assert_eq!(rejections.should_log(RejectReason::Path), None);
        assert_eq!(rejections.should_log(RejectReason::Busy), Some(1));
        tokio::time::advance(LOG_INTERVAL).await;
        assert_eq!(rejections.should_log(RejectReason::Path), Some(2));
        assert_eq!(rejections.should_log(RejectReason::Path), None);
    }
}
