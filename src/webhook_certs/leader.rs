//! The leader task that rotates the CA and injects the bundle into the targets. Every choice is
//! made by `decide`.
//! Guarantees: at most one write per reconciliation, none without leadership; the state is observed
//! again after each write.

mod report;

use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use tokio::time;

use super::apply::{Outcome, after_write, apply};
use super::ca_set::CaSet;
use super::decide::{Plan, Step, decide, requeue_delay};
use super::issue;
use super::lifetimes::Lifetimes;
use super::observe::{self, CertClients, ObservedTarget};
use super::secret;
use super::state::{LeaderState, ObservedState, SecretState, TargetState};
use crate::clients::ca_bundles::Injection;
use crate::clients::clock::{self, Clock};
use crate::clients::error::{ApiError, ErrorClass};
use crate::clients::leader_guard::{LeaderGuard, NotLeading};
use crate::clients::notify::{self, ChangeEvent, ChangeStream};
use crate::telemetry::Metrics;

/// How often a follower checks whether it leads.
const FOLLOWER_INTERVAL: Duration = Duration::from_secs(1);
/// The delay after a write, and after a conflict.
const RETRY_DELAY: Duration = Duration::from_millis(250);

/// CA rotation. Runs on every replica, and acts only on the leader.
pub(crate) struct CaRotation {
    pub(crate) clients: CertClients,
    pub(crate) lifetimes: Lifetimes,
    pub(crate) clock: Clock,
    pub(crate) leader_guard: LeaderGuard,
    pub(crate) metrics: Metrics,
}

/// State that changes from one reconciliation to the next. A term starts with the default.
#[derive(Default)]
struct RotationRun {
    leader_state: LeaderState,
    changes: Option<ChangeStream>,
    log: report::RotationLog,
}

/// The Secret and all targets as read.
struct Observation {
    ca_set: observe::ObservedCaSet,
    targets: Vec<ObservedTarget>,
}

/// The result of a guarded write.
type WriteResult = Result<Result<(), ApiError>, NotLeading>;

impl CaRotation {
    /// Rotates the CA while this replica leads, until `stop` is done. A read may be cancelled at
    /// any time; a write that was sent is awaited before this returns.
    pub(crate) async fn run(self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut run = RotationRun::default();
        loop {
            let observation = tokio::select! {
                () = &mut stop => break,
                observation = self.observe(&mut run) => observation,
            };
            let delay = match observation {
                Ok(observation) => self.reconcile(&mut run, &observation).await,
                Err(NotLeading::TimedOut(_)) => RETRY_DELAY,
                Err(NotLeading::Follower) => {
                    run = RotationRun::default();
                    FOLLOWER_INTERVAL
                }
            };
            let change = tokio::select! {
                () = &mut stop => break,
                () = time::sleep(delay) => None,
                Some(change) = next_change(&mut run.changes) => Some(change),
            };
            run.log.watch_event(change);
        }
    }

    /// Reads the Secret and the targets, if this replica leads.
    async fn observe(&self, run: &mut RotationRun) -> Result<Observation, NotLeading> {
        let timeout = self.lifetimes.call_timeout();
        let reads = async {
            tokio::join!(self.clients.read_ca_set(timeout), self.clients.read_targets(timeout))
        };
        // Each call has its own timeout; the guard also ends the reads with the term.
        let (ca_set, targets) = self.leader_guard.run(timeout.saturating_mul(2), reads).await?;
        if run.changes.is_none() {
            run.changes = Some(self.changes());
        }
        Ok(Observation { ca_set, targets })
    }

