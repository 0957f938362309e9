//! A writer that keeps books: it puts unique values through all members while a story goes on, and says at the end
//! whether every write that was acknowledged is still there.

mod ledger;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use quorate_cluster::wait;
use tokio::task::JoinSet;

use crate::etcd::{EtcdUser, Value};
use ledger::Ledger;

/// Each has keys of its own and one write under way, so that one that hangs does not hold up the others.
const WORKERS: u64 = 3;
const KEYS: u64 = 8;
const PREFIX: &str = "story/";
/// Several stories share the machine and its disk.
const PAUSE: Duration = Duration::from_millis(100);
/// After this a write is one that may have happened.
const PATIENCE: Duration = Duration::from_secs(1);
const READ: Duration = Duration::from_mins(1);

/// It writes until it is asked to account.
#[must_use = "what it wrote is not looked for until it is asked to account"]
pub struct Writer {
    desk: Arc<Desk>,
    workers: JoinSet<()>,
}

struct Desk {
    user: EtcdUser,
    begun: Instant,
    ended: AtomicBool,
    next: AtomicU64,
    ledger: Mutex<Ledger>,
}

/// What it did.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    /// Writes that were acknowledged; all of them are still there, or were overwritten.
    pub acknowledged: u64,
    /// Writes that may have happened.
    pub unknown: u64,
    /// The longest time without an acknowledged write.
    pub longest_gap: Duration,
    /// When it began, after the writer did.
    pub gap_began: Duration,
}

impl Writer {
    /// Begins to write.
    pub fn begin(user: &EtcdUser) -> Self {
        let desk = Arc::new(Desk {
            user: user.clone(),
            begun: Instant::now(),
            ended: AtomicBool::new(false),
            next: AtomicU64::new(0),
            ledger: Mutex::default(),
        });
        let mut workers = JoinSet::new();
        for worker in 0..WORKERS {
            let desk = Arc::clone(&desk);
            workers.spawn(async move { desk.write(worker).await });
        }
        Self { desk, workers }
    }

    /// How many writes were acknowledged so far.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.desk.books(|ledger| ledger.acknowledged)
    }

    /// Stops, and looks for everything that was acknowledged.
    ///
    /// # Errors
    /// With words for each write that is lost; or if nobody can be asked.
    pub async fn account(mut self) -> Result<Account> {
        self.desk.ended.store(true, Ordering::Relaxed);
        while self.workers.join_next().await.is_some() {}
        let user = &self.desk.user;
        let now = self.desk.begun.elapsed();
        let there = wait::until("what the writer wrote", READ, async || user.below(PREFIX).await);
        let there = there.await?;
        self.desk.books(|ledger| {
            ledger.pass(now);
            judged(ledger, &there)
        })
    }
}

fn judged(ledger: &Ledger, there: &[Value]) -> Result<Account> {
    let lost = ledger.judge(there);
    if !lost.is_empty() {
        bail!("acknowledged writes are lost:\n  {}", lost.join("\n  "));
    }
    let newest = there.iter().map(|it| it.revision).max().unwrap_or_default();
    ensure!(
        newest >= ledger.highest(),
        "revision {newest} is the newest, and {} was acknowledged",
        ledger.highest()
    );
    let (longest_gap, gap_began) = ledger.gap;
    let (acknowledged, unknown) = (ledger.acknowledged, ledger.unknown);
    Ok(Account { acknowledged, unknown, longest_gap, gap_began })
}

impl Desk {
    async fn write(&self, worker: u64) {
        let mut turn = worker;
        while !self.ended.load(Ordering::Relaxed) {
            turn = turn.wrapping_add(1);
            self.write_one(worker, turn).await;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// One write, to whoever's turn it is.
    async fn write_one(&self, worker: u64, turn: u64) {
        let endpoints = self.user.endpoints().await.unwrap_or_default();
        let place = turn.checked_rem(u64::try_from(endpoints.len()).unwrap_or(1));
        let place = place.and_then(|place| usize::try_from(place).ok());
        let Some(endpoint) = place.and_then(|place| endpoints.get(place)) else {
            return;
        };
        let key = format!("{PREFIX}{worker}-{}", turn.wrapping_rem(KEYS));
        let value = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        let put = tokio::time::timeout(PATIENCE, endpoint.put(&key, &value)).await;
        let at = self.begun.elapsed();
        self.books(|ledger| match put {
            Ok(Ok(revision)) => ledger.acknowledge(&key, value, revision, at),
            Ok(Err(_refused)) => ledger.doubt(&key, value),
            Err(_elapsed) => ledger.doubt(&key, value),
        });
    }

    fn books<T>(&self, with: impl FnOnce(&mut Ledger) -> T) -> T {
        with(&mut self.ledger.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
