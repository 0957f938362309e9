//! What is told of a pass: the status, the log, the metrics and the Events.
//! Comes in: what was seen, decided and done. Goes out: when to come back. May touch: `clients`, `telemetry`.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::Resource;
use kube::runtime::controller::Action;
use kube::runtime::events::{Event, EventType};

use super::{
    HEALTHY_INTERVAL, IDLE_INTERVAL, PROGRESS_DELAY, RETRY_DELAY, ReconcileError, Reconciler,
    is_idle,
};
use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::etcd_cluster::v1::status::EtcdClusterStatus;
use crate::api::etcd_types::EndpointStatus;
use crate::api::validation::ValidationResult;
use crate::clients::clock;
use crate::clients::error::ErrorClass;
use crate::clients::objects::ObjectError;
use crate::etcd_cluster::act::ActError;
use crate::etcd_cluster::controller::Context;
use crate::etcd_cluster::plan::{Plan, Reason, Step};
use crate::etcd_cluster::report;
use crate::etcd_cluster::state::defragmentation::Quota;
use crate::etcd_cluster::state::{MemberName, ObservedState, Rollback};
use crate::etcd_cluster::status::{self, StatusInput};
use crate::etcd_cluster::tls::ca_set::RotationStep;
use crate::etcd_cluster::tls::secrets_plan::CertificateError;
use crate::etcd_cluster::tls::trust_state::TrustStep;
use crate::telemetry::{ClusterSample, error_chain};

/// How often one is asked in which something is awaited.
const WAITING_INTERVAL: Duration = Duration::from_millis(500);

/// Tells of a spec that nobody may act on. The members go on as they are.
pub(super) async fn invalid(
    context: &Context,
    cluster: &EtcdCluster,
    verdict: &ValidationResult,
) -> Result<Action, ReconcileError> {
    let status = status::invalid_spec(cluster, verdict, clock::wall());
    write_status_only(context, cluster, &status, IDLE_INTERVAL).await
}

/// Writes a status that no look was needed for, and answers when to come back.
async fn write_status_only(
    context: &Context,
    cluster: &EtcdCluster,
    status: &EtcdClusterStatus,
    next: Duration,
) -> Result<Action, ReconcileError> {
    match report::write_cluster_status(&context.objects, cluster, status).await {
        Ok(_) => Ok(Action::requeue(next)),
        Err(error) if error.class() == ErrorClass::Conflict => Ok(Action::requeue(RETRY_DELAY)),
        Err(error) => Err(ReconcileError::UpdateStatus(error)),
    }
}

impl Reconciler<'_> {
    /// Tells that the members cannot be asked. Nobody knows how they are, so nothing is said about that.
    pub(super) async fn report_no_credentials(
        &self,
        cluster: &EtcdCluster,
        why: Option<CertificateError>,
        trouble: Option<&ActError>,
    ) -> Result<Action, ReconcileError> {
        let known =
            self.context.keyring.report(self.blueprint.uid).problem.map(CertificateError::External);
        let why = why.or(known);
        let comes = matches!(&why, Some(CertificateError::External(flaw)) if !flaw.needs_user());
        let words = why.map(|it| it.to_string()).or_else(|| trouble.map(|it| error_chain(it)));
        let status =
            status::certificates_unavailable(cluster, &words.unwrap_or_default(), !comes, self.now);
        write_status_only(
            self.context,
            cluster,
            &status,
            if comes { RETRY_DELAY } else { HEALTHY_INTERVAL },
        )
        .await
    }

    /// Tells the log, the metrics and the Events of a step.
    pub(super) async fn report_step(
        &self,
        plan: &Plan,
        seen: &ObservedState,
        done: &Result<(), ActError>,
        of: &EtcdCluster,
    ) {
        let words = status::step_name(plan, seen);
        let (namespace, cluster) = (self.blueprint.namespace, self.blueprint.name);
        let because = plan.reason.name();
        if let Err(error) = done {
            let error = error_chain(error);
            tracing::warn!(
                namespace,
                cluster,
                because,
                step = words,
                error,
                "not done; it is tried again"
            );
            self.context.metrics.etcd_clusters.reconcile_failed(because);
            return;
        }
        if is_idle(plan) {
            return;
        }
        tracing::info!(namespace, cluster, because, step = words, "done");
        if plan.step != Step::Wait {
            self.context.metrics.etcd_clusters.operation(because);
            self.emit_event(of, plan.reason, because, &words).await;
        }
    }

    /// Tells whose pods the API server does not take.
    pub(super) fn report_rejected_pods(&self, plan: &Plan, refused: &BTreeMap<MemberName, String>) {
        let (namespace, cluster) = (self.blueprint.namespace, self.blueprint.name);
        for (member, error) in refused {
            tracing::warn!(namespace, cluster, %member, error, "its pod is refused; it is tried again");
            self.context.metrics.etcd_clusters.reconcile_failed(plan.reason.name());
        }
    }

    /// Tells that authorities have changed their places, or a side rests on others.
    pub(super) async fn report_rotation(
        &self,
        of: &EtcdCluster,
        turns: &[RotationStep],
        moves: &[TrustStep],
    ) {
        let turns = turns.iter().filter_map(|it| Some((it.reason()?, it.message())));
        let moves = moves.iter().filter_map(|it| Some((it.reason()?, it.message())));
        for (reason, words) in turns.chain(moves) {
            self.publish_event(of, EventType::Normal, reason, words).await;
        }
    }

    async fn emit_event(&self, of: &EtcdCluster, why: Reason, reason: &str, words: &str) {
        let kind = if why.is_warning() { EventType::Warning } else { EventType::Normal };
        self.publish_event(of, kind, reason, words).await;
    }

    async fn publish_event(&self, of: &EtcdCluster, kind: EventType, reason: &str, words: &str) {
        let event = Event {
            type_: kind,
            reason: reason.to_owned(),
            note: Some(words.to_owned()),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        let reference = of.object_ref(&());
        let call = self.context.recorder.publish(&event, &reference);
        if let Ok(Err(error)) = self.context.mandate.run(RETRY_DELAY, call).await {
            tracing::debug!(error = error_chain(&error), "an Event was not written");
        }
    }

    /// Writes what there is to tell, and answers when to come back.
    pub(super) async fn report(
        &self,
        input: &StatusInput<'_>,
        next: Option<Duration>,
    ) -> Result<Action, ReconcileError> {
        let objects = &self.context.objects;
        let cluster = &input.inputs.objects.cluster;
        let told = status::cluster_status(input);
        let (namespace, name) = (self.blueprint.namespace, self.blueprint.name);
        self.context.metrics.etcd_clusters.record(namespace, name, metrics_sample(input));
        let before = status::previous_ready_reason(cluster);
        let mut stale = false;
        let mut settle = |done: Result<bool, ObjectError>| match done {
            Ok(written) => Ok(written),
            Err(error) if matches!(error.class(), ErrorClass::Conflict | ErrorClass::NotFound) => {
                stale = true;
                Ok(false)
            }
            Err(error) => Err(ReconcileError::UpdateStatus(error)),
        };
        let written = settle(report::write_cluster_status(objects, cluster, &told).await)?;
        for member in &input.inputs.objects.members {
            let told = status::member_status(input, member);
            settle(report::write_member_status(objects, member, &told).await)?;
        }
        let because = input.plan.reason;
        if written && before.as_deref() != Some(because.name()) {
            self.emit_event(cluster, because, because.name(), &status::message(input)).await;
        }
        let pause = match next {
            Some(next) => next,
            None if stale => PROGRESS_DELAY,
            None => idle_requeue(because),
        };
        Ok(Action::requeue(pause))
    }
}

