//! What a replica tells of its certificate: metrics, and one log line for each change.
//! Comes in: decisions and failures. Goes out: words, each said once until something else is true.
//! May touch: `telemetry`. No line holds a key, nor anything that was read beside dates.

use jiff::Timestamp;

use super::{Run, ServingCertificate};
use crate::api::names;
use crate::clients::error::{ApiError, ErrorClass};
use crate::clients::notify::ChangeEvent;
use crate::telemetry::error_chain;
use crate::webhook_certs::issue::IssueError;
use crate::webhook_certs::leaf::{Leaf, LeafPlan, Reason};
use crate::webhook_certs::observe::{ObservedCaSet, ObservedTarget};

/// What was last said, so that each is said once.
#[derive(Default)]
pub(super) struct LogState {
    decided: Option<Reason>,
    unread: Option<ErrorClass>,
    uncreated: Option<ErrorClass>,
    unwatched: bool,
    unmade: bool,
    untrusted: Vec<Option<ErrorClass>>,
}

impl LogState {
    pub(super) fn plan(&mut self, plan: LeafPlan, has_leaf: bool) {
        if self.decided.replace(plan.reason) == Some(plan.reason) {
            return;
        }
        let reason = plan.reason.name();
        match plan.reason {
            Reason::CaUnconfirmed if has_leaf => tracing::warn!(
                reason,
                "the webhook authorities were not read for too long; the certificate is kept as it is"
            ),
            Reason::NoCa => tracing::warn!(
                reason,
                "no webhook authority can sign at present; waiting for the leader to make one"
            ),
            Reason::SecretMissing
            | Reason::CaUnconfirmed
            | Reason::FirstIssue
            | Reason::CaChanged
            | Reason::LeafInvalid
            | Reason::RenewalDue
            | Reason::UpToDate => tracing::debug!(reason, "webhook certificate decision"),
        }
    }

    pub(super) fn signed(&mut self, plan: LeafPlan, leaf: &Leaf) {
        self.unmade = false;
        let reason = plan.reason.name();
        tracing::info!(reason, until = %leaf.until, "webhook certificate signed");
    }

    pub(super) fn unmade(&mut self, error: &IssueError) {
        if !std::mem::replace(&mut self.unmade, true) {
            tracing::error!(error = error_chain(error), "failed to make a webhook certificate");
        }
    }
}

impl ServingCertificate {
    pub(super) fn report_created(&self, run: &mut Run) {
        run.log_state.uncreated = None;
        tracing::info!(secret = self.secret(), "webhook authorities made");
    }

    pub(super) fn report_looked(&self, run: &mut Run, observed: &ObservedCaSet) {
        let Some(error) = &observed.failed else {
            run.log_state.unread = None;
            return;
        };
        let class = error.class();
        if run.log_state.unread.replace(class) != Some(class) {
            self.report_failed(error, "get");
        }
    }

    pub(super) fn report_uncreated(&self, run: &mut Run, error: &ApiError) {
        let class = error.class();
        if run.log_state.uncreated.replace(class) != Some(class) {
            self.report_failed(error, "create");
        }
        if matches!(class, ErrorClass::Rejected | ErrorClass::NotFound) {
            self.gates.forbidden(crate::telemetry::Gate::Certificate);
        }
    }

    fn report_failed(&self, error: &ApiError, verb: &'static str) {
        let (secret, class, error) = (self.secret(), error.class(), error_chain(error));
        match class {
            ErrorClass::Rejected | ErrorClass::NotFound => tracing::warn!(
                secret,
                verb,
                error,
                "the Kubernetes API refuses us the webhook authorities; does the Role allow this \
                 verb on this secret, and does its RoleBinding name our account?"
            ),
            ErrorClass::Conflict | ErrorClass::ServerError | ErrorClass::Unreachable => {
                tracing::warn!(
                    secret,
                    verb,
                    error,
                    "the Kubernetes API does not answer about the webhook authorities; will try again"
                );
            }
        }
    }

    /// Without the watch everything still works, only later. One that breaks begins again.
    pub(super) fn report_watched(&self, run: &mut Run, change: ChangeEvent) {
        if change == Err(ErrorClass::Rejected)
            && !std::mem::replace(&mut run.log_state.unwatched, true)
        {
            tracing::warn!(
                secret = self.secret(),
                "the Kubernetes API refuses to watch the webhook authorities; looking every \
                 minute instead"
            );
        }
    }

    pub(super) fn report_targets(&self, run: &mut Run, observed: &[ObservedTarget]) {
        run.log_state.untrusted.resize(observed.len(), None);
        let targets = self.clients.targets.iter().zip(observed).zip(&mut run.log_state.untrusted);
        for ((target, observed), log_state) in targets {
            let class = observed.failed.as_ref().map(ApiError::class);
            let before = std::mem::replace(log_state, class);
            if let Some(error) = observed.failed.as_ref().filter(|_| before != class) {
                tracing::warn!(
                    kind = target.kind(),
                    name = target.name(),
                    error = error_chain(error),
                    "cannot see whether the API server trusts the webhook certificate; does the \
                     ClusterRole allow to get this object?"
                );
            }
        }
    }

    pub(super) fn report_expiry(&self, run: &Run) {
        let log_state = &self.metrics.certificates;
        log_state.expires("leaf", run.replica.leaf.as_ref().map(|leaf| leaf.until));
        let Some((ca_set, _)) = &run.replica.ca_set else { return };
        let until = |it: &Option<crate::pki::ca::CertificateAuthority>| -> Option<Timestamp> {
            it.as_ref().map(|authority| authority.certificate.until)
        };
        log_state.expires("current", until(&ca_set.current));
        log_state.expires("next", until(&ca_set.next));
        log_state.expires("previous", ca_set.previous.iter().map(|it| it.until).max());
    }

    fn secret(&self) -> String {
        format!("{}/{}", self.clients.namespace(), names::WEBHOOK_CA_SECRET)
    }
}
