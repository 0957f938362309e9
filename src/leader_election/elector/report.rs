//! Reports the election: the watch channel, the metric, readiness gates, and one log line per
//! change. A reconciliation that changes nothing logs nothing.

use super::{ElectionRun, LeaderElector};
use crate::api::leadership::Leadership;
use crate::clients::error::{ApiError, ErrorClass};
use crate::leader_election::decide::{Plan, Step};
use crate::leader_election::role::LeadFrom;
use crate::leader_election::state::{LeaseState, ReadFailure};
use crate::leader_election::transition::Outcome;
use crate::telemetry::{Gate, error_chain};

impl LeaderElector {
    /// Publishes leadership, and logs a change.
    pub(super) fn report(&self, leads: Leadership) {
        match (self.publish(leads), leads) {
            (Leadership::Following, Leadership::Leading { .. }) => {
                tracing::info!(identity = self.identity, "this replica leads");
            }
            (Leadership::Leading { .. }, Leadership::Following) => {
                tracing::warn!(identity = self.identity, "this replica no longer leads");
            }
            (Leadership::Following, Leadership::Following)
            | (Leadership::Leading { .. }, Leadership::Leading { .. }) => {}
        }
    }

    /// As [`LeaderElector::report`] during a shutdown, where losing the lead is expected.
    pub(super) fn report_shutdown(&self) {
        if let Leadership::Leading { .. } = self.publish(Leadership::Following) {
            tracing::info!(identity = self.identity, "this replica no longer leads");
        }
    }

    /// Returns the value published before.
    fn publish(&self, leads: Leadership) -> Leadership {
        self.metrics.leads(matches!(leads, Leadership::Leading { .. }));
        self.leadership.send_replace(leads)
    }

    /// The gate opens when the API server permits the election, not when it merely responds.
    pub(super) fn report_gates(&self, lease_state: &LeaseState, outcome: &Outcome) {
        match (lease_state, outcome) {
            (LeaseState::Unknown(ReadFailure::Forbidden), _) | (_, Outcome::Forbidden) => {
                self.gates.forbidden(Gate::KubernetesApi);
            }
            (LeaseState::Unknown(ReadFailure::NoResponse), _) => {}
            (
                LeaseState::Found(_) | LeaseState::NotFound,
                Outcome::NoWrite
                | Outcome::Written { .. }
                | Outcome::Conflict
                | Outcome::NotFound
                | Outcome::Unknown,
            ) => self.gates.open(Gate::KubernetesApi),
        }
    }

    /// One line per changed decision; one per reconciliation would be a line every other second.
    pub(super) fn report_plan(&self, run: &mut ElectionRun, plan: Plan, lease_state: &LeaseState) {
        if run.logged_reason.replace(plan.reason) == Some(plan.reason) {
            return;
        }
        let holder = match lease_state {
            LeaseState::Found(record) => record.holder.as_deref().unwrap_or_default(),
            LeaseState::NotFound | LeaseState::Unknown(_) => "",
        };
        let on_probation = match plan.step {
            Step::Create { .. } => true,
            Step::Acquire { lead_from, .. } => lead_from == LeadFrom::AfterProbation,
            Step::Wait | Step::Renew | Step::StepDown { .. } => false,
        };
        tracing::info!(
            identity = self.identity,
            reason = plan.reason.name(),
            step = ?plan.step,
            holder,
            on_probation,
            "lease decision"
        );
    }

    pub(super) fn report_read_error(&self, run: &mut ElectionRun, error: &ApiError) {
        let class = error.class();
        let (identity, error) = (self.identity.as_str(), error_chain(error));
        if run.logged_read_error.replace(class) == Some(class) {
            tracing::debug!(identity, error, "lease still cannot be read");
            return;
        }
        match class {
            ErrorClass::NotFound => {}
            ErrorClass::Rejected => tracing::warn!(
                identity,
                error,
                "the Kubernetes API rejects reading the lease; check the operator's Role, \
                 RoleBinding and service account token"
            ),
            ErrorClass::Conflict | ErrorClass::ServerError => {
                tracing::warn!(identity, error, "reading the lease failed; retrying");
            }
            ErrorClass::Unreachable => {
                tracing::warn!(identity, error, "cannot reach the Kubernetes API; retrying");
            }
        }
    }

    pub(super) fn report_write_error(&self, run: &mut ElectionRun, error: &ApiError) {
        let class = error.class();
        let (identity, error) = (self.identity.as_str(), error_chain(error));
        if run.logged_write_error.replace(class) == Some(class) {
            tracing::debug!(identity, error, "lease still cannot be written");
            return;
        }
        match class {
            // Two replicas wrote at once, and the other one was first.
            ErrorClass::Conflict => {
                tracing::debug!(identity, error, "lease changed since it was read");
            }
            ErrorClass::Rejected | ErrorClass::NotFound => tracing::warn!(
                identity,
                error,
                "the Kubernetes API rejects writing the lease; check that the namespace exists and \
                 the operator's Role and RoleBinding"
            ),
            ErrorClass::ServerError | ErrorClass::Unreachable => tracing::warn!(
                identity,
                error,
                "outcome of the lease write is unknown; reading the lease again"
            ),
        }
    }

    pub(super) fn report_release_error(&self, error: &ApiError) {
        let error = error_chain(error);
        tracing::warn!(
            identity = self.identity,
            error,
            "lease not released; other replicas wait for its expiry"
        );
    }
}
