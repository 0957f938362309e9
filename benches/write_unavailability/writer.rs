//! A writer that does not wait for a response before the next write: one write every few
//! milliseconds, to the members in turn. So it measures how long the cluster accepted no writes,
//! and not how long one call was blocked.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use quorate_harness::etcd::{Endpoint, EtcdClient};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time;

const WRITE_INTERVAL: Duration = Duration::from_millis(10);
/// How often the endpoints are refreshed.
const ENDPOINT_INTERVAL: Duration = Duration::from_millis(200);
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_IN_FLIGHT: usize = 200;

/// Writes in the background until [`Writer::finish`].
pub(super) struct Writer {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

struct Shared {
    started: Instant,
    stopped: AtomicBool,
    failed: AtomicU64,
    log: Mutex<WriteLog>,
}

#[derive(Default)]
struct WriteLog {
    acknowledged: u64,
    last: Option<Instant>,
    longest: Duration,
    /// When the longest gap started.
    at: Duration,
    /// What was done to the cluster, and when.
    notes: Vec<(Duration, String)>,
}

/// The longest gap.
pub(super) struct Gap {
    pub(super) longest: Duration,
    description: String,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} ms {}", self.longest.as_secs_f64() * 1000.0, self.description)
    }
}

impl Writer {
    pub(super) async fn start(etcd: &EtcdClient) -> Result<Self> {
        let shared = Arc::new(Shared {
            started: Instant::now(),
            stopped: AtomicBool::new(false),
            failed: AtomicU64::new(0),
            log: Mutex::default(),
        });
        let (known, members) = watch::channel(etcd.endpoints().await?);
        let mut tasks = JoinSet::new();
        let (etcd, refreshing) = (etcd.clone(), Arc::clone(&shared));
        tasks.spawn(async move {
            while !refreshing.stopped.load(Ordering::Relaxed) {
                if let Ok(found) = etcd.endpoints().await {
                    known.send_replace(found);
                }
                time::sleep(ENDPOINT_INTERVAL).await;
            }
        });
        let writing = Arc::clone(&shared);
        tasks.spawn(async move { writing.write(&members).await });
        Ok(Self { shared, tasks })
    }

    /// Notes what is done to the cluster now.
    pub(super) fn note(&self, note: &str) {
        let at = self.shared.started.elapsed();
        self.shared.with_log(|log| log.notes.push((at, note.to_owned())));
    }

    pub(super) async fn finish(mut self) -> Result<Gap> {
        self.shared.stopped.store(true, Ordering::Relaxed);
        while self.tasks.join_next().await.is_some() {}
        let failed = self.shared.failed.load(Ordering::Relaxed);
        let (longest, description, acknowledged) = self.shared.with_log(|log| {
            let before = log.notes.iter().rev().find(|(at, _)| *at <= log.at);
            let note = before.map(|(at, note)| {
                let after = log.at.saturating_sub(*at).as_secs_f32();
                format!(", {after:.1} s after \"{note}\"")
            });
            let description = format!(
                "at second {:.1}{}; {} writes, {failed} failed",
                log.at.as_secs_f32(),
                note.unwrap_or_default(),
                log.acknowledged
            );
            (log.longest, description, log.acknowledged)
        });
        ensure!(acknowledged > 100, "too few writes: {description}");
        Ok(Gap { longest, description })
    }
}

impl Shared {
    async fn write(self: &Arc<Self>, members: &watch::Receiver<Vec<Endpoint>>) {
        let mut in_flight = JoinSet::new();
        let mut interval = time::interval(WRITE_INTERVAL);
        interval.set_missed_tick_behavior(time::MissedTickBehavior::Skip);
        let mut turn = 0_usize;
        while !self.stopped.load(Ordering::Relaxed) {
            interval.tick().await;
            while in_flight.try_join_next().is_some() {}
            let all = members.borrow().clone();
            turn = turn.wrapping_add(1);
            let next = turn.checked_rem(all.len()).and_then(|index| all.get(index).cloned());
            let Some(member) = next.filter(|_| in_flight.len() < MAX_IN_FLIGHT) else { continue };
            let shared = Arc::clone(self);
            in_flight.spawn(async move {
                let key = format!("gap/{}", turn.wrapping_rem(64));
                match time::timeout(WRITE_TIMEOUT, member.put(&key, &turn.to_string())).await {
                    Ok(Ok(_)) => shared.acknowledge(),
                    Ok(Err(_)) | Err(_) => {
                        shared.failed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        while in_flight.join_next().await.is_some() {}
    }

    fn acknowledge(&self) {
        let now = Instant::now();
        self.with_log(|log| {
            log.acknowledged = log.acknowledged.saturating_add(1);
            let gap = log.last.map_or(Duration::ZERO, |last| now.saturating_duration_since(last));
            if gap > log.longest {
                log.longest = gap;
                log.at = now.saturating_duration_since(self.started).saturating_sub(gap);
            }
            log.last = Some(now);
        });
    }

    fn with_log<T>(&self, with: impl FnOnce(&mut WriteLog) -> T) -> T {
        with(&mut self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
