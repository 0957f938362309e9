//! The namespace access controller: waits for watch events, decides, acts and reports.
//!
//! Crash safety: each step is a single write, and the next leader observes everything again, so the
//! controller may be aborted at any point.

mod act;
mod report;
mod watch;

use std::time::Duration;

use futures::StreamExt;
use futures::stream::SelectAll;
use kube::Client;
use tokio::time;

use super::backoff::{Backoff, Outcome};
use super::conditions::pending_updates;
use super::decide::decide;
use super::state::{ObservedState, WatchState};
use crate::api::namespace_access::NamespaceAccess;
use crate::clients::clock::Clock;
use crate::clients::leader_guard::LeaderGuard;
use crate::clients::rbac::RbacClient;
use crate::telemetry::Metrics;
use report::Reporter;
use watch::{WatchMessage, WatchMessages, watch_all};

/// Events that follow within this delay are handled together.
const DEBOUNCE_DELAY: Duration = Duration::from_millis(200);
const MAX_BATCHED_EVENTS: usize = 10_000;
/// The delay before the rest of a plan that is too long for one reconciliation.
const BATCH_DELAY: Duration = Duration::from_millis(100);
/// A reconciliation ends after this many requests with an unknown outcome.
const MAX_UNKNOWN_OUTCOMES: usize = 3;

/// Keeps the operator's access to the namespaces with its objects. The caller aborts it when
/// leadership is lost.
pub(crate) struct NamespaceAccessController {
    pub(crate) client: Client,
    pub(crate) leader_guard: LeaderGuard,
    /// The namespace of the operator's service account.
    pub(crate) namespace: String,
    pub(crate) mode: NamespaceAccess,
    pub(crate) metrics: Metrics,
}

/// The state of the running controller.
struct Reconciler {
    rbac: RbacClient,
    operator: String,
    mode: NamespaceAccess,
    metrics: Metrics,
    clock: Clock,
    watches: WatchState,
    backoff: Backoff,
    reporter: Reporter,
}

impl NamespaceAccessController {
    /// Runs until it is aborted.
    pub(crate) async fn run(self) {
        let Self { client, leader_guard, namespace, mode, metrics } = self;
        let rbac = RbacClient::new(client, leader_guard);
        let mut messages = watch_all(&rbac, &namespace);
        let mut reconciler = Reconciler {
            rbac,
            operator: namespace,
            mode,
            metrics,
            clock: Clock::start(),
            watches: WatchState::default(),
            backoff: Backoff::default(),
            reporter: Reporter::default(),
        };
        let mut delay = None;
        loop {
            reconciler.wait_for_events(&mut messages, delay).await;
            delay = reconciler.reconcile().await;
        }
    }
}

impl Reconciler {
    /// Waits for an event or for the delay, and applies the events that arrive together.
    async fn wait_for_events(
        &mut self,
        messages: &mut SelectAll<WatchMessages>,
        delay: Option<Duration>,
    ) {
        let first = match delay {
            Some(delay) => time::timeout(delay, messages.next()).await.ok().flatten(),
            None => messages.next().await,
        };
        let Some(first) = first else { return };
        self.apply(first);
        let debounced = time::sleep(DEBOUNCE_DELAY);
        let mut debounced = std::pin::pin!(debounced);
        for _ in 0..MAX_BATCHED_EVENTS {
            tokio::select! {
                biased;
                () = &mut debounced => break,
                next = messages.next() => match next {
                    Some(next) => self.apply(next),
                    None => break,
                },
            }
        }
    }

    fn apply(&mut self, message: WatchMessage) {
        let WatchMessage { kind, event, error } = message;
        self.reporter.watch(kind, &event, error.as_ref());
        self.watches.apply(event);
    }

    /// Reconciles all namespaces; returns the delay until the next retry, if one is pending.
    async fn reconcile(&mut self) -> Option<Duration> {
        let now = self.clock.now();
        let observed =
            ObservedState { mode: self.mode, watches: &self.watches, backoff: &self.backoff, now };
        let plan = decide(&observed);
        let (updates, more_updates) = pending_updates(&observed);
        if let Some(granted) = self.watches.granted_namespaces() {
            self.metrics.namespace_access.granted(granted);
        }
        self.reporter.blocked(&plan.blocked);
        let mut unknown: usize = 0;
        for step in &plan.steps {
            if unknown < MAX_UNKNOWN_OUTCOMES && self.execute(step).await == Outcome::Unknown {
                unknown = unknown.saturating_add(1);
            }
        }
        for update in &updates {
            if unknown < MAX_UNKNOWN_OUTCOMES
                && self.update_condition(update).await == Outcome::Unknown
            {
                unknown = unknown.saturating_add(1);
            }
        }
        let now = self.clock.now();
        self.backoff.prune(&self.watches.uids(), now);
        if unknown == 0 && (plan.more || more_updates) {
            return Some(BATCH_DELAY);
        }
        self.backoff.next_retry(now).map(|retry| retry.since(now))
    }
}

#[cfg(test)]
mod tests;
