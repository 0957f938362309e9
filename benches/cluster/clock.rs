//! Measured times: their start, their end, and their rows of the table.
//!
//! A cluster is healthy when it has three started voters and a linearizable read succeeds on each,
//! checked every 150 ms.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use quorate_cluster::wait;
use quorate_harness::etcd::EtcdClient;

pub(super) const STEP_TIMEOUT: Duration = Duration::from_mins(5);

/// The start of a measurement.
#[derive(Clone, Copy)]
pub(super) struct Clock(Instant);

pub(super) fn start() -> Clock {
    Clock(Instant::now())
}

/// The times of the same measurement in several runs.
#[derive(Default)]
pub(super) struct Times(Vec<Duration>);

impl Times {
    pub(super) fn add(&mut self, clock: Clock, end: Instant) {
        self.0.push(end.saturating_duration_since(clock.0));
    }

    fn median(&self) -> Option<Duration> {
        let mut sorted = self.0.clone();
        sorted.sort();
        sorted.get(sorted.len().checked_div(2)?).copied()
    }

    /// A row of the table: the median beside that of the baseline.
    pub(super) fn row(&self, what: &str, baseline: Option<&Self>) -> String {
        let median = self.median().unwrap_or_default().as_secs_f64();
        match baseline.and_then(Self::median).map(|baseline| baseline.as_secs_f64()) {
            Some(baseline) => {
                format!("| {what} | {median:.1} s | {baseline:.1} s | {:.1} |", median / baseline)
            }
            None => format!("| {what} | {median:.1} s | never | - |"),
        }
    }
}

/// Waits until the cluster is healthy without these members; returns the time.
pub(super) async fn healthy(etcd: &EtcdClient, without: &[u64]) -> Result<Instant> {
    wait::until("three healthy voters", STEP_TIMEOUT, async || {
        let list = etcd.healthy(3).await?;
        let left = list.members.iter().find(|member| without.contains(&member.id));
        ensure!(left.is_none(), "{left:?} is still listed");
        Ok(Instant::now())
    })
    .await
}

/// Waits until a pod does not run any more.
pub(super) async fn stopped(etcd: &EtcdClient, pod: &str) -> Result<()> {
    wait::until("the pod to stop", STEP_TIMEOUT, async || {
        let runs = etcd.endpoints().await?.iter().any(|endpoint| endpoint.is_in(pod));
        ensure!(!runs, "the pod is still running");
        Ok(())
    })
    .await
}

/// Waits until etcd does not list a member any more.
pub(super) async fn removed(etcd: &EtcdClient, lost: u64) -> Result<()> {
    wait::until("the lost member to be removed", STEP_TIMEOUT, async || {
        match etcd.member_list().await?.members.iter().find(|member| member.id == lost) {
            Some(member) => bail!("{member} is still listed"),
            None => Ok(()),
        }
    })
    .await
}
