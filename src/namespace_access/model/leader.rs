//! A leader of the model: the real rules between simulated watches and requests.
//!
//! The leader sends one request per tick, so that the cluster changes between two requests of one
//! step.

use std::collections::VecDeque;
use std::time::Duration;

use super::Counts;
use super::cluster::{BINDINGS, Cluster, Response};
use crate::api::monotonic::MonotonicTime;
use crate::api::namespace_access::NamespaceAccess;
use crate::api::test_rng::TestRng;
use crate::api::{kinds, names};
use crate::namespace_access::backoff::{AppliedCondition, Backoff, BackoffKey, Outcome};
use crate::namespace_access::conditions::{ConditionUpdate, pending_updates};
use crate::namespace_access::decide::{Action, Step, decide};
use crate::namespace_access::state::{KindRef, ObservedState, WatchEvent, WatchState};
use crate::namespace_access::store::StoreEvent;

/// One watch: its undelivered events, and its position in the log of the cluster.
struct Watch {
    index: usize,
    queue: VecDeque<WatchEvent>,
    position: usize,
}

/// A pending request of a reconciliation.
enum Task {
    Step(Step),
    /// The live lists before a deletion: the next kind, and the time of the first list.
    List(Step, usize, u64),
    Update(ConditionUpdate),
}

pub(super) struct Leader {
    mode: NamespaceAccess,
    state: WatchState,
    backoff: Backoff,
    watches: Vec<Watch>,
    tasks: VecDeque<Task>,
}

impl Leader {
    pub(super) fn new(mode: NamespaceAccess, cluster: &Cluster) -> Self {
        let mut leader = Self {
            mode,
            state: WatchState::default(),
            backoff: Backoff::default(),
            watches: Vec::new(),
            tasks: VecDeque::new(),
        };
        for index in 0..=BINDINGS {
            leader.watches.push(Watch { index, queue: VecDeque::new(), position: 0 });
            leader.list(cluster, index);
        }
        leader
    }

    /// Queues a list of the current objects; the watch continues from there.
    fn list(&mut self, cluster: &Cluster, index: usize) {
        let watch = &mut self.watches[index];
        watch.queue = VecDeque::from([event(index, Marker::ListStarted)]);
        watch.queue.extend(cluster.list(index));
        watch.queue.push_back(event(index, Marker::ListComplete));
        watch.position = cluster.log.len();
    }

    pub(super) fn fail_watch(&mut self, cluster: &Cluster, index: usize) {
        self.state.apply(event(index, Marker::WatchFailed));
        self.list(cluster, index);
    }

    pub(super) fn receive(&mut self, cluster: &mut Cluster, rng: &mut TestRng, faults: bool) {
        for watch in &mut self.watches {
            let log = cluster.log.iter().skip(watch.position);
            let own = log.filter(|(index, _)| *index == watch.index);
            watch.queue.extend(own.map(|(_, event)| event.clone()));
            watch.position = cluster.log.len();
            let delivered = if faults { rng.below(3) } else { 100 };
            for _ in 0..delivered {
                if let Some(event) = watch.queue.pop_front() {
                    self.state.apply(event);
                }
            }
        }
    }

    fn now(cluster: &Cluster) -> MonotonicTime {
        MonotonicTime::new(Duration::from_millis(cluster.now * 100))
    }

