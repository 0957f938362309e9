//! Reports a reconciliation: status, Events, metrics and logs; then computes when the next one is
//! due. A write that changes nothing is not made.

mod status_writer;

use kube::runtime::controller::Action;
use kube::runtime::events::{Event, EventType};

use super::act::ActError;
use super::controller::Context;
use super::plan::{Plan, Reason};
use super::reason::Severity;
use super::reconcile::{Outcome, ReconcileError, Reconciler, is_idle};
use super::requeue::{
    self, HEALTHY_INTERVAL, IDLE_INTERVAL, PROGRESS_DELAY, Progress, RETRY_DELAY,
};
use super::state::defragmentation::Quota;
use super::state::{ObservedState, Rollback};
use super::status::{self, StatusInput};
use super::tls::ca_set::RotationStep;
use super::tls::secrets_plan::CertificateError;
use super::tls::trust_state::TrustStep;
use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::etcd_cluster::v1::status::EtcdClusterStatus;
use crate::api::etcd_types::EndpointStatus;
use crate::api::validation::ValidationResult;
use crate::clients::clock;
use crate::clients::error::ErrorClass;
use crate::clients::objects::{NamespacedResource, ObjectError};
use crate::telemetry::{ClusterSample, error_chain};
pub(super) use status_writer::with_recorded_fields;
use status_writer::{write_cluster_status, write_member_status};

/// Reports a spec that fails validation. The members continue as they are.
pub(super) async fn invalid_spec(
    context: &Context,
    cluster: &EtcdCluster,
    errors: &ValidationResult,
) -> Result<Action, ReconcileError> {
    let status = status::invalid_spec(cluster, errors, clock::wall());
    write_status_only(context, cluster, &status, Action::requeue(IDLE_INTERVAL)).await
}

/// Writes a status that needed no observation.
async fn write_status_only(
    context: &Context,
    cluster: &EtcdCluster,
    status: &EtcdClusterStatus,
    action: Action,
) -> Result<Action, ReconcileError> {
    match write_cluster_status(&context.objects, cluster, status).await {
        Ok(_) => Ok(action),
        Err(error) if error.class() == ErrorClass::Conflict => Ok(Action::requeue(RETRY_DELAY)),
        Err(error) => Err(ReconcileError::UpdateStatus(error)),
    }
}

