//! Times: when they begin, what ends them, and how they are told.
//!
//! Healthy is: three started voters, each of which reads with a quorum, looked at each 150 ms.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use quorate_cluster::wait;
use quorate_harness::etcd::EtcdUser;

/// The longest that anything may take.
pub(super) const PATIENCE: Duration = Duration::from_mins(5);

/// When something began.
#[derive(Clone, Copy)]
pub(super) struct Clock(Instant);

pub(super) fn start() -> Clock {
    Clock(Instant::now())
}

/// Times of the same thing.
#[derive(Default)]
pub(super) struct Times(Vec<Duration>);

impl Times {
    pub(super) fn add(&mut self, clock: Clock, ended: Instant) {
        self.0.push(ended.saturating_duration_since(clock.0));
    }

    fn median(&self) -> Option<Duration> {
        let mut sorted = self.0.clone();
        sorted.sort();
        sorted.get(sorted.len().checked_div(2)?).copied()
    }

    /// A row of the table: the times, beside those of the floor.
    pub(super) fn row(&self, what: &str, floor: Option<&Self>) -> String {
        let ours = self.median().unwrap_or_default().as_secs_f64();
        match floor.and_then(Self::median).map(|it| it.as_secs_f64()) {
            Some(floor) => {
                format!("| {what} | {ours:.1} s | {floor:.1} s | {:.1} |", ours / floor)
            }
            None => format!("| {what} | {ours:.1} s | never | - |"),
        }
    }
}

/// Waits until the cluster is healthy and has none of these members; answers with the moment.
pub(super) async fn healthy(user: &EtcdUser, without: &[u64]) -> Result<Instant> {
    wait::until("three healthy voters", PATIENCE, async || {
        let listed = user.well(3).await?;
        let left = listed.members.iter().find(|it| without.contains(&it.id));
        ensure!(left.is_none(), "{left:?} is still there");
        Ok(Instant::now())
    })
    .await
}

/// Waits until a pod does not run any more.
pub(super) async fn gone(user: &EtcdUser, pod: &str) -> Result<()> {
    wait::until("the pod to be gone", PATIENCE, async || {
        let runs = user.endpoints().await?.iter().any(|it| it.is_in(pod));
        ensure!(!runs, "it is still there");
        Ok(())
    })
    .await
}

/// Waits until etcd does not list a member any more.
pub(super) async fn struck(user: &EtcdUser, lost: u64) -> Result<()> {
    wait::until("the lost member to be struck", PATIENCE, async || {
        match user.listed().await?.members.iter().find(|it| it.id == lost) {
            Some(member) => bail!("{member} is still listed"),
            None => Ok(()),
        }
    })
    .await
}