    fn observed(&self, cluster: &Cluster) -> ObservedState<'_> {
        let now = Self::now(cluster);
        ObservedState { mode: self.mode, watches: &self.state, backoff: &self.backoff, now }
    }

    /// The number of planned steps and updates.
    pub(super) fn planned(&self, cluster: &Cluster) -> usize {
        let observed = self.observed(cluster);
        decide(&observed).steps.len() + pending_updates(&observed).0.len()
    }

    pub(super) fn act(
        &mut self,
        cluster: &mut Cluster,
        rng: &mut TestRng,
        counts: &mut Counts,
        faults: bool,
    ) {
        let Some(task) = self.tasks.pop_front() else {
            let observed = self.observed(cluster);
            let steps = decide(&observed).steps.into_iter().map(Task::Step);
            let updates = pending_updates(&observed).0.into_iter().map(Task::Update);
            self.tasks = steps.chain(updates).collect();
            return;
        };
        // Either the request or its response is lost.
        let lost = faults && rng.one_in(20);
        if lost && rng.one_in(2) {
            self.record(cluster, &task, Outcome::Unknown);
            return;
        }
        let outcome = match &task {
            Task::Update(update) => self.update(cluster, update, counts, lost),
            Task::Step(step) => match &step.action {
                Action::Create => {
                    let response = cluster.create(&step.namespace);
                    self.outcome(response, &mut counts.created, lost)
                }
                Action::Repair(target) => {
                    let response = cluster.repair(&step.namespace, target);
                    self.outcome(response, &mut counts.repaired, lost)
                }
                Action::Delete(_) => {
                    self.tasks.push_front(Task::List(step.clone(), 0, cluster.now));
                    return;
                }
            },
            Task::List(step, kind, listed_at) if *kind < kinds::ALL.len() => {
                if !cluster.has(*kind, &step.namespace) {
                    self.tasks.push_front(Task::List(step.clone(), kind + 1, *listed_at));
                    return;
                }
                counts.kept_by_live_list += 1;
                Outcome::NotNow
            }
            Task::List(step, _, listed_at) => {
                let Action::Delete(target) = &step.action else { panic!("{step:?}") };
                let response = cluster.delete(&step.namespace, target, *listed_at);
                if matches!(response, Response::Done(_)) && !lost {
                    self.state.bindings.remove(
                        &step.namespace,
                        names::NAMESPACE_ROLE_BINDING,
                        &target.uid,
                    );
                }
                self.outcome(response, &mut counts.deleted, lost)
            }
        };
        self.record(cluster, &task, if lost { Outcome::Unknown } else { outcome });
    }

    fn outcome(&mut self, response: Response, count: &mut u64, lost: bool) -> Outcome {
        match response {
            Response::Done(event) => {
                *count += 1;
                if let Some(WatchEvent::Binding(StoreEvent::Applied(entry))) = event
                    && !lost
                {
                    self.state.bindings.insert(entry);
                }
                Outcome::Done
            }
            Response::Conflict => Outcome::NotNow,
        }
    }

    fn update(
        &mut self,
        cluster: &mut Cluster,
        update: &ConditionUpdate,
        counts: &mut Counts,
        lost: bool,
    ) -> Outcome {
        let Some(version) = cluster.update_condition(update) else { return Outcome::NotNow };
        counts.updated += 1;
        if !lost {
            let applied = AppliedCondition {
                condition: update.condition,
                before: update.resource_version.clone(),
                after: version.to_string(),
            };
            self.backoff.record_applied(&update.uid, applied);
        }
        Outcome::Done
    }

    fn record(&mut self, cluster: &Cluster, task: &Task, outcome: Outcome) {
        let key = match task {
            Task::Step(step) | Task::List(step, _, _) => {
                BackoffKey::Namespace(step.namespace.clone())
            }
            Task::Update(update) => BackoffKey::Object(update.uid.clone()),
        };
        let now = Self::now(cluster);
        self.backoff.record(key, outcome, now);
        self.backoff.prune(&self.state.uids(), now);
    }
}

#[derive(Clone, Copy)]
enum Marker {
    ListStarted,
    ListComplete,
    WatchFailed,
}

fn event(index: usize, marker: Marker) -> WatchEvent {
    fn store_event<T>(marker: Marker) -> StoreEvent<T> {
        match marker {
            Marker::ListStarted => StoreEvent::ListStarted,
            Marker::ListComplete => StoreEvent::ListComplete,
            Marker::WatchFailed => StoreEvent::WatchFailed,
        }
    }
    match kinds::ALL.get(index) {
        Some(kind) => WatchEvent::Object(KindRef(kind), store_event(marker)),
        None => WatchEvent::Binding(store_event(marker)),
    }
}
