//! How the process tells of itself: logs, metrics, probes.
//! Comes in: facts from the rooms that know them. Goes out: lines on stderr, and answers on the
//! probe port. May touch: `api` for names; it knows no wing.

mod health;
mod logs;
mod metrics;
mod serve;

pub(crate) use health::{Gate, Gates};
pub(crate) use logs::{LogFilter, LogFormat, chain, start_logs};
pub(crate) use metrics::{
    Census, Dealt, Metrics, Refused, ReviewErrand, ReviewOutcome, WebhookMetrics,
};
pub(crate) use serve::{LAST_ANSWERS, Probes, serve};
