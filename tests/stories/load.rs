//! A stream of admissions and conversions that runs beside a story, and what became of each of them.
#![expect(clippy::indexing_slicing, reason = "JSON that is not there reads as null")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use kube::Client;
use quorate_harness::Story;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::wire::{call, created};

const API: &str = "/apis/etcd.appdelivery.cncf.io";
/// As many as the apiserver keeps busy with on two cores.
const WORKERS: usize = 4;
/// How often a failed call is tried again, and the pause before that.
const RETRIES: usize = 20;
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// What became of the calls.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Objects that were judged: creations in an old version that are not kept.
    pub(super) admissions: AtomicUsize,
    /// Objects that were read in a version that is not stored.
    pub(super) conversions: AtomicUsize,
    /// Calls that failed at first.
    pub(super) failed: AtomicUsize,
    /// Calls that failed to the last.
    pub(super) lost: AtomicUsize,
    words: Mutex<Vec<String>>,
    times: Mutex<Vec<Instant>>,
}

impl Tally {
    /// When calls failed at first.
    pub(super) fn times(&self) -> Vec<Instant> {
        self.times.lock().map(|all| all.clone()).unwrap_or_default()
    }

    fn note_time(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        if let Ok(mut all) = self.times.lock() {
            all.push(Instant::now());
        }
    }

    fn note(&self, words: String) {
        if let Ok(mut all) = self.words.lock()
            && all.len() < 10
        {
            all.push(words);
        }
    }

    /// All calls that came to a good end.
    pub(super) fn done(&self) -> usize {
        let (one, other) = (&self.admissions, &self.conversions);
        one.load(Ordering::Relaxed).saturating_add(other.load(Ordering::Relaxed))
    }

    /// The first failures, in the words of the apiserver.
    pub(super) fn words(&self) -> String {
        self.words.lock().map(|all| all.join("\n")).unwrap_or_default()
    }
}

/// The stream. It ends when it is told to.
pub(super) struct Load {
    pub(super) tally: Arc<Tally>,
    stop: Arc<AtomicBool>,
    workers: JoinSet<Result<()>>,
}

impl Load {
    /// Makes the object that is read, and begins.
    pub(super) async fn begin(story: &Story) -> Result<Self> {
        created(story, &object("read")).await?;
        let (tally, stop) = (Arc::new(Tally::default()), Arc::new(AtomicBool::new(false)));
        let mut workers = JoinSet::new();
        for number in 0..WORKERS {
            let worker = Worker {
                client: story.client.clone(),
                namespace: story.namespace.clone(),
                tally: Arc::clone(&tally),
            };
            let stop = Arc::clone(&stop);
            workers.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    worker.admit(number).await?;
                    worker.convert().await?;
                }
                Ok(())
            });
        }
        Ok(Self { tally, stop, workers })
    }

    /// Goes on until this many calls have come to an end, then ends.
    pub(super) async fn until(self, calls: usize, limit: Duration) -> Result<Arc<Tally>> {
        let enough = async {
            while self.tally.done() < calls {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        tokio::time::timeout(limit, enough)
            .await
            .with_context(|| format!("only {} of {calls} calls in time", self.tally.done()))?;
        self.end().await
    }

    /// Ends, and says what became of the calls.
    pub(super) async fn end(mut self) -> Result<Arc<Tally>> {
        self.stop.store(true, Ordering::Relaxed);
        while let Some(ended) = self.workers.join_next().await {
            ended??;
        }
        Ok(self.tally)
    }
}

struct Worker {
    client: Client,
    namespace: String,
    tally: Arc<Tally>,
}

impl Worker {
    async fn admit(&self, number: usize) -> Result<()> {
        let path = format!("{API}/v1alpha1/namespaces/{}/etcdclusters?dryRun=All", self.namespace);
        let object = object(&format!("never-{number}"));
        let done = self.tried("POST", &path, &object, |answer| {
            answer["spec"]["size"] == 3
                && answer["apiVersion"] == "etcd.appdelivery.cncf.io/v1alpha1"
        });
        if done.await? {
            self.tally.admissions.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn convert(&self) -> Result<()> {
        let path = format!("{API}/v1beta1/namespaces/{}/etcdclusters/read", self.namespace);
        let done = self.tried("GET", &path, &Value::Null, |answer| answer["spec"]["size"] == 3);
        if done.await? {
            self.tally.conversions.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn tried(
        &self,
        method: &str,
        path: &str,
        body: &Value,
        right: impl Fn(&Value) -> bool,
    ) -> Result<bool> {
        for attempt in 0..RETRIES {
            let answer = call(&self.client, method, path, "application/json", body).await?;
            if answer.code < 300 {
                ensure!(right(&answer.body), "{method} {path}: {}", answer.body);
                return Ok(true);
            }
            if attempt == 0 {
                self.tally.note_time();
            }
            self.tally.note(format!("{method} {}: {}", answer.code, answer.body["message"]));
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        self.tally.lost.fetch_add(1, Ordering::Relaxed);
        Ok(false)
    }
}

fn object(name: &str) -> Value {
    json!({
        "apiVersion": "etcd.appdelivery.cncf.io/v1alpha1", "kind": "EtcdCluster",
        "metadata": {"name": name}, "spec": {"size": 3, "version": "3.6.16", "paused": true},
    })
}
