//! What the leader tells of the authorities: metrics, and one log line for each change.
//! Comes in: decisions, writes and failures. Goes out: words, each said once until something else is
//! true. May touch: `telemetry`. No line holds a key, nor anything that was read beside dates.

use super::{CaRotation, Look, Run, Written, outcome};
use crate::api::names;
use crate::clients::ca_bundles::Target;
use crate::clients::error::{ApiError, ErrorClass};
use crate::clients::leader_guard::NotLeading;
use crate::clients::notify::ChangeEvent;
use crate::telemetry::error_chain;
use crate::webhook_certs::apply::Outcome;
use crate::webhook_certs::decide::{Plan, Reason, Step};
use crate::webhook_certs::issue::IssueError;
use crate::webhook_certs::observe::ObservedTarget;
use crate::webhook_certs::state::{SecretState, TargetState};

/// What was last said, so that each is said once.
#[derive(Default)]
pub(super) struct LogState {
    decided: Option<Reason>,
    unread: Option<ErrorClass>,
    unwritten: Option<ErrorClass>,
    unwatched: bool,
    unmade: bool,
    targets: Vec<Option<State>>,
}

/// How a target stands, in the words of the metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Managed,
    Foreign,
    Missing,
    Unknown,
}

impl State {
    const ALL: [Self; 4] = [Self::Managed, Self::Foreign, Self::Missing, Self::Unknown];

    const fn of(state: &TargetState) -> Self {
        match state {
            TargetState::Managed { .. } => Self::Managed,
            TargetState::NotOurs => Self::Foreign,
            TargetState::NotFound => Self::Missing,
            TargetState::Unknown(_) => Self::Unknown,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Foreign => "foreign",
            Self::Missing => "missing",
            Self::Unknown => "unknown",
        }
    }
}

impl LogState {
    pub(super) fn unmade(&mut self, error: &IssueError) {
        if !std::mem::replace(&mut self.unmade, true) {
            tracing::error!(error = error_chain(error), "failed to make a webhook authority");
        }
    }

    /// Without the watch everything still works, only later. One that breaks begins again.
    pub(super) fn watched(&mut self, change: Option<ChangeEvent>) {
        if let Some(Err(ErrorClass::Rejected)) = change
            && !std::mem::replace(&mut self.unwatched, true)
        {
            tracing::warn!(
                "the Kubernetes API refuses a watch of the webhook authorities or of what trusts \
                 them; looking every minute instead"
            );
        }
    }
}

impl CaRotation {
    pub(super) fn report_plan(&self, run: &mut Run, plan: Plan, secret_state: &SecretState) {
        let reason = plan.reason.name();
        if run.log_state.decided.replace(plan.reason) == Some(plan.reason) {
            return;
        }
        match plan.reason {
            Reason::CurrentCaMissing | Reason::SecretInvalid | Reason::NoCa => {
                self.report_damage(plan, secret_state);
            }
            Reason::CurrentInvalid | Reason::NextInvalid => tracing::warn!(
                reason,
                step = ?plan.step,
                "a webhook authority is not valid at this time; is the clock of this node right?"
            ),
            Reason::WriteReverted => tracing::warn!(
                reason,
                "a write about the webhook authorities was undone or refused; who else writes there?"
            ),
            Reason::SecretUnreadable
            | Reason::SecretForbidden
            | Reason::SecretMissing
            | Reason::CaRenewalDue
            | Reason::BundleMissing
            | Reason::TargetUnknown
            | Reason::Propagating
            | Reason::PreviousCaInUse
            | Reason::Propagated
            | Reason::RotationTimeMissing
            | Reason::PreviousCaUnused
            | Reason::UpToDate => {
                tracing::info!(reason, step = ?plan.step, "webhook authorities decision");
            }
        }
    }

    /// Loudly: somebody or something has broken the Secret.
    fn report_damage(&self, plan: Plan, secret_state: &SecretState) {
        let (reason, secret) = (plan.reason.name(), self.secret());
        let SecretState::Found { ca_set: _, invalid } = secret_state else { return };
        for invalid in invalid {
            let (place, why) = (invalid.place, invalid.why.to_string());
            tracing::error!(
                secret,
                place,
                why,
                "the secret with the webhook authorities is damaged"
            );
        }
        tracing::error!(
            reason,
            secret,
            step = ?plan.step,
            "mending the webhook authorities; what can still be read of them stays trusted"
        );
    }

