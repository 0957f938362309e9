//! Reports CA rotation: metrics, and one log line per change. No line contains key material.

use super::{CaRotation, Observation, RotationRun, WriteResult, write_failure};
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

/// What was logged last, so that each change is logged once.
#[derive(Default)]
pub(super) struct RotationLog {
    reason: Option<Reason>,
    read_error: Option<ErrorClass>,
    write_error: Option<ErrorClass>,
    watch_rejected: bool,
    issue_failed: bool,
    targets: Vec<Option<TargetLabel>>,
}

/// The state of a target as the metric's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TargetLabel {
    Managed,
    Foreign,
    Missing,
    Unknown,
}

impl TargetLabel {
    const ALL: [Self; 4] = [Self::Managed, Self::Foreign, Self::Missing, Self::Unknown];

    const fn from_state(state: &TargetState) -> Self {
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

impl RotationLog {
    pub(super) fn issue_failed(&mut self, error: &IssueError) {
        if !std::mem::replace(&mut self.issue_failed, true) {
            tracing::error!(error = error_chain(error), "failed to issue a webhook CA; retrying");
        }
    }

    /// Without the watch, changes are observed later, by polling. A broken watch is restarted.
    pub(super) fn watch_event(&mut self, change: Option<ChangeEvent>) {
        if let Some(Err(ErrorClass::Rejected)) = change
            && !std::mem::replace(&mut self.watch_rejected, true)
        {
            tracing::warn!(
                "the Kubernetes API rejects a watch of the webhook CA secret or of an object with \
                 its caBundle; polling every minute instead"
            );
        }
    }
}

impl CaRotation {
    pub(super) fn report_plan(
        &self,
        run: &mut RotationRun,
        plan: Plan,
        secret_state: &SecretState,
    ) {
        let reason = plan.reason.name();
        if run.log.reason.replace(plan.reason) == Some(plan.reason) {
            return;
        }
        match plan.reason {
            Reason::CurrentCaMissing | Reason::SecretInvalid | Reason::NoCa => {
                self.report_invalid_secret(plan, secret_state);
            }
            Reason::CurrentInvalid | Reason::NextInvalid => tracing::warn!(
                reason,
                step = ?plan.step,
                "a webhook CA is outside its validity period; check the clock of this node"
            ),
            Reason::WriteReverted => tracing::warn!(
                reason,
                "a write to the webhook CA secret or to a caBundle was reverted or rejected; check \
                 for other controllers that write there"
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
                tracing::info!(reason, step = ?plan.step, "webhook CA decision");
            }
        }
    }

    /// At error level: another writer has broken the Secret.
    fn report_invalid_secret(&self, plan: Plan, secret_state: &SecretState) {
        let (reason, secret) = (plan.reason.name(), self.secret());
        let SecretState::Found { ca_set: _, invalid } = secret_state else { return };
        for entry in invalid {
            let (key, error) = (entry.key, entry.error.to_string());
            tracing::error!(secret, key, error, "the webhook CA secret has an invalid entry");
        }
        tracing::error!(
            reason,
            secret,
            step = ?plan.step,
            "repairing the webhook CA secret; CAs that can still be parsed stay trusted"
        );
    }

    pub(super) fn report_observation(&self, run: &mut RotationRun, observation: &Observation) {
        let Observation { ca_set, targets: observed } = observation;
        let class = ca_set.error.as_ref().map(ApiError::class);
        let before = std::mem::replace(&mut run.log.read_error, class);
        if let Some(error) = ca_set.error.as_ref().filter(|_| before != class) {
            tracing::warn!(
                error = error_chain(error),
                "the leader cannot read the webhook CA secret; retrying"
            );
        }
        run.log.targets.resize(observed.len(), None);
        let targets = self.clients.targets.iter().zip(observed).zip(&mut run.log.targets);
        for ((target, observed), logged) in targets {
            let label = TargetLabel::from_state(&observed.state);
            if logged.replace(label) != Some(label) {
                self.report_target(target, observed, label);
            }
        }
        for label in TargetLabel::ALL {
            let count = run.log.targets.iter().filter(|logged| **logged == Some(label)).count();
            self.metrics.certificates.targets(label.name(), count);
        }
    }

    fn report_target(&self, target: &Target, observed: &ObservedTarget, label: TargetLabel) {
        let (kind, name) = (target.kind(), target.name());
        let service = format!("{}/{}", self.clients.namespace(), names::WEBHOOK_SERVICE);
        match label {
            TargetLabel::Managed => {
                tracing::info!(kind, name, "this operator manages the caBundle of the object");
            }
            TargetLabel::Foreign => tracing::warn!(
                kind,
                name,
                service,
                "the object does not use this webhook service; its caBundle is not managed"
            ),
            TargetLabel::Missing => tracing::warn!(
                kind,
                name,
                "the object does not exist; its caBundle is injected once it is created"
            ),
            TargetLabel::Unknown => {
                let error =
                    observed.error.as_ref().map(|error| error_chain(error)).unwrap_or_default();
                tracing::warn!(
                    kind,
                    name,
                    error,
                    "cannot read the caBundle of the object; check that the ClusterRole permits get"
                );
            }
        }
    }

    /// Counts and logs a write; returns its outcome.
    pub(super) fn report_write(
        &self,
        run: &mut RotationRun,
        plan: Plan,
        result: WriteResult,
    ) -> Outcome {
        let reason = plan.reason.name();
        let error = match result {
            Ok(Ok(())) => {
                run.log.write_error = None;
                run.log.issue_failed = false;
                self.report_written(plan);
                return Outcome::Written;
            }
            Ok(Err(error)) => error,
            Err(NotLeading::Follower) => return Outcome::Conflict,
            Err(NotLeading::TimedOut(_)) => {
                tracing::warn!(reason, "outcome of the write is unknown; reading again");
                return Outcome::Unknown;
            }
        };
        let class = error.class();
        if run.log.write_error.replace(class) != Some(class) {
            log_write_error(plan, class, &error_chain(&error));
        }
        write_failure(class)
    }

    fn report_written(&self, plan: Plan) {
        let reason = plan.reason.name();
        self.metrics.certificates.step(reason);
        if let Step::InjectBundle(index) = plan.step
            && let Some(target) = self.clients.targets.get(index)
        {
            let (kind, name) = (target.kind(), target.name());
            self.metrics.certificates.injected(kind);
            tracing::info!(kind, name, "caBundle injected");
        } else {
            tracing::info!(reason, step = ?plan.step, "webhook CA secret updated");
        }
    }

    fn secret(&self) -> String {
        format!("{}/{}", self.clients.namespace(), names::WEBHOOK_CA_SECRET)
    }
}

fn log_write_error(plan: Plan, class: ErrorClass, error: &str) {
    let reason = plan.reason.name();
    match class {
        ErrorClass::NotFound | ErrorClass::Conflict => {
            tracing::debug!(reason, error, "object changed since it was read");
        }
        ErrorClass::Rejected => tracing::warn!(
            reason,
            error,
            "the Kubernetes API rejects a write to the webhook CA secret or to a caBundle; check \
             that the Role permits update on the secret, and the ClusterRole patch on CRDs and \
             webhook configurations"
        ),
        ErrorClass::ServerError | ErrorClass::Unreachable => {
            tracing::warn!(reason, error, "outcome of the write is unknown; reading again");
        }
    }
}
