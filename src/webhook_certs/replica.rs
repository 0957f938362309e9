//! The corridor of every replica: sees to it that there is a Secret, and signs its own certificate.
//! Comes in: the outlook, the times, the wish to stop. Goes out: the certificate of the next
//! handshake, and a gate that opens when every API server can call us. May touch: `clients`,
//! `telemetry`. It decides nothing; `renew` does. No key that it makes leaves this process.

mod report;

use std::time::Duration;

use futures::StreamExt;
use tokio::time;

use super::ca_set;
use super::issue;
use super::leaf::{self, LeafPlan, ReplicaState, Step, Times, is_trusted_by_targets, renew};
use super::lifetimes::Lifetimes;
use super::observe::CertClients;
use super::secret;
use super::state::{ReadFailure, SecretState, TargetState};
use crate::clients::clock::{self, Clock};
use crate::clients::error::ErrorClass;
use crate::clients::serving_cert::CertResolver;
use crate::telemetry::{Gate, Gates, Metrics};

/// The pause between two looks at the targets, until they trust us.
const GATE_INTERVAL: Duration = Duration::from_secs(2);
/// The pause after a write, and after one that another replica was faster with.
const RETRY_DELAY: Duration = Duration::from_millis(250);

/// One replica's certificate.
pub(crate) struct ServingCertificate {
    pub(crate) clients: CertClients,
    pub(crate) lifetimes: Lifetimes,
    pub(crate) clock: Clock,
    pub(crate) identity: CertResolver,
    pub(crate) gates: Gates,
    pub(crate) metrics: Metrics,
}

/// What changes from pass to pass.
#[derive(Default)]
struct Run {
    replica: ReplicaState,
    /// Whether the gate was opened. It stays open, and then the targets are the leader's business.
    opened: bool,
    log_state: report::LogState,
}

impl ServingCertificate {
    /// Keeps the certificate good until `stop` is done.
    pub(crate) async fn run(self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut changes = self.clients.authorities.changes();
        let mut run = Run::default();
        loop {
            let rest = tokio::select! {
                () = &mut stop => break,
                rest = self.reconcile(&mut run) => rest,
            };
            tokio::select! {
                () = &mut stop => break,
                () = time::sleep(rest) => {}
                Some(change) = changes.next() => self.report_watched(&mut run, change),
            }
        }
    }

    /// Looks, decides, does, tells; answers how long to rest.
    async fn reconcile(&self, run: &mut Run) -> Duration {
        let asked = self.times();
        let observed = self.clients.ca_set(self.lifetimes.call()).await;
        self.report_looked(run, &observed);
        run.replica = std::mem::take(&mut run.replica).look(&observed.secret_state, asked);
        let times = self.times();
        let plan = renew(&self.lifetimes, &run.replica, &observed.secret_state, times);
        run.log_state.plan(plan, run.replica.leaf.is_some());
        let wrote = match plan.step {
            Step::Rest => false,
            Step::Create => self.create(run, times).await,
            Step::Sign => {
                self.sign(run, plan, times);
                false
            }
        };
        self.report_expiry(run);
        let rest = leaf::rest(&self.lifetimes, &run.replica, plan, times.wall);
        let rest = if wrote { RETRY_DELAY } else { rest };
        if self.open(run, &observed.secret_state).await { rest } else { rest.min(GATE_INTERVAL) }
    }

    /// Makes the Secret; says whether it is there now.
    async fn create(&self, run: &mut Run, times: Times) -> bool {
        let made = match issue::authority(&self.lifetimes, times.wall) {
            Ok(made) => made,
            Err(error) => {
                run.log_state.unmade(&error);
                return false;
            }
        };
        let ca_set = ca_set::CaSet::new(made, &run.replica.remembered());
        let secret = secret::created(self.clients.namespace(), &ca_set);
        match self.clients.authorities.create(&secret, self.lifetimes.call()).await {
            Ok(_) => {
                self.report_created(run);
                true
            }
            // Another replica was faster.
            Err(error) if error.class() == ErrorClass::Conflict => true,
            Err(error) => {
                self.report_uncreated(run, &error);
                false
            }
        }
    }

    fn sign(&self, run: &mut Run, plan: LeafPlan, times: Times) {
        let signer = run.replica.signer(&self.lifetimes, times).cloned();
        // There is one, or signing would not have been decided.
        let Ok(signer) = signer else { return };
        match issue::leaf(&self.lifetimes, &signer, self.clients.namespace(), times.wall) {
            Ok((leaf, shown)) => {
                self.identity.put(shown);
                run.log_state.signed(plan, &leaf);
                run.replica.leaf = Some(leaf);
            }
            Err(error) => run.log_state.unmade(&error),
        }
    }

    /// Opens the gate once we can be called; says whether it is open.
    async fn open(&self, run: &mut Run, secret_state: &SecretState) -> bool {
        if run.opened {
            return true;
        }
        if *secret_state == SecretState::Unknown(ReadFailure::Forbidden) {
            self.gates.forbidden(Gate::Certificate);
        }
        if run.replica.leaf.is_none() {
            return false;
        }
        let observed = self.clients.targets_state(self.lifetimes.call()).await;
        self.report_targets(run, &observed);
        let targets_state: Vec<TargetState> = observed.into_iter().map(|it| it.state).collect();
        if is_trusted_by_targets(&run.replica, &targets_state, clock::wall()) == Some(true) {
            self.gates.open(Gate::Certificate);
            run.opened = true;
            tracing::info!("the API server trusts the webhook certificate");
        } else if targets_state.contains(&TargetState::Unknown(ReadFailure::Forbidden)) {
            self.gates.forbidden(Gate::Certificate);
        }
        run.opened
    }

    fn times(&self) -> Times {
        Times { now: self.clock.now(), wall: clock::wall() }
    }
}