    pub(super) fn report_looked(&self, run: &mut Run, look: &Look) {
        let Look { ca_set, targets: observed } = look;
        let class = ca_set.failed.as_ref().map(ApiError::class);
        let before = std::mem::replace(&mut run.log_state.unread, class);
        if let Some(error) = ca_set.failed.as_ref().filter(|_| before != class) {
            tracing::warn!(
                error = error_chain(error),
                "the leader cannot read the webhook authorities"
            );
        }
        run.log_state.targets.resize(observed.len(), None);
        let targets = self.clients.targets.iter().zip(observed).zip(&mut run.log_state.targets);
        for ((target, observed), log_state) in targets {
            let state = State::of(&observed.state);
            if log_state.replace(state) != Some(state) {
                self.report_target(target, observed, state);
            }
        }
        for state in State::ALL {
            let count = run.log_state.targets.iter().filter(|it| **it == Some(state)).count();
            self.metrics.certificates.targets(state.name(), count);
        }
    }

    fn report_target(&self, target: &Target, observed: &ObservedTarget, state: State) {
        let (kind, name) = (target.kind(), target.name());
        let service = format!("{}/{}", self.clients.namespace(), names::WEBHOOK_SERVICE);
        match state {
            State::Managed => {
                tracing::info!(kind, name, "the webhook authorities are cared for here");
            }
            State::Foreign => tracing::warn!(
                kind,
                name,
                service,
                "this object does not call our service; its caBundle is left alone"
            ),
            State::Missing => tracing::warn!(
                kind,
                name,
                "this object is not there; nobody is made to trust the webhook authorities for it"
            ),
            State::Unknown => {
                let error =
                    observed.failed.as_ref().map(|error| error_chain(error)).unwrap_or_default();
                tracing::warn!(
                    kind,
                    name,
                    error,
                    "cannot see what this object trusts; does the ClusterRole allow to get it?"
                );
            }
        }
    }

    /// Counts and tells a write; answers how it ended.
    pub(super) fn report_written(&self, run: &mut Run, plan: Plan, written: Written) -> Outcome {
        let reason = plan.reason.name();
        let error = match written {
            Ok(Ok(())) => {
                run.log_state.unwritten = None;
                run.log_state.unmade = false;
                self.report_done(plan);
                return Outcome::Written;
            }
            Ok(Err(error)) => error,
            Err(NotLeading::Follower) => return Outcome::Late,
            Err(NotLeading::TimedOut(_)) => {
                tracing::warn!(reason, "it is not known whether the leader's write was done");
                return Outcome::Unknown;
            }
        };
        let class = error.class();
        if run.log_state.unwritten.replace(class) != Some(class) {
            unwritten(plan, class, &error_chain(&error));
        }
        outcome(class)
    }

    fn report_done(&self, plan: Plan) {
        let reason = plan.reason.name();
        self.metrics.certificates.step(reason);
        if let Step::InjectBundle(place) = plan.step
            && let Some(target) = self.clients.targets.get(place)
        {
            let (kind, name) = (target.kind(), target.name());
            self.metrics.certificates.injected(kind);
            tracing::info!(kind, name, "bundle of webhook authorities written");
        } else {
            tracing::info!(reason, step = ?plan.step, "webhook authorities written");
        }
    }

    fn secret(&self) -> String {
        format!("{}/{}", self.clients.namespace(), names::WEBHOOK_CA_SECRET)
    }
}

fn unwritten(plan: Plan, class: ErrorClass, error: &str) {
    let reason = plan.reason.name();
    match class {
        ErrorClass::NotFound | ErrorClass::Conflict => {
            tracing::debug!(reason, error, "what was to be written had changed");
        }
        ErrorClass::Rejected => tracing::warn!(
            reason,
            error,
            "the Kubernetes API refuses a write about the webhook authorities; does the Role \
             allow to update the secret, and the ClusterRole to patch definitions and webhook \
             configurations?"
        ),
        ErrorClass::ServerError | ErrorClass::Unreachable => tracing::warn!(
            reason,
            error,
            "it is not known whether the webhook authorities were written; will look again"
        ),
    }
}