    /// Decides, writes and reports; returns the requeue delay.
    async fn reconcile(&self, run: &mut RotationRun, observation: &Observation) -> Duration {
        self.report_observation(run, observation);
        let secret_state = &observation.ca_set.secret_state;
        let target_states: Vec<TargetState> =
            observation.targets.iter().map(|target| target.state.clone()).collect();
        let (now, wall) = (self.clock.now(), clock::wall());
        let leader_state =
            std::mem::take(&mut run.leader_state).observe(secret_state, &target_states, now);
        let state = ObservedState {
            lifetimes: &self.lifetimes,
            wall,
            now,
            secret_state,
            targets: &target_states,
            leader_state: &leader_state,
        };
        let plan = decide(&state);
        self.report_plan(run, plan, secret_state);
        let outcome = self.act(run, &state, plan, observation).await;
        let delay = match outcome {
            None | Some(Outcome::Rejected) => requeue_delay(&state, plan),
            Some(Outcome::Written | Outcome::Conflict | Outcome::Unknown) => RETRY_DELAY,
        };
        run.leader_state = match (outcome, secret_state) {
            (Some(outcome), SecretState::Found { ca_set, invalid: _ }) => {
                after_write(leader_state.clone(), plan, outcome, ca_set.bundle(), self.clock.now())
            }
            (None, _) | (_, SecretState::NotFound | SecretState::Unknown(_)) => {
                leader_state.clone()
            }
        };
        delay
    }

    fn changes(&self) -> ChangeStream {
        let secret = self.clients.ca_secret.changes();
        let targets = self.clients.bundles.changes(&self.clients.targets);
        notify::merge(secret.into_iter().chain(targets))
    }

    /// Sends the plan's write, if it has one.
    async fn act(
        &self,
        run: &mut RotationRun,
        state: &ObservedState<'_>,
        plan: Plan,
        observation: &Observation,
    ) -> Option<Outcome> {
        let SecretState::Found { ca_set, invalid: _ } = state.secret_state else {
            return None;
        };
        let result = match plan.step {
            Step::Wait => return None,
            Step::InjectBundle(index) => {
                self.inject(index, ca_set, observation.targets.get(index)?).await?
            }
            Step::CreateCa
            | Step::StageNextCa
            | Step::RepairSecret
            | Step::ActivateNextCa
            | Step::RecordRotationTime
            | Step::RemovePreviousCa => {
                let new_ca = || issue::new_ca(&self.lifetimes, state.wall);
                let ca_set = apply(state, ca_set, plan, new_ca);
                let ca_set = ca_set.inspect_err(|error| run.log.issue_failed(error)).ok()??;
                let secret = observation.ca_set.secret.as_ref()?;
                self.replace(&secret::updated_secret(secret, &ca_set)).await
            }
        };
        Some(self.report_write(run, plan, result))
    }

    async fn inject(
        &self,
        index: usize,
        ca_set: &CaSet,
        observed: &ObservedTarget,
    ) -> Option<WriteResult> {
        let (target, found) = (self.clients.targets.get(index)?, observed.webhooks.as_ref()?);
        let (hooks, bundle) = (self.clients.our_webhooks(found), ca_set.bundle());
        let injection = Injection { target, found, hooks, bundle };
        let timeout = self.lifetimes.call_timeout();
        let call = self.clients.bundles.inject(&injection, timeout);
        Some(self.leader_guard.run(timeout, call).await)
    }

    async fn replace(&self, secret: &Secret) -> WriteResult {
        let timeout = self.lifetimes.call_timeout();
        let call = self.clients.ca_secret.replace(secret, timeout);
        self.leader_guard.run(timeout, call).await.map(|written| written.map(|_| ()))
    }
}

/// The next change, once the watch has started.
async fn next_change(changes: &mut Option<ChangeStream>) -> Option<ChangeEvent> {
    match changes {
        Some(changes) => changes.next().await,
        None => std::future::pending().await,
    }
}

const fn write_failure(class: ErrorClass) -> Outcome {
    match class {
        // Deleted, or replaced by another object of the same name.
        ErrorClass::NotFound | ErrorClass::Conflict => Outcome::Conflict,
        ErrorClass::Rejected => Outcome::Rejected,
        ErrorClass::ServerError | ErrorClass::Unreachable => Outcome::Unknown,
    }
}
