//! Invariants of an EtcdCluster, checked while a test runs: the reported status matches what the
//! members answer, and etcd's member list, read several times a second, changes by one member at a
//! time.

mod membership;
mod status;
mod violations;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use kube::Api;
use kube::api::DynamicObject;
use tokio::task::JoinHandle;

use crate::etcd::EtcdClient;
use membership::MembershipHistory;
use status::{ActualState, ReportedStatus, mismatches};
use violations::Violations;

/// How often the status is compared with the members.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);
/// How often the member list is read.
const MEMBER_LIST_INTERVAL: Duration = Duration::from_millis(150);
const MEMBER_LIST_TIMEOUT: Duration = Duration::from_secs(1);

/// Checks in the background until [`InvariantChecker::finish`].
#[must_use = "violations are only reported by `finish`"]
pub struct InvariantChecker {
    shared: Arc<Shared>,
    tasks: [JoinHandle<()>; 2],
}

struct Shared {
    etcd: EtcdClient,
    objects: Api<DynamicObject>,
    name: String,
    started: Instant,
    stopped: AtomicBool,
    /// No operator can update the status at present.
    stale_status_allowed: AtomicBool,
    recorded: Mutex<Recorded>,
}

#[derive(Default)]
struct Recorded {
    violations: Violations,
    membership: MembershipHistory,
    comparisons: u32,
    cluster_id: Option<u64>,
    other_cluster_id: Option<u64>,
}

/// What was observed, when no invariant was violated.
#[derive(Clone, Copy, Debug)]
pub struct CheckSummary {
    /// How often the status was compared with the members.
    pub comparisons: u32,
    /// How often etcd's member list was read.
    pub member_lists: u32,
    /// How many times a member was added, promoted or removed.
    pub changes: u32,
    /// The largest number of members listed at once.
    pub max_members: usize,
}

impl InvariantChecker {
    /// Starts to check the EtcdCluster of this name.
    pub fn start(etcd: &EtcdClient, objects: &Api<DynamicObject>, name: &str) -> Self {
        let shared = Arc::new(Shared {
            etcd: etcd.clone(),
            objects: objects.clone(),
            name: name.to_owned(),
            started: Instant::now(),
            stopped: AtomicBool::new(false),
            stale_status_allowed: AtomicBool::new(false),
            recorded: Mutex::default(),
        });
        let (compares, lists) = (Arc::clone(&shared), Arc::clone(&shared));
        let tasks = [
            tokio::spawn(async move { compares.compare_status_loop().await }),
            tokio::spawn(async move { lists.read_member_list_loop().await }),
        ];
        Self { shared, tasks }
    }

    /// Whether the status may be stale from now on, because no operator runs that could update it.
    pub fn allow_stale_status(&self, allowed: bool) {
        self.shared.stale_status_allowed.store(allowed, Ordering::Relaxed);
    }

    /// Stops, and returns what was observed.
    ///
    /// # Errors
    /// If the status did not match the members for too long, or if the membership changed in a way
    /// that is not allowed; with a message for each violation.
    pub async fn finish(self) -> Result<CheckSummary> {
        self.shared.stopped.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await?;
        }
        let recorded = self.shared.recorded();
        let mut violations = recorded.violations.messages();
        violations.extend(recorded.membership.messages());
        if let (Some(first), Some(other)) = (recorded.cluster_id, recorded.other_cluster_id) {
            violations.push(format!("status.clusterID was {first:x} first, and {other:x} later"));
        }
        if !violations.is_empty() {
            bail!("violated invariants:\n  {}", violations.join("\n  "));
        }
        let (comparisons, membership) = (recorded.comparisons, &recorded.membership);
        ensure!(comparisons > 0 && membership.lists > 0, "no invariant was checked at all");
        Ok(CheckSummary {
            comparisons,
            member_lists: membership.lists,
            changes: membership.changes,
            max_members: membership.max_members,
        })
    }
}

impl Shared {
    async fn compare_status_loop(&self) {
        while !self.stopped.load(Ordering::Relaxed) {
            let interval = tokio::time::sleep(STATUS_INTERVAL);
            self.compare_status().await;
            interval.await;
        }
    }

    async fn compare_status(&self) {
        let object = tokio::time::timeout(STATUS_INTERVAL, self.objects.get(&self.name)).await;
        let Ok(Ok(object)) = object else { return };
        let Ok(object) = serde_json::to_value(&object) else { return };
        let reported = ReportedStatus::read(&object);
        let Ok(probes) = self.etcd.probe_all().await else { return };
        let actual = ActualState { probes: probes.into_iter().collect() };
        let mut recorded = self.recorded();
        recorded.comparisons = recorded.comparisons.saturating_add(1);
        if let Some(cluster_id) = reported.cluster_id
            && *recorded.cluster_id.get_or_insert(cluster_id) != cluster_id
        {
            recorded.other_cluster_id = Some(cluster_id);
        }
        if self.stale_status_allowed.load(Ordering::Relaxed) {
            recorded.violations.reset();
        } else {
            recorded.violations.observe(self.started.elapsed(), &mismatches(&reported, &actual));
        }
    }

    /// Reads the list from a different member each time.
    async fn read_member_list_loop(&self) {
        let mut turn = 0_usize;
        while !self.stopped.load(Ordering::Relaxed) {
            turn = turn.wrapping_add(1);
            let endpoints = self.etcd.endpoints().await.unwrap_or_default();
            let index = turn.checked_rem(endpoints.len());
            if let Some(endpoint) = index.and_then(|index| endpoints.get(index))
                && let Ok(Ok(list)) =
                    tokio::time::timeout(MEMBER_LIST_TIMEOUT, endpoint.member_list()).await
            {
                self.recorded().membership.observe(self.started.elapsed(), &list);
            }
            tokio::time::sleep(MEMBER_LIST_INTERVAL).await;
        }
    }

    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
