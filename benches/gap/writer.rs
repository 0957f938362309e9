//! A writer that never waits for an answer before it sends the next: one write each few milliseconds, to one member after the other.
//! So what it finds is how long the cluster took no writes, and not for how long one call hung.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use quorate_harness::etcd::{Endpoint, EtcdUser};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time;

/// How often something is written.
const OFTEN: Duration = Duration::from_millis(10);
/// How often it looks who the members are.
const LOOKS: Duration = Duration::from_millis(200);
/// After this nobody waits for an answer any more.
const PATIENCE: Duration = Duration::from_secs(2);
/// So many unanswered writes are enough.
const MOST_UNDER_WAY: usize = 200;

/// It writes until it is ended.
pub(super) struct Writer {
    desk: Arc<Desk>,
    tasks: JoinSet<()>,
}

struct Desk {
    begun: Instant,
    ended: AtomicBool,
    failed: AtomicU64,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    acknowledged: u64,
    last: Option<Instant>,
    longest: Duration,
    /// When the longest gap began.
    at: Duration,
    /// What was noted, and when.
    notes: Vec<(Duration, String)>,
}

/// What was found.
pub(super) struct Gap {
    pub(super) longest: Duration,
    words: String,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} ms {}", self.longest.as_secs_f64() * 1000.0, self.words)
    }
}

impl Writer {
    pub(super) async fn begin(user: &EtcdUser) -> Result<Self> {
        let desk = Arc::new(Desk {
            begun: Instant::now(),
            ended: AtomicBool::new(false),
            failed: AtomicU64::new(0),
            book: Mutex::default(),
        });
        let (known, members) = watch::channel(user.endpoints().await?);
        let mut tasks = JoinSet::new();
        let (user, watching) = (user.clone(), Arc::clone(&desk));
        tasks.spawn(async move {
            while !watching.ended.load(Ordering::Relaxed) {
                if let Ok(found) = user.endpoints().await {
                    known.send_replace(found);
                }
                time::sleep(LOOKS).await;
            }
        });
        let writing = Arc::clone(&desk);
        tasks.spawn(async move { writing.write(&members).await });
        Ok(Self { desk, tasks })
    }

    /// Notes what is done to the cluster now.
    pub(super) fn note(&self, words: &str) {
        let at = self.desk.begun.elapsed();
        self.desk.book(|book| book.notes.push((at, words.to_owned())));
    }

    pub(super) async fn end(mut self) -> Result<Gap> {
        self.desk.ended.store(true, Ordering::Relaxed);
        while self.tasks.join_next().await.is_some() {}
        let failed = self.desk.failed.load(Ordering::Relaxed);
        let (longest, words, acknowledged) = self.desk.book(|book| {
            let before = book.notes.iter().rev().find(|(at, _)| *at <= book.at);
            let note = before.map(|(at, words)| {
                let after = book.at.saturating_sub(*at).as_secs_f32();
                format!(", {after:.1} s after \"{words}\"")
            });
            let words = format!(
                "at second {:.1}{}; {} writes, {failed} failed",
                book.at.as_secs_f32(),
                note.unwrap_or_default(),
                book.acknowledged
            );
            (book.longest, words, book.acknowledged)
        });
        ensure!(acknowledged > 100, "hardly anything was written: {words}");
        Ok(Gap { longest, words })
    }
}

impl Desk {
    async fn write(self: &Arc<Self>, members: &watch::Receiver<Vec<Endpoint>>) {
        let mut under_way = JoinSet::new();
        let mut pace = time::interval(OFTEN);
        pace.set_missed_tick_behavior(time::MissedTickBehavior::Skip);
        let mut turn = 0_usize;
        while !self.ended.load(Ordering::Relaxed) {
            pace.tick().await;
            while under_way.try_join_next().is_some() {}
            let all = members.borrow().clone();
            turn = turn.wrapping_add(1);
            let whose = turn.checked_rem(all.len()).and_then(|it| all.get(it).cloned());
            let Some(member) = whose.filter(|_| under_way.len() < MOST_UNDER_WAY) else { continue };
            let desk = Arc::clone(self);
            under_way.spawn(async move {
                let key = format!("gap/{}", turn.wrapping_rem(64));
                match time::timeout(PATIENCE, member.put(&key, &turn.to_string())).await {
                    Ok(Ok(_)) => desk.acknowledge(),
                    Ok(Err(_)) | Err(_) => {
                        desk.failed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        while under_way.join_next().await.is_some() {}
    }

    fn acknowledge(&self) {
        let now = Instant::now();
        self.book(|book| {
            book.acknowledged = book.acknowledged.saturating_add(1);
            let gap = book.last.map_or(Duration::ZERO, |last| now.saturating_duration_since(last));
            if gap > book.longest {
                book.longest = gap;
                book.at = now.saturating_duration_since(self.begun).saturating_sub(gap);
            }
            book.last = Some(now);
        });
    }

    fn book<T>(&self, with: impl FnOnce(&mut Book) -> T) -> T {
        with(&mut self.book.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
