//! The reconcile loop of storage version migration: observe, decide, act, report.
//!
//! One kind after the other, one step at a time; it can be dropped at any point.

use std::time::Duration;

use futures::StreamExt;
use kube::Client;
use kube::runtime::events::{Recorder, Reporter};
use tokio::time;

use super::act::{Executor, StepResult};
use super::decide::{Plan, Step, decide};
use super::observe::{MigrationClients, Observation};
use super::progress_cache::ProgressCache;
use super::record::{Counts, Phase};
use super::report::LastReport;
use super::state::{MigrationMode, ObservedState, Reading, multi_version_kinds};
use crate::api::kinds::Kind;
use crate::api::monotonic::MonotonicTime;
use crate::api::names;
use crate::clients::clock::Clock;
use crate::clients::leader_guard::LeaderGuard;
use crate::clients::objects::Objects;
use crate::clients::storage_versions::StorageVersionsClient;
use crate::telemetry::{Metrics, MigrationCounts};

/// How often every kind is reconciled without an event: a watch may have missed one.
const RESYNC_INTERVAL: Duration = Duration::from_mins(5);
/// The delay after a conflict with another client.
const CONFLICT_RETRY_DELAY: Duration = Duration::from_millis(250);

/// Migrates stored objects to the storage version of their CRD, as a leader task.
pub(crate) struct StorageMigrationController {
    pub(crate) client: Client,
    pub(crate) leader_guard: LeaderGuard,
    /// The operator's own namespace.
    pub(crate) namespace: String,
    pub(crate) mode: MigrationMode,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
}

/// One kind, and what is remembered of it between reconciliations.
struct KindState {
    kind: &'static Kind,
    cache: ProgressCache,
    report: LastReport,
}

/// What the reconciliations share.
struct Context {
    clients: MigrationClients,
    clock: Clock,
    metrics: Metrics,
    recorder: Recorder,
    leader_guard: LeaderGuard,
}

impl StorageMigrationController {
    /// Runs until it is dropped.
    pub(crate) async fn run(self) {
        let Self { client, leader_guard, namespace, mode, clock, metrics } = self;
        let storage_versions = StorageVersionsClient::new(client.clone(), leader_guard.clone());
        let mut changes = storage_versions.changes(multi_version_kinds());
        let objects = Objects::new(client.clone(), leader_guard.clone());
        let reporter = Reporter { controller: names::OPERATOR.into(), instance: None };
        let context = Context {
            clients: MigrationClients { storage_versions, objects, namespace, mode },
            clock,
            metrics,
            recorder: Recorder::new(client, reporter),
            leader_guard,
        };
        let state = |kind| KindState {
            kind,
            cache: ProgressCache::default(),
            report: LastReport::default(),
        };
        let mut kinds: Vec<KindState> = multi_version_kinds().map(state).collect();
        loop {
            let mut delay = RESYNC_INTERVAL;
            for kind in &mut kinds {
                delay = delay.min(context.reconcile(kind).await);
            }
            tokio::select! {
                () = time::sleep(delay) => {}
                Some(_) = changes.next() => {}
            }
        }
    }
}

impl Context {
    /// Reconciles one kind; returns the delay before the next reconciliation.
    async fn reconcile(&self, state: &mut KindState) -> Duration {
        let observation = self.clients.observe(state.kind).await;
        let now = self.clock.now();
        let crd = match &observation.crd {
            Reading::Known(Some(crd)) => Some(crd.clone()),
            Reading::Known(None) | Reading::Unknown => None,
        };
        let record = match &observation.record {
            Reading::Known(record) => record.clone(),
            Reading::Unknown => None,
        };
        let run = record.filter(|record| crd.as_ref().is_some_and(|crd| record.matches(crd)));
        if let Some(crd) = &crd {
            state.cache.observe(crd, now);
            self.metrics.storage_migration.stored(state.kind.name, crd.stored.len());
        }
        if run.as_ref().is_some_and(|record| record.phase == Phase::Blocked) {
            state.cache.record_blocked(now);
        }
        let plan = self.decide(state, &observation);
        state.report.planned(state.kind, &plan, crd.as_ref());
        let Some(crd) = crd else { return requeue_delay(&plan, now) };
        if matches!(plan.step, Step::EnterPhase(_)) {
            state.cache.record_retry(observation.retry_request.clone());
        }
        let executor = Executor {
            clients: &self.clients,
            kind: state.kind,
            crd: &crd,
            observation: &observation,
            record: run.as_ref(),
        };
        let result = executor.execute(&plan.step, &mut state.cache).await;
        self.report(state, &plan, &executor, result.as_ref()).await;
        match result {
            None => requeue_delay(&plan, now),
            Some(StepResult::Done(..)) => {
                state.cache.record_success();
                Duration::ZERO
            }
            Some(StepResult::Conflict) => CONFLICT_RETRY_DELAY,
            Some(StepResult::Failed(_)) => {
                let now = self.clock.now();
                state.cache.record_failure(now);
                let retry = state.cache.next_retry(now);
                retry.map_or(CONFLICT_RETRY_DELAY, |retry| retry.since(now))
            }
        }
    }

    fn decide(&self, state: &KindState, observation: &Observation) -> Plan {
        decide(&ObservedState {
            kind: state.kind,
            mode: self.clients.mode,
            crd: observation.crd.clone(),
            record: observation.record.clone(),
            retry_request: observation.retry_request.clone(),
            mixed_versions: observation.mixed_versions.clone(),
            delegated: observation.delegated.clone(),
            cache: &state.cache,
            now: self.clock.now(),
        })
    }

    async fn report(
        &self,
        state: &mut KindState,
        plan: &Plan,
        executor: &Executor<'_>,
        result: Option<&StepResult>,
    ) {
        match result {
            Some(StepResult::Done(after, counts)) => {
                let Counts { listed: _, written, current, deleted, failed } = *counts;
                let metrics = &self.metrics.storage_migration;
                let counts = MigrationCounts { written, current, deleted, failed };
                metrics.count_objects(state.kind.name, counts);
                let remaining = after.total.saturating_sub(after.counts.listed);
                let running = after.phase != Phase::Complete;
                metrics.run(state.kind.name, running, if running { remaining } else { 0 });
                let event = state.report.succeeded(state.kind, plan, executor.record, after);
                if let Some(event) = event {
                    let uid = &executor.crd.uid;
                    event.publish(&self.recorder, &self.leader_guard, state.kind, uid).await;
                }
            }
            Some(StepResult::Failed(error)) => state.report.failed(state.kind, plan, error),
            Some(StepResult::Conflict) | None => {}
        }
    }
}

fn requeue_delay(plan: &Plan, now: MonotonicTime) -> Duration {
    plan.requeue_at.map_or(RESYNC_INTERVAL, |requeue_at| requeue_at.since(now))
}
