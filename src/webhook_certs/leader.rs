//! The corridor of the leader: renews the authorities and puts their bundle where it is trusted.
//! Comes in: the outlook, the times, the mandate, the wish to stop. Goes out: one write at most in
//! each pass, and none by a replica that does not lead. May touch: `clients`, `telemetry`. It decides
//! nothing; `decide` does. After each write it looks again.

mod report;

use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use tokio::time;

use super::apply::{Outcome, after_write, apply};
use super::ca_set::CaSet;
use super::decide::{Plan, Step, decide, rest};
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

/// How often a replica that does not lead asks whether it does.
const FOLLOWER_INTERVAL: Duration = Duration::from_secs(1);
/// The pause after a write, and after one that came too late.
const RETRY_DELAY: Duration = Duration::from_millis(250);

/// The leader's care for the authorities. It runs on every replica, and acts on the one that leads.
pub(crate) struct CaRotation {
    pub(crate) clients: CertClients,
    pub(crate) lifetimes: Lifetimes,
    pub(crate) clock: Clock,
    pub(crate) mandate: LeaderGuard,
    pub(crate) metrics: Metrics,
}

/// What changes from pass to pass. A term begins without any of it.
#[derive(Default)]
struct Run {
    memory: LeaderState,
    changes: Option<ChangeStream>,
    log_state: report::LogState,
}

/// One look at everything.
struct Look {
    ca_set: observe::ObservedCaSet,
    targets: Vec<ObservedTarget>,
}

/// How a write ended, in the words of whoever knows.
type Written = Result<Result<(), ApiError>, NotLeading>;

impl CaRotation {
    /// Cares for the authorities while this replica leads, until `stop` is done. A look may be given
    /// up at any time; a write that was begun ends before this returns.
    pub(crate) async fn run(self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut run = Run::default();
        loop {
            let observed = tokio::select! {
                () = &mut stop => break,
                observed = self.look(&mut run) => observed,
            };
            let rest = match observed {
                Ok(look) => self.reconcile(&mut run, &look).await,
                Err(NotLeading::TimedOut(_)) => RETRY_DELAY,
                Err(NotLeading::Follower) => {
                    run = Run::default();
                    FOLLOWER_INTERVAL
                }
            };
            let change = tokio::select! {
                () = &mut stop => break,
                () = time::sleep(rest) => None,
                Some(change) = next(&mut run.changes) => Some(change),
            };
            run.log_state.watched(change);
        }
    }

    /// Reads the Secret and the targets, if this replica leads.
    async fn look(&self, run: &mut Run) -> Result<Look, NotLeading> {
        let limit = self.lifetimes.call();
        let look =
            async { tokio::join!(self.clients.ca_set(limit), self.clients.targets_state(limit)) };
        // Each call has its own limit; the term may end before.
        let (ca_set, targets) = self.mandate.run(limit.saturating_mul(2), look).await?;
        if run.changes.is_none() {
            run.changes = Some(self.changes());
        }
        Ok(Look { ca_set, targets })
    }

    /// Decides, does, tells; answers how long to rest.
    async fn reconcile(&self, run: &mut Run, look: &Look) -> Duration {
        self.report_looked(run, look);
        let secret_state = &look.ca_set.secret_state;
        let targets_state: Vec<TargetState> =
            look.targets.iter().map(|it| it.state.clone()).collect();
        let (now, wall) = (self.clock.now(), clock::wall());
        let memory = std::mem::take(&mut run.memory).look(secret_state, &targets_state, now);
        let seen = ObservedState {
            lifetimes: &self.lifetimes,
            wall,
            now,
            secret_state,
            targets: &targets_state,
            memory: &memory,
        };
        let plan = decide(&seen);
        self.report_plan(run, plan, secret_state);
        let outcome = self.act(run, &seen, plan, look).await;
        let rest = match outcome {
            None | Some(Outcome::Refused) => rest(&seen, plan),
            Some(Outcome::Written | Outcome::Late | Outcome::Unknown) => RETRY_DELAY,
        };
        run.memory = match (outcome, secret_state) {
            (Some(outcome), SecretState::Found { ca_set, invalid: _ }) => {
                after_write(memory.clone(), plan, outcome, ca_set.bundle(), self.clock.now())
            }
            (None, _) | (_, SecretState::NotFound | SecretState::Unknown(_)) => memory.clone(),
        };
        rest
    }

    fn changes(&self) -> ChangeStream {
        let secret = self.clients.authorities.changes();
        let targets = self.clients.trust.changes(&self.clients.targets);
        notify::merge(secret.into_iter().chain(targets))
    }

    /// Performs the plan's write, if it has one.
    async fn act(
        &self,
        run: &mut Run,
        seen: &ObservedState<'_>,
        plan: Plan,
        look: &Look,
    ) -> Option<Outcome> {
        let SecretState::Found { ca_set, invalid: _ } = seen.secret_state else {
            return None;
        };
        let written = match plan.step {
            Step::Wait => return None,
            Step::InjectBundle(place) => {
                self.inject(place, ca_set, look.targets.get(place)?).await?
            }
            Step::CreateCa
            | Step::StageNextCa
            | Step::RepairSecret
            | Step::ActivateNextCa
            | Step::RecordRotationTime
            | Step::RemovePreviousCa => {
                let fresh = || issue::authority(&self.lifetimes, seen.wall);
                let ca_set = apply(seen, ca_set, plan, fresh);
                let ca_set = ca_set.inspect_err(|error| run.log_state.unmade(error)).ok()??;
                self.replace(&secret::replaced(look.ca_set.secret.as_ref()?, &ca_set)).await
            }
        };
        Some(self.report_written(run, plan, written))
    }

    async fn inject(
        &self,
        place: usize,
        ca_set: &CaSet,
        observed: &ObservedTarget,
    ) -> Option<Written> {
        let (target, found) = (self.clients.targets.get(place)?, observed.found.as_ref()?);
        let (hooks, bundle) = (self.clients.ours(found), ca_set.bundle());
        let injection = Injection { target, found, hooks, bundle };
        let limit = self.lifetimes.call();
        let call = self.clients.trust.inject(&injection, limit);
        Some(self.mandate.run(limit, call).await)
    }

    async fn replace(&self, secret: &Secret) -> Written {
        let limit = self.lifetimes.call();
        let call = self.clients.authorities.replace(secret, limit);
        self.mandate.run(limit, call).await.map(|written| written.map(|_| ()))
    }
}

/// The next change, once somebody watches.
async fn next(changes: &mut Option<ChangeStream>) -> Option<ChangeEvent> {
    match changes {
        Some(changes) => changes.next().await,
        None => std::future::pending().await,
    }
}

const fn outcome(class: ErrorClass) -> Outcome {
    match class {
        // Gone, or another of the same name is there.
        ErrorClass::NotFound | ErrorClass::Conflict => Outcome::Late,
        ErrorClass::Rejected => Outcome::Refused,
        ErrorClass::ServerError | ErrorClass::Unreachable => Outcome::Unknown,
    }
}
