//! The task of every replica: creates the Secret if it is missing, and issues the serving
//! certificate of this replica. Opens the readiness gate once the API server trusts it. Every
//! choice is made by `leaf`.
//! Guarantees: no leaf key leaves this process.

mod report;

use std::time::Duration;

use futures::StreamExt;
use tokio::time;

use super::ca_set::CaSet;
use super::issue;
use super::leaf::{
    self, LeafPlan, LeafStep, ReplicaState, Times, is_trusted_by_targets, plan_leaf,
};
use super::lifetimes::Lifetimes;
use super::observe::CertClients;
use super::secret;
use super::state::{ReadFailure, SecretState, TargetState};
use crate::clients::clock::{self, Clock};
use crate::clients::error::ErrorClass;
use crate::clients::serving_cert::CertResolver;
use crate::telemetry::{Gate, Gates, Metrics};

/// How often the targets are read until they trust this replica.
const GATE_INTERVAL: Duration = Duration::from_secs(2);
/// The delay after a create, and after a conflict with another replica.
const RETRY_DELAY: Duration = Duration::from_millis(250);

/// The serving certificate of one replica.
pub(crate) struct ServingCertificate {
    pub(crate) clients: CertClients,
    pub(crate) lifetimes: Lifetimes,
    pub(crate) clock: Clock,
    pub(crate) resolver: CertResolver,
    pub(crate) gates: Gates,
    pub(crate) metrics: Metrics,
}

/// State that changes from one reconciliation to the next.
#[derive(Default)]
struct ReplicaRun {
    state: ReplicaState,
    /// Whether the gate was opened. It stays open: from then on the leader repairs the targets.
    gate_open: bool,
    log: report::ReplicaLog,
}

impl ServingCertificate {
    /// Keeps the serving certificate up to date until `stop` is done.
    pub(crate) async fn run(self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut changes = self.clients.ca_secret.changes();
        let mut run = ReplicaRun::default();
        loop {
            let delay = tokio::select! {
                () = &mut stop => break,
                delay = self.reconcile(&mut run) => delay,
            };
            tokio::select! {
                () = &mut stop => break,
                () = time::sleep(delay) => {}
                Some(change) = changes.next() => self.report_watch_event(&mut run, change),
            }
        }
    }

    /// Observes, decides, acts and reports; returns the requeue delay.
    async fn reconcile(&self, run: &mut ReplicaRun) -> Duration {
        let sent = self.times();
        let observed = self.clients.read_ca_set(self.lifetimes.call_timeout()).await;
        self.report_observation(run, &observed);
        run.state = std::mem::take(&mut run.state).observe(&observed.secret_state, sent);
        let times = self.times();
        let plan = plan_leaf(&self.lifetimes, &run.state, &observed.secret_state, times);
        run.log.plan(plan, run.state.leaf.is_some());
        let wrote = match plan.step {
            LeafStep::Wait => false,
            LeafStep::CreateSecret => self.create_secret(run, times).await,
            LeafStep::Issue => {
                self.issue(run, plan, times);
                false
            }
        };
        self.report_expiry(run);
        let delay = leaf::requeue_delay(&self.lifetimes, &run.state, plan, times.wall);
        let delay = if wrote { RETRY_DELAY } else { delay };
        let gate_open = self.open_gate(run, &observed.secret_state).await;
        if gate_open { delay } else { delay.min(GATE_INTERVAL) }
    }

    /// Creates the Secret; returns whether it exists now.
    async fn create_secret(&self, run: &mut ReplicaRun, times: Times) -> bool {
        let ca = match issue::new_ca(&self.lifetimes, times.wall) {
            Ok(ca) => ca,
            Err(error) => {
                run.log.issue_failed(&error);
                return false;
            }
        };
        let ca_set = CaSet::new(ca, &run.state.known_certificates());
        let secret = secret::new_secret(self.clients.namespace(), &ca_set);
        match self.clients.ca_secret.create(&secret, self.lifetimes.call_timeout()).await {
            Ok(_) => {
                self.report_created(run);
                true
            }
            // Another replica was faster.
            Err(error) if error.class() == ErrorClass::Conflict => true,
            Err(error) => {
                self.report_create_failed(run, &error);
                false
            }
        }
    }

    fn issue(&self, run: &mut ReplicaRun, plan: LeafPlan, times: Times) {
        let ca = run.state.signing_ca(&self.lifetimes, times).cloned();
        // There is one, or the step would not have been chosen.
        let Ok(ca) = ca else { return };
        match issue::new_leaf(&self.lifetimes, &ca, self.clients.namespace(), times.wall) {
            Ok((leaf, certified_key)) => {
                self.resolver.put(certified_key);
                run.log.issued(plan, &leaf);
                run.state.leaf = Some(leaf);
            }
            Err(error) => run.log.issue_failed(&error),
        }
    }

    /// Opens the gate once the API server trusts the leaf; returns whether the gate is open.
    async fn open_gate(&self, run: &mut ReplicaRun, secret_state: &SecretState) -> bool {
        if run.gate_open {
            return true;
        }
        if *secret_state == SecretState::Unknown(ReadFailure::Forbidden) {
            self.gates.forbidden(Gate::Certificate);
        }
        if run.state.leaf.is_none() {
            return false;
        }
        let observed = self.clients.read_targets(self.lifetimes.call_timeout()).await;
        self.report_targets(run, &observed);
        let target_states: Vec<TargetState> =
            observed.into_iter().map(|target| target.state).collect();
        if is_trusted_by_targets(&run.state, &target_states, clock::wall()) == Some(true) {
            self.gates.open(Gate::Certificate);
            run.gate_open = true;
            tracing::info!("the API server trusts the webhook certificate");
        } else if target_states.contains(&TargetState::Unknown(ReadFailure::Forbidden)) {
            self.gates.forbidden(Gate::Certificate);
        }
        run.gate_open
    }

    fn times(&self) -> Times {
        Times { now: self.clock.now(), wall: clock::wall() }
    }
}
