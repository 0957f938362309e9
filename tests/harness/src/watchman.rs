//! A watchman for an EtcdCluster: while a story goes on, he compares what its status says with what its members say,
//! and looks at etcd's list of members several times a second.

mod claims;
mod lies;
mod steps;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use kube::Api;
use kube::api::DynamicObject;
use tokio::task::JoinHandle;

use crate::etcd::EtcdUser;
use claims::{Claims, Truth, differences};
use lies::Lies;
use steps::Steps;

/// How often he asks the members, and how often he looks at their list.
const ASK: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(150);
const READ: Duration = Duration::from_secs(1);

/// He watches until he is asked what he saw.
#[must_use = "nobody knows what he saw until he is asked"]
pub struct Watchman {
    post: Arc<Post>,
    tasks: [JoinHandle<()>; 2],
}

struct Post {
    user: EtcdUser,
    objects: Api<DynamicObject>,
    name: String,
    begun: Instant,
    ended: AtomicBool,
    /// Nobody is there who could keep the status true.
    lenient: AtomicBool,
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    lies: Lies,
    steps: Steps,
    asked: u32,
    cluster: Option<u64>,
    other_cluster: Option<u64>,
}

/// What he saw, when nothing was wrong.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// How often he compared the status with the members.
    pub asked: u32,
    /// How often he saw etcd's list of members.
    pub looks: u32,
    /// How many times a member came, was promoted, or went.
    pub changes: u32,
    /// The most members that there were at once.
    pub most: usize,
}

impl Watchman {
    /// Begins to watch the EtcdCluster of this name.
    pub fn begin(user: &EtcdUser, objects: &Api<DynamicObject>, name: &str) -> Self {
        let post = Arc::new(Post {
            user: user.clone(),
            objects: objects.clone(),
            name: name.to_owned(),
            begun: Instant::now(),
            ended: AtomicBool::new(false),
            lenient: AtomicBool::new(false),
            notes: Mutex::default(),
        });
        let (asks, looks) = (Arc::clone(&post), Arc::clone(&post));
        let tasks = [
            tokio::spawn(async move { asks.ask_on().await }),
            tokio::spawn(async move { looks.look_on().await }),
        ];
        Self { post, tasks }
    }

    /// From now on the status may be old, because nobody is there to write it; or no longer.
    pub fn be_lenient(&self, lenient: bool) {
        self.post.lenient.store(lenient, Ordering::Relaxed);
    }

    /// What he saw.
    ///
    /// # Errors
    /// If the status lied, or if members came and went as they must not; with all of it in words.
    pub async fn report(self) -> Result<Watch> {
        self.post.ended.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await?;
        }
        let notes = self.post.notes();
        let mut wrong = notes.lies.words();
        wrong.extend(notes.steps.words());
        if let (Some(first), Some(other)) = (notes.cluster, notes.other_cluster) {
            wrong.push(format!("the status said cluster {first:x} first, and {other:x} later"));
        }
        if !wrong.is_empty() {
            bail!("the watchman saw:\n  {}", wrong.join("\n  "));
        }
        let (asked, steps) = (notes.asked, &notes.steps);
        ensure!(asked > 0 && steps.looks > 0, "the watchman saw nothing at all");
        Ok(Watch { asked, looks: steps.looks, changes: steps.changes, most: steps.most })
    }
}

impl Post {
    async fn ask_on(&self) {
        while !self.ended.load(Ordering::Relaxed) {
            let turn = tokio::time::sleep(ASK);
            self.ask().await;
            turn.await;
        }
    }

    async fn ask(&self) {
        let object = tokio::time::timeout(ASK, self.objects.get(&self.name)).await;
        let Ok(Ok(object)) = object else { return };
        let Ok(object) = serde_json::to_value(&object) else { return };
        let claims = Claims::read(&object);
        let Ok(answers) = self.user.ask_all().await else { return };
        let truth = Truth { answers: answers.into_iter().collect() };
        let mut notes = self.notes();
        notes.asked = notes.asked.saturating_add(1);
        if let Some(cluster) = claims.cluster
            && *notes.cluster.get_or_insert(cluster) != cluster
        {
            notes.other_cluster = Some(cluster);
        }
        if self.lenient.load(Ordering::Relaxed) {
            notes.lies.forget();
        } else {
            notes.lies.hear(self.begun.elapsed(), &differences(&claims, &truth));
        }
    }

    /// A different member is asked each time.
    async fn look_on(&self) {
        let mut turn = 0_usize;
        while !self.ended.load(Ordering::Relaxed) {
            turn = turn.wrapping_add(1);
            let endpoints = self.user.endpoints().await.unwrap_or_default();
            let place = turn.checked_rem(endpoints.len());
            if let Some(endpoint) = place.and_then(|place| endpoints.get(place))
                && let Ok(Ok(listed)) = tokio::time::timeout(READ, endpoint.listed()).await
            {
                self.notes().steps.see(self.begun.elapsed(), &listed);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
