//! A load of admissions and conversions in the background of a test, and the outcome of each call.
#![expect(clippy::indexing_slicing, reason = "a missing JSON field reads as null")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use kube::Client;
use quorate_harness::TestContext;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::raw_api::{call, create_etcd_cluster};

const API: &str = "/apis/etcd.appdelivery.cncf.io";
/// As many as keep the API server busy on two cores.
const WORKERS: usize = 4;
const MAX_ATTEMPTS: usize = 20;
const RETRY_DELAY: Duration = Duration::from_millis(250);

/// The outcomes of the calls.
#[derive(Debug, Default)]
pub(super) struct LoadStats {
    /// Admitted objects: dry-run creations in an old version.
    pub(super) admissions: AtomicUsize,
    /// Objects that were read in another version than the storage version.
    pub(super) conversions: AtomicUsize,
    /// Calls whose first attempt failed.
    pub(super) failed: AtomicUsize,
    /// Calls whose last attempt failed.
    pub(super) lost: AtomicUsize,
    errors: Mutex<Vec<String>>,
    times: Mutex<Vec<Instant>>,
}

impl LoadStats {
    /// When first attempts failed.
    pub(super) fn times(&self) -> Vec<Instant> {
        self.times.lock().map(|all| all.clone()).unwrap_or_default()
    }

    fn record_failure(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        if let Ok(mut all) = self.times.lock() {
            all.push(Instant::now());
        }
    }

    fn record_error(&self, error: String) {
        if let Ok(mut all) = self.errors.lock()
            && all.len() < 10
        {
            all.push(error);
        }
    }

    /// All successful calls.
    pub(super) fn done(&self) -> usize {
        let (one, other) = (&self.admissions, &self.conversions);
        one.load(Ordering::Relaxed).saturating_add(other.load(Ordering::Relaxed))
    }

    /// The first errors of the API server.
    pub(super) fn errors(&self) -> String {
        self.errors.lock().map(|all| all.join("\n")).unwrap_or_default()
    }
}

/// The load, until [`Load::finish`].
pub(super) struct Load {
    pub(super) stats: Arc<LoadStats>,
    stop: Arc<AtomicBool>,
    workers: JoinSet<Result<()>>,
}

impl Load {
    /// Creates the object that is read, and starts the load.
    pub(super) async fn start(ctx: &TestContext) -> Result<Self> {
        create_etcd_cluster(ctx, &object("read")).await?;
        let (stats, stop) = (Arc::new(LoadStats::default()), Arc::new(AtomicBool::new(false)));
        let mut workers = JoinSet::new();
        for number in 0..WORKERS {
            let worker = Worker {
                client: ctx.client.clone(),
                namespace: ctx.namespace.clone(),
                stats: Arc::clone(&stats),
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
        Ok(Self { stats, stop, workers })
    }

    /// Continues until this many calls have succeeded, then stops.
    pub(super) async fn until(self, calls: usize, timeout: Duration) -> Result<Arc<LoadStats>> {
        let enough = async {
            while self.stats.done() < calls {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        tokio::time::timeout(timeout, enough)
            .await
            .with_context(|| format!("only {} of {calls} calls in time", self.stats.done()))?;
        self.finish().await
    }

    /// Stops, and returns the outcomes.
    pub(super) async fn finish(mut self) -> Result<Arc<LoadStats>> {
        self.stop.store(true, Ordering::Relaxed);
        while let Some(finished) = self.workers.join_next().await {
            finished??;
        }
        Ok(self.stats)
    }
}

struct Worker {
    client: Client,
    namespace: String,
    stats: Arc<LoadStats>,
}

impl Worker {
    async fn admit(&self, number: usize) -> Result<()> {
        let path = format!("{API}/v1alpha1/namespaces/{}/etcdclusters?dryRun=All", self.namespace);
        let object = object(&format!("never-{number}"));
        let done = self.call_with_retries("POST", &path, &object, |response| {
            response["spec"]["size"] == 3
                && response["apiVersion"] == "etcd.appdelivery.cncf.io/v1alpha1"
        });
        if done.await? {
            self.stats.admissions.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn convert(&self) -> Result<()> {
        let path = format!("{API}/v1beta1/namespaces/{}/etcdclusters/read", self.namespace);
        let done = self.call_with_retries("GET", &path, &Value::Null, |response| {
            response["spec"]["size"] == 3
        });
        if done.await? {
            self.stats.conversions.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn call_with_retries(
        &self,
        method: &str,
        path: &str,
        body: &Value,
        is_expected: impl Fn(&Value) -> bool,
    ) -> Result<bool> {
        for attempt in 0..MAX_ATTEMPTS {
            let response = call(&self.client, method, path, "application/json", body).await?;
            if response.code < 300 {
                ensure!(is_expected(&response.body), "{method} {path}: {}", response.body);
                return Ok(true);
            }
            if attempt == 0 {
                self.stats.record_failure();
            }
            self.stats
                .record_error(format!("{method} {}: {}", response.code, response.body["message"]));
            tokio::time::sleep(RETRY_DELAY).await;
        }
        self.stats.lost.fetch_add(1, Ordering::Relaxed);
        Ok(false)
    }
}

fn object(name: &str) -> Value {
    json!({
        "apiVersion": "etcd.appdelivery.cncf.io/v1alpha1", "kind": "EtcdCluster",
        "metadata": {"name": name}, "spec": {"size": 3, "version": "3.6.16", "paused": true},
    })
}