/// The largest that any member has of something.
fn largest(input: &StatusInput<'_>, of: impl Fn(&EndpointStatus) -> i64) -> i64 {
    let standings = input.inputs.probe.members.values().filter_map(|it| it.status.as_ref());
    standings.map(of).max().unwrap_or(0)
}

fn metrics_sample(input: &StatusInput<'_>) -> ClusterSample {
    let seen = input.state;
    let well =
        seen.etcd.known().map_or(0, |etcd| etcd.voters().filter(|it| it.is_healthy()).count());
    ClusterSample {
        desired: seen.desired.replicas,
        ready: well,
        has_quorum: seen.etcd.known().is_some(),
        is_rolled_back: seen.desired.rollback == Rollback::Active,
        has_nospace_alarm: seen.etcd.known().is_some_and(|etcd| etcd.quota != Quota::Ok),
        has_corrupt_alarm: seen.etcd.known().is_some_and(|etcd| etcd.corrupt),
        db_size: largest(input, |it| it.db_size),
        db_in_use: largest(input, |it| it.db_in_use),
    }
}

/// How soon a cluster is looked at again in which nothing is to be done now.
fn idle_requeue(because: Reason) -> Duration {
    match because {
        Reason::Healthy
        | Reason::RolledBack
        | Reason::RootPasswordMissing
        | Reason::CorruptionUnresolved => HEALTHY_INTERVAL,
        Reason::TlsTransition
        | Reason::ConfiguringAuth
        | Reason::NoSpaceUnresolved
        | Reason::CorruptMember => RETRY_DELAY,
        Reason::Paused | Reason::Hibernated | Reason::RetainedVolumesExist => IDLE_INTERVAL,
        Reason::CreatingMembers
        | Reason::Bootstrapping
        | Reason::BootstrapFailed
        | Reason::PreviousClusterTerminating
        | Reason::QuorumLost
        | Reason::ClusterIdMismatch
        | Reason::UnknownMember
        | Reason::RemovingMember
        | Reason::RemovalBlocked
        | Reason::AddingMember
        | Reason::LearnerFailed
        | Reason::ReplacingMember
        | Reason::ReplacementBlocked
        | Reason::RollingUpdate
        | Reason::RollingUpdateBlocked
        | Reason::UpdateFailed
        | Reason::PreparingVersionChange
        | Reason::NoUpgradePath
        | Reason::Defragmenting
        | Reason::NoSpace
        | Reason::ScalingUp
        | Reason::ScalingDown
        | Reason::MemberUnhealthy => WAITING_INTERVAL,
    }
}
