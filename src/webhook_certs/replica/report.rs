//! Reports the serving certificate: metrics, and one log line per change. No line contains key
//! material.

use jiff::Timestamp;

use super::{ReplicaRun, ServingCertificate};
use crate::api::names;
use crate::clients::error::{ApiError, ErrorClass};
use crate::clients::notify::ChangeEvent;
use crate::pki::ca::CertificateAuthority;
use crate::telemetry::{Gate, error_chain};
use crate::webhook_certs::issue::IssueError;
use crate::webhook_certs::leaf::{Leaf, LeafPlan, LeafReason};
use crate::webhook_certs::observe::{ObservedCaSet, ObservedTarget};

/// What was logged last, so that each change is logged once.
#[derive(Default)]
pub(super) struct ReplicaLog {
    reason: Option<LeafReason>,
    read_error: Option<ErrorClass>,
    create_error: Option<ErrorClass>,
    watch_rejected: bool,
    issue_failed: bool,
    target_errors: Vec<Option<ErrorClass>>,
}

impl ReplicaLog {
    pub(super) fn plan(&mut self, plan: LeafPlan, has_leaf: bool) {
        if self.reason.replace(plan.reason) == Some(plan.reason) {
            return;
        }
        let reason = plan.reason.name();
        match plan.reason {
            LeafReason::CaUnconfirmed if has_leaf => tracing::warn!(
                reason,
                "the webhook CA secret could not be read for too long; the serving certificate is \
                 not renewed until a read succeeds"
            ),
            LeafReason::NoCa => {
                tracing::warn!(reason, "no valid webhook CA; waiting for the leader to create one");
            }
            LeafReason::SecretMissing
            | LeafReason::CaUnconfirmed
            | LeafReason::FirstIssue
            | LeafReason::CaChanged
            | LeafReason::LeafInvalid
            | LeafReason::RenewalDue
            | LeafReason::UpToDate => tracing::debug!(reason, "webhook certificate decision"),
        }
    }

    pub(super) fn issued(&mut self, plan: LeafPlan, leaf: &Leaf) {
        self.issue_failed = false;
        let reason = plan.reason.name();
        tracing::info!(reason, until = %leaf.until, "webhook certificate issued");
    }

    pub(super) fn issue_failed(&mut self, error: &IssueError) {
        if !std::mem::replace(&mut self.issue_failed, true) {
            tracing::error!(
                error = error_chain(error),
                "failed to issue a webhook certificate; retrying"
            );
        }
    }
}

impl ServingCertificate {
    pub(super) fn report_created(&self, run: &mut ReplicaRun) {
        run.log.create_error = None;
        tracing::info!(secret = self.secret(), "webhook CA secret created");
    }

    pub(super) fn report_observation(&self, run: &mut ReplicaRun, observed: &ObservedCaSet) {
        let Some(error) = &observed.error else {
            run.log.read_error = None;
            return;
        };
        let class = error.class();
        if run.log.read_error.replace(class) != Some(class) {
            self.report_failed(error, "get");
        }
    }

    pub(super) fn report_create_failed(&self, run: &mut ReplicaRun, error: &ApiError) {
        let class = error.class();
        if run.log.create_error.replace(class) != Some(class) {
            self.report_failed(error, "create");
        }
        if matches!(class, ErrorClass::Rejected | ErrorClass::NotFound) {
            self.gates.forbidden(Gate::Certificate);
        }
    }

    fn report_failed(&self, error: &ApiError, verb: &'static str) {
        let (secret, class, error) = (self.secret(), error.class(), error_chain(error));
        match class {
            ErrorClass::Rejected | ErrorClass::NotFound => tracing::warn!(
                secret,
                verb,
                error,
                "the Kubernetes API rejects access to the webhook CA secret; check that the Role \
                 permits this verb, and that its RoleBinding names the operator's service account"
            ),
            ErrorClass::Conflict | ErrorClass::ServerError | ErrorClass::Unreachable => {
                tracing::warn!(
                    secret,
                    verb,
                    error,
                    "a request for the webhook CA secret failed; retrying"
                );
            }
        }
    }

    /// Without the watch, changes are observed later, by polling. A broken watch is restarted.
    pub(super) fn report_watch_event(&self, run: &mut ReplicaRun, change: ChangeEvent) {
        if change == Err(ErrorClass::Rejected)
            && !std::mem::replace(&mut run.log.watch_rejected, true)
        {
            tracing::warn!(
                secret = self.secret(),
                "the Kubernetes API rejects a watch of the webhook CA secret; polling every minute \
                 instead"
            );
        }
    }

    pub(super) fn report_targets(&self, run: &mut ReplicaRun, observed: &[ObservedTarget]) {
        run.log.target_errors.resize(observed.len(), None);
        let targets = self.clients.targets.iter().zip(observed).zip(&mut run.log.target_errors);
        for ((target, observed), logged) in targets {
            let class = observed.error.as_ref().map(ApiError::class);
            let before = std::mem::replace(logged, class);
            if let Some(error) = observed.error.as_ref().filter(|_| before != class) {
                tracing::warn!(
                    kind = target.kind(),
                    name = target.name(),
                    error = error_chain(error),
                    "cannot read the caBundle of the object; check that the ClusterRole permits get"
                );
            }
        }
    }

    pub(super) fn report_expiry(&self, run: &ReplicaRun) {
        let metrics = &self.metrics.certificates;
        metrics.expires("leaf", run.state.leaf.as_ref().map(|leaf| leaf.until));
        let Some((ca_set, _)) = &run.state.ca_set else { return };
        let until = |ca: &Option<CertificateAuthority>| -> Option<Timestamp> {
            ca.as_ref().map(|ca| ca.certificate.until)
        };
        metrics.expires("current", until(&ca_set.current));
        metrics.expires("next", until(&ca_set.next));
        metrics.expires("previous", ca_set.previous.iter().map(|ca| ca.until).max());
    }

    fn secret(&self) -> String {
        format!("{}/{}", self.clients.namespace(), names::WEBHOOK_CA_SECRET)
    }
}
