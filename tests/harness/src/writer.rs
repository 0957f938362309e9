//! A writer that puts unique values through all members while a test runs, and verifies at the end
//! that every acknowledged write is still readable.

mod write_log;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use quorate_cluster::wait;
use tokio::task::JoinSet;

use crate::etcd::{EtcdClient, KeyValue};
use write_log::WriteLog;

/// Each has keys of its own and one write in flight, so that one blocked write does not block the
/// others.
const WORKERS: u64 = 3;
const KEYS: u64 = 8;
const PREFIX: &str = "e2e/";
/// Several tests share the machine and its disk.
const WRITE_INTERVAL: Duration = Duration::from_millis(100);
/// After this the outcome of a write is unknown.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);
const READ_TIMEOUT: Duration = Duration::from_mins(1);

/// Writes in the background until [`Writer::verify`].
#[must_use = "lost writes are only reported by `verify`"]
pub struct Writer {
    shared: Arc<Shared>,
    workers: JoinSet<()>,
}

struct Shared {
    etcd: EtcdClient,
    started: Instant,
    stopped: AtomicBool,
    next: AtomicU64,
    log: Mutex<WriteLog>,
}

/// The outcome of all writes.
#[derive(Clone, Copy, Debug)]
pub struct WriteSummary {
    /// Acknowledged writes; each of them is still readable, or was overwritten.
    pub acknowledged: u64,
    /// Writes with an unknown outcome.
    pub unknown: u64,
    /// The longest time without an acknowledged write.
    pub longest_gap: Duration,
    /// When the longest gap started, after the start of the writer.
    pub gap_start: Duration,
}

impl Writer {
    /// Starts to write.
    pub fn start(etcd: &EtcdClient) -> Self {
        let shared = Arc::new(Shared {
            etcd: etcd.clone(),
            started: Instant::now(),
            stopped: AtomicBool::new(false),
            next: AtomicU64::new(0),
            log: Mutex::default(),
        });
        let mut workers = JoinSet::new();
        for worker in 0..WORKERS {
            let shared = Arc::clone(&shared);
            workers.spawn(async move { shared.write_loop(worker).await });
        }
        Self { shared, workers }
    }

    /// The number of writes acknowledged so far.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.shared.with_log(|log| log.acknowledged)
    }

    /// Stops, and verifies that every acknowledged write is readable.
    ///
    /// # Errors
    /// With a message for each lost write; or if no member is reachable.
    pub async fn verify(mut self) -> Result<WriteSummary> {
        self.shared.stopped.store(true, Ordering::Relaxed);
        while self.workers.join_next().await.is_some() {}
        let etcd = &self.shared.etcd;
        let now = self.shared.started.elapsed();
        let read = async || etcd.get_prefix(PREFIX).await;
        let found = wait::until("the writer's keys to be readable", READ_TIMEOUT, read).await?;
        self.shared.with_log(|log| {
            log.advance(now);
            summarize(log, &found)
        })
    }
}

fn summarize(log: &WriteLog, found: &[KeyValue]) -> Result<WriteSummary> {
    let lost = log.lost_writes(found);
    if !lost.is_empty() {
        bail!("acknowledged writes are lost:\n  {}", lost.join("\n  "));
    }
    let newest = found.iter().map(|entry| entry.revision).max().unwrap_or_default();
    ensure!(
        newest >= log.highest(),
        "revision {newest} is the newest, and {} was acknowledged",
        log.highest()
    );
    let (longest_gap, gap_start) = log.gap;
    let (acknowledged, unknown) = (log.acknowledged, log.unknown);
    Ok(WriteSummary { acknowledged, unknown, longest_gap, gap_start })
}

impl Shared {
    async fn write_loop(&self, worker: u64) {
        let mut turn = worker;
        while !self.stopped.load(Ordering::Relaxed) {
            turn = turn.wrapping_add(1);
            self.write(worker, turn).await;
            tokio::time::sleep(WRITE_INTERVAL).await;
        }
    }

    /// One write, to the members in turn.
    async fn write(&self, worker: u64, turn: u64) {
        let endpoints = self.etcd.endpoints().await.unwrap_or_default();
        let index = turn.checked_rem(u64::try_from(endpoints.len()).unwrap_or(1));
        let index = index.and_then(|index| usize::try_from(index).ok());
        let Some(endpoint) = index.and_then(|index| endpoints.get(index)) else {
            return;
        };
        let key = format!("{PREFIX}{worker}-{}", turn.wrapping_rem(KEYS));
        let value = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        let put = tokio::time::timeout(WRITE_TIMEOUT, endpoint.put(&key, &value)).await;
        let at = self.started.elapsed();
        self.with_log(|log| match put {
            Ok(Ok(revision)) => log.acknowledge(&key, value, revision, at),
            Ok(Err(_rejected)) => log.unknown(&key, value),
            Err(_elapsed) => log.unknown(&key, value),
        });
    }

    fn with_log<T>(&self, with: impl FnOnce(&mut WriteLog) -> T) -> T {
        with(&mut self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