impl Reconciler<'_> {
    /// Reports that the operator has no certificate to connect to the members with. Their state is
    /// unknown, so nothing is reported about it.
    pub(super) async fn report_no_credentials(
        &self,
        cluster: &EtcdCluster,
        error: Option<CertificateError>,
        act_error: Option<&ActError>,
    ) -> Result<Action, ReconcileError> {
        let certificates = self.context.certificates.report(self.blueprint.uid);
        let error = error.or_else(|| certificates.problem.map(CertificateError::External));
        let is_awaited =
            matches!(&error, Some(CertificateError::External(problem)) if !problem.needs_user());
        let message = error.map(|error| error.to_string());
        let message = message.or_else(|| act_error.map(|error| error_chain(error)));
        let message = message.unwrap_or_default();
        let status = status::certificates_unavailable(cluster, &message, !is_awaited, self.now);
        let delay = if is_awaited { RETRY_DELAY } else { HEALTHY_INTERVAL };
        write_status_only(self.context, cluster, &status, Action::requeue(delay)).await
    }

    /// Logs, counts and records the Events of what was executed.
    pub(super) async fn report_execution(
        &self,
        plan: &Plan,
        state: &ObservedState,
        outcome: &Outcome,
    ) {
        let step = status::step_name(plan, state);
        let (namespace, cluster) = (self.blueprint.namespace, self.blueprint.name);
        let reason = plan.reason.name();
        let metrics = &self.context.metrics.etcd_clusters;
        for (member, error) in &outcome.rejected_pods {
            tracing::warn!(
                namespace,
                cluster,
                %member,
                error,
                "pod rejected by the API server; retrying"
            );
            metrics.reconcile_failed(reason);
        }
        if let Err(error) = &outcome.result {
            let error = error_chain(error);
            tracing::warn!(namespace, cluster, reason, step, error, "step failed; retrying");
            metrics.reconcile_failed(reason);
            return;
        }
        if is_idle(plan) {
            return;
        }
        tracing::info!(namespace, cluster, reason, step, "executed");
        if let Some(event) = plan.step.event() {
            metrics.operation(reason);
            let note = format!("{step}: {}", plan.reason.summary());
            self.emit_step_event(plan, state, outcome, (event, &note)).await;
        }
    }

    /// Records the Event of a step on the cluster, and on the EtcdMember that the step concerns.
    async fn emit_step_event(
        &self,
        plan: &Plan,
        state: &ObservedState,
        outcome: &Outcome,
        (event, note): (&str, &str),
    ) {
        let Some(objects) = &outcome.objects else { return };
        self.emit_event(&objects.cluster, plan.reason, event, note).await;
        let member = plan.step.member(state.etcd.known()).and_then(|name| objects.member(name));
        if let Some(member) = member {
            self.emit_event(member, plan.reason, event, note).await;
        }
    }

    /// Records the Events of a CA rotation and of a change of the trust bundle.
    pub(super) async fn report_rotation(
        &self,
        cluster: &EtcdCluster,
        rotation: &[RotationStep],
        trust: &[TrustStep],
    ) {
        let rotation = rotation.iter().filter_map(|step| Some((step.reason()?, step.message())));
        let trust = trust.iter().filter_map(|step| Some((step.reason()?, step.message())));
        for (reason, note) in rotation.chain(trust) {
            self.publish_event(cluster, EventType::Normal, reason, note).await;
        }
    }

    async fn emit_event<K: NamespacedResource>(
        &self,
        object: &K,
        cause: Reason,
        reason: &str,
        note: &str,
    ) {
        let kind = match cause.severity() {
            Severity::Warning => EventType::Warning,
            Severity::Normal => EventType::Normal,
        };
        self.publish_event(object, kind, reason, note).await;
    }

    async fn publish_event<K: NamespacedResource>(
        &self,
        object: &K,
        kind: EventType,
        reason: &str,
        note: &str,
    ) {
        let event = Event {
            type_: kind,
            reason: reason.to_owned(),
            note: Some(note.to_owned()),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        let reference = object.object_ref(&());
        let call = self.context.recorder.publish(&event, &reference);
        if let Ok(Err(error)) = self.context.leader_guard.run(RETRY_DELAY, call).await {
            tracing::debug!(error = error_chain(&error), "failed to write an Event");
        }
    }

    /// Writes the status and the metrics, and returns when the next reconciliation is due.
    pub(super) async fn publish(
        &self,
        input: &StatusInput<'_>,
        progress: Progress,
    ) -> Result<Action, ReconcileError> {
        let objects = &self.context.objects;
        let cluster = &input.inputs.objects.cluster;
        let (namespace, name) = (self.blueprint.namespace, self.blueprint.name);
        self.context.metrics.etcd_clusters.record(namespace, name, metrics_sample(input));
        let previous_reason = status::previous_ready_reason(cluster);
        let mut is_stale = false;
        let mut check = |result: Result<bool, ObjectError>| match result {
            Ok(written) => Ok(written),
            Err(error) if matches!(error.class(), ErrorClass::Conflict | ErrorClass::NotFound) => {
                is_stale = true;
                Ok(false)
            }
            Err(error) => Err(ReconcileError::UpdateStatus(error)),
        };
        let status = status::cluster_status(input);
        let written = check(write_cluster_status(objects, cluster, &status).await)?;
        for member in &input.inputs.objects.members {
            let status = status::member_status(input, member);
            check(write_member_status(objects, member, &status).await)?;
        }
        let reason = input.plan.reason;
        if written && previous_reason.as_deref() != Some(reason.name()) {
            self.emit_event(cluster, reason, reason.name(), &status::message(input)).await;
        }
        Ok(Action::requeue(match progress {
            Progress::Idle if is_stale => PROGRESS_DELAY,
            Progress::Idle | Progress::Acted | Progress::Stale | Progress::Failed => {
                requeue::after(progress, reason)
            }
        }))
    }
}

/// The largest value of any reachable member.
fn largest(input: &StatusInput<'_>, value: impl Fn(&EndpointStatus) -> i64) -> i64 {
    let members = input.inputs.probe.members.values();
    members.filter_map(|member| member.status.as_ref()).map(value).max().unwrap_or(0)
}

fn metrics_sample(input: &StatusInput<'_>) -> ClusterSample {
    let state = input.state;
    let etcd = state.etcd.known();
    let healthy =
        |etcd: &super::state::EtcdState| etcd.voters().filter(|voter| voter.is_healthy()).count();
    ClusterSample {
        desired: state.desired.replicas,
        ready: etcd.map_or(0, healthy),
        has_quorum: etcd.is_some(),
        is_rolled_back: state.desired.rollback == Rollback::Active,
        has_nospace_alarm: etcd.is_some_and(|etcd| etcd.quota != Quota::Ok),
        has_corrupt_alarm: etcd.is_some_and(|etcd| etcd.corrupt),
        db_size: largest(input, |status| status.db_size),
        db_in_use: largest(input, |status| status.db_in_use),
    }
}
