//! Logs, metrics and probes of the process.

mod logs;
mod metrics;
mod readiness;
mod serve;

pub(crate) use logs::{LogFilter, LogFormat, error_chain, start_logs};
pub(crate) use metrics::{
    ClusterSample, Metrics, MigrationCounts, RejectReason, RequestOutcome, RequestType,
    WebhookMetrics,
};
pub(crate) use readiness::{Gate, Gates};
pub(crate) use serve::{Probes, SHUTDOWN_GRACE, serve};
