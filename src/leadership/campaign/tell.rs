//! What the election tells: the watch, the metric, the gates, and one log line for each change.
//! Comes in: decisions and failures. Goes out: words, each said once until something else is true.
//! May touch: `telemetry` and the watch. A pass that changes nothing says nothing.

use super::{Campaign, Run};
use crate::api::leadership::Leadership;
use crate::leadership::decide::{Plan, Step};
use crate::leadership::seen::{Reading, Unread};
use crate::leadership::settle::Outcome;
use crate::leadership::standing::Begin;
use crate::ports::lease::{Class, LeaseError};
use crate::telemetry::{Gate, chain};

impl Campaign {
    /// Tells everyone who waits for it, and the log if it is a change.
    pub(super) fn tell(&self, leads: Leadership) {
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

    /// As [`Campaign::tell`], when the end was asked for: nothing is wrong then.
    pub(super) fn tell_resigned(&self) {
        if let Leadership::Leading { .. } = self.publish(Leadership::Following) {
            tracing::info!(identity = self.identity, "this replica no longer leads");
        }
    }

    /// Answers what was told before.
    fn publish(&self, leads: Leadership) -> Leadership {
        self.metrics.leads(matches!(leads, Leadership::Leading { .. }));
        self.told.send_replace(leads)
    }

    /// The gate opens when the API server lets us do our part, and not when it merely answers.
    pub(super) fn tell_gates(&self, reading: &Reading, outcome: &Outcome) {
        match (reading, outcome) {
            (Reading::Unknown(Unread::Refused), _) | (_, Outcome::Refused) => {
                self.gates.refused(Gate::KubernetesApi);
            }
            (Reading::Unknown(Unread::Unanswered), _) => {}
            (
                Reading::Found(_) | Reading::Absent,
                Outcome::NothingToWrite
                | Outcome::Written { .. }
                | Outcome::Conflict
                | Outcome::Gone
                | Outcome::Unknown,
            ) => self.gates.open(Gate::KubernetesApi),
        }
    }

    /// One line for each change of mind; every pass would be a line every other second.
    pub(super) fn tell_plan(&self, run: &mut Run, plan: Plan, reading: &Reading) {
        if run.decided.replace(plan.because) == Some(plan.because) {
            return;
        }
        let holder = match reading {
            Reading::Found(record) => record.holder.as_deref().unwrap_or_default(),
            Reading::Absent | Reading::Unknown(_) => "",
        };
        let on_probation = match plan.step {
            Step::Create { .. } => true,
            Step::Take { begin, .. } => begin == Begin::OnProbation,
            Step::Wait | Step::Renew | Step::StepDown { .. } => false,
        };
        tracing::info!(
            identity = self.identity,
            because = plan.because.name(),
            step = ?plan.step,
            holder,
            on_probation,
            "lease decision"
        );
    }

    pub(super) fn tell_unread(&self, run: &mut Run, error: &LeaseError) {
        let class = error.class();
        let (identity, error) = (self.identity.as_str(), chain(error));
        if run.unread.replace(class) == Some(class) {
            tracing::debug!(identity, error, "the lease can still not be read");
            return;
        }
        match class {
            Class::NotFound => {}
            Class::Refused => tracing::warn!(
                identity,
                error,
                "the Kubernetes API refuses to show the lease; does the Role with its RoleBinding \
                 stand, and is the account's token good?"
            ),
            Class::Conflict | Class::Unwell => tracing::warn!(
                identity,
                error,
                "the Kubernetes API answers with an error; will try again"
            ),
            Class::Unreachable => {
                tracing::warn!(identity, error, "cannot reach the Kubernetes API; will try again");
            }
        }
    }

    pub(super) fn tell_unwritten(&self, run: &mut Run, error: &LeaseError) {
        let class = error.class();
        let (identity, error) = (self.identity.as_str(), chain(error));
        if run.unwritten.replace(class) == Some(class) {
            tracing::debug!(identity, error, "the lease can still not be written");
            return;
        }
        match class {
            // Two replicas tried at once, and the other one was faster.
            Class::Conflict => tracing::debug!(identity, error, "the lease had changed"),
            Class::Refused | Class::NotFound => tracing::warn!(
                identity,
                error,
                "the Kubernetes API refuses to write the lease; do the namespace and the Role \
                 with its RoleBinding stand?"
            ),
            Class::Unwell | Class::Unreachable => tracing::warn!(
                identity,
                error,
                "it is not known whether the lease was written; will look again"
            ),
        }
    }

    pub(super) fn tell_unreleased(&self, error: &LeaseError) {
        let error = chain(error);
        tracing::warn!(identity = self.identity, error, "lease left to expire");
    }
}
