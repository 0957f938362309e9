//! Computes the conditions of a cluster: types and reasons for tools, messages for users.
//! A condition keeps its transition time as long as its status stays the same.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod update;

use std::time::Duration;

use jiff::Timestamp;

pub(crate) use update::{ConditionUpdate, with_transition_time};
use update::{find, recorded, with_updates};

use super::StatusInput;
use super::messages::{self, ca_rotation, certificate_source, rollout, transport};
use crate::api::condition::{
    AVAILABLE, CERTIFICATES_VALID, Condition, ConditionStatus, NAMESPACE_NOT_GRANTED, PAUSED,
    QUORUM_LOST, READY, RECONCILING, RECOVERING, SCALING, STALLED, UPDATING,
};
use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::etcd_cluster::v1::status::EtcdClusterStatus;
use crate::api::validation::ValidationResult;
use crate::etcd_cluster::plan::{Reason, Step};
use crate::etcd_cluster::reason::{
    ALARM_ACTIVE, AT_DESIRED_SIZE, CERTIFICATE_ERROR, INVALID_SPEC, NOT_BOOTSTRAPPED,
    NOT_CONFIRMED, NOT_PAUSED, NOT_RECOVERING, NOT_STALLED, QUORUM_AVAILABLE, RECONCILE_ERROR,
    UP_TO_DATE, VALID, WAITING_FOR_CERTIFICATE,
};
use crate::etcd_cluster::state::pod::restarts;
use crate::etcd_cluster::state::{
    AuthState, DesiredState, EtcdState, Member, Reading, Rollback, TemplateState, VersionProgress,
};
use crate::etcd_cluster::tls::report::CertificateReport;

/// A quorum that is unavailable for less is likely to return: members that start need an election.
const QUORUM_LOSS_GRACE: Duration = Duration::from_secs(20);

/// All conditions of the cluster.
pub(super) fn all(input: &StatusInput<'_>, status: &EtcdClusterStatus) -> Vec<Condition> {
    let previous = status.conditions.known().map(Vec::as_slice).unwrap_or_default();
    let now = input.inputs.now;
    let generation = input.inputs.objects.cluster.metadata.generation;
    let updates = updates(input, previous);
    let updates = updates.iter();
    updates.map(|update| with_transition_time(previous, update, generation, now)).collect()
}

fn updates(input: &StatusInput<'_>, previous: &[Condition]) -> Vec<ConditionUpdate> {
    let (reason, name) = (input.plan.reason, input.plan.reason.name());
    let (message, not_ready) = (messages::message(input), not_ready(input));
    let is_idle = input.plan.step == Step::Wait && input.plan.tasks.is_empty();
    let unmet = unmet_spec(input);
    let to_fix = certificate_source::needs_user(&input.certificates).or_else(|| unmet.clone());
    let needs_user = needs_user(input) || to_fix.is_some();
    let is_reconciling = input.error.is_some()
        || !reason.is_in_sync() && !needs_user && reason != Reason::Paused
        || !is_idle;
    let in_sync = reason.is_in_sync() || healthy_while_defragmenting(input);
    let (stalled_reason, stalled_message) = to_fix.unwrap_or_else(|| (name, message.clone()));
    vec![
        match not_ready.filter(|_| in_sync).or(unmet) {
            Some((reason, message)) => ConditionUpdate::r#false(READY, reason, message),
            None => ConditionUpdate::new(READY, in_sync, name, message.clone()),
        },
        available(input, &message),
        if is_reconciling {
            ConditionUpdate::r#true(RECONCILING, name, message.clone())
        } else if reason.is_in_sync() {
            ConditionUpdate::r#false(RECONCILING, name, "Observed state matches the spec")
        } else {
            ConditionUpdate::r#false(RECONCILING, name, "No step is in progress")
        },
        if needs_user {
            ConditionUpdate::r#true(STALLED, stalled_reason, stalled_message)
        } else {
            not_stalled()
        },
        quorum_lost(input, previous, message),
        paused(reason),
        updating(input, previous),
        scaling(input),
        recovering(input),
        certificates(input),
    ]
}

fn not_stalled() -> ConditionUpdate {
    ConditionUpdate::r#false(STALLED, NOT_STALLED, "No user action required")
}

fn available(input: &StatusInput<'_>, message: &str) -> ConditionUpdate {
    let formed = input.state.bootstrap.cluster_id.is_some();
    if formed && input.state.etcd.known().is_some() {
        let message = "Linearizable reads succeed on a quorum of voters";
        return ConditionUpdate::r#true(AVAILABLE, QUORUM_AVAILABLE, message);
    }
    let reason = if formed { input.plan.reason.name() } else { NOT_BOOTSTRAPPED };
    ConditionUpdate::r#false(AVAILABLE, reason, message)
}

fn quorum_lost(
    input: &StatusInput<'_>,
    previous: &[Condition],
    message: String,
) -> ConditionUpdate {
    let reason = input.plan.reason;
    let formed = input.state.bootstrap.cluster_id.is_some();
    if input.state.etcd.known().is_some() {
        let message = format!("Quorum is available ({})", messages::healthy_voters(input));
        return ConditionUpdate::r#false(QUORUM_LOST, QUORUM_AVAILABLE, message);
    }
    if formed && reason == Reason::QuorumLost && unavailable_for_long(input, previous) {
        return ConditionUpdate::r#true(QUORUM_LOST, reason.name(), message);
    }
    if formed {
        let message = "Loss of quorum is not confirmed";
        return ConditionUpdate::r#false(QUORUM_LOST, NOT_CONFIRMED, message);
    }
    ConditionUpdate::r#false(QUORUM_LOST, NOT_BOOTSTRAPPED, "The cluster is not bootstrapped yet")
}

fn paused(reason: Reason) -> ConditionUpdate {
    if reason == Reason::Paused {
        let message = "spec.paused is true; the operator changes nothing";
        ConditionUpdate::r#true(PAUSED, reason.name(), message)
    } else {
        ConditionUpdate::r#false(PAUSED, NOT_PAUSED, "spec.paused is not true")
    }
}

/// Whether nothing continues until the user acts.
fn needs_user(input: &StatusInput<'_>) -> bool {
    let reason = input.plan.reason;
    let has_alarm = input.state.etcd.known().is_some_and(|etcd| etcd.blocking_alarm);
    // A possible rollback would have been done. An alarm is resolved automatically, or has a reason
    // of its own.
    let is_blocked = reason == Reason::RollingUpdateBlocked && !has_alarm;
    // A member that only lacks the other voters recovers with them. A member that crashes again and
    // again is reachable for short times, which is no recovery.
    let attempts = input.inputs.blueprint.spec.repair.recreate_attempts;
    let pod = |member: &Member| input.inputs.objects.pod(&member.name);
    let fails = |member: &Member| {
        member.failing || pod(member).is_some_and(|pod| restarts(pod) >= attempts)
    };
    let is_unreachable = |member: &Member| input.inputs.probe.status(&member.name).is_none();
    let is_lost = reason == Reason::QuorumLost
        && input.state.remaining().any(|member| is_unreachable(member) && fails(member));
    reason.needs_user() || is_blocked || is_lost
}

/// The reason and message of a part of the spec that cannot be reached, while members are
/// defragmented.
fn unmet_spec(input: &StatusInput<'_>) -> Option<(&'static str, String)> {
    if input.plan.reason != Reason::Defragmenting {
        return None;
    }
    let DesiredState { rollback, version, .. } = input.state.desired;
    let auth = input.state.etcd.known().map(|etcd| etcd.auth);
    if auth == Some(AuthState::RootPasswordMissing) {
        return Some((Reason::RootPasswordMissing.name(), transport::message(input)));
    }
    match (rollback, version) {
        (Rollback::Active, _) => Some((Reason::RolledBack.name(), rollout::rolled_back(input))),
        (_, VersionProgress::NoPath) => {
            Some((Reason::NoUpgradePath.name(), rollout::no_upgrade_path(input)))
        }
        (
            _,
            VersionProgress::AtTarget | VersionProgress::MoreSteps | VersionProgress::Downgrading,
        ) => None,
    }
}

/// During a defragmentation the cluster is ready as long as every voter is healthy.
fn healthy_while_defragmenting(input: &StatusInput<'_>) -> bool {
    let is_healthy = |etcd: &EtcdState| {
        etcd.all_voters_healthy() && etcd.auth != AuthState::OperatorNotRecognized
    };
    input.plan.reason == Reason::Defragmenting && input.state.etcd.known().is_some_and(is_healthy)
}

fn certificates(input: &StatusInput<'_>) -> ConditionUpdate {
    let CertificateReport { error, rotation, trust_change, problem, is_external } =
        &input.certificates;
    let (is_valid, reason, message) = match (error, problem, trust_change, rotation) {
        (Some(error), ..) => (false, CERTIFICATE_ERROR, error.to_string()),
        (None, Some(problem), ..) => {
            let message = certificate_source::problem_message(problem);
            (false, certificate_source::problem_reason(problem), message)
        }
        (None, None, Some(change), _) => {
            let message = certificate_source::change_message(change);
            (true, certificate_source::change_reason(change), message)
        }
        (None, None, None, Some(rotation)) => {
            (true, ca_rotation::rotation_reason(rotation), ca_rotation::rotation_message(rotation))
        }
        (None, None, None, None) if *is_external => {
            let message =
                "External certificates are valid; the operator copies new ones automatically";
            (true, VALID, message.to_owned())
        }
        (None, None, None, None) => {
            (true, VALID, "Certificates are valid and renewed automatically".to_owned())
        }
    };
    ConditionUpdate::new(CERTIFICATES_VALID, is_valid, reason, message)
}

/// Why a cluster is not ready though all members are up to date and healthy.
fn not_ready(input: &StatusInput<'_>) -> Option<(&'static str, String)> {
    if let Some(error) = &input.certificates.error {
        return Some((CERTIFICATE_ERROR, error.to_string()));
    }
    if let Reading::Known(quorum) = &input.inputs.probe.quorum
        && let Some(alarm) = quorum.alarms.first()
    {
        let entry = quorum.members.iter().find(|entry| entry.id == alarm.member);
        let peer_url = entry.and_then(|entry| entry.peer_urls.first());
        let member = peer_url.map_or("a member", String::as_str);
        let message = format!(
            "Alarm {} is active on {member}: etcd rejects writes or the data is corrupt",
            alarm.alarm_type
        );
        return Some((ALARM_ACTIVE, message));
    }
    input.error.as_ref().map(|_| (RECONCILE_ERROR, messages::message(input)))
}

fn unavailable_for_long(input: &StatusInput<'_>, previous: &[Condition]) -> bool {
    let Some(available) = find(previous, AVAILABLE) else { return false };
    if available.status.known() != Some(&ConditionStatus::False) {
        return false;
    }
    let since = available.last_transition_time.known();
    let since: Option<Timestamp> = since.and_then(|time| time.as_str().parse().ok());
    since.is_some_and(|since| {
        let elapsed = Duration::try_from(input.inputs.now.duration_since(since));
        elapsed.unwrap_or_default() >= QUORUM_LOSS_GRACE
    })
}

/// An update is complete when all recreated members are healthy.
fn updating(input: &StatusInput<'_>, previous: &[Condition]) -> ConditionUpdate {
    let reason = input.plan.reason;
    let is_update = matches!(
        reason,
        Reason::RollingUpdate
            | Reason::RollingUpdateBlocked
            | Reason::UpdateFailed
            | Reason::PreparingVersionChange
            | Reason::TlsTransition
    );
    if reason == Reason::RolledBack {
        return ConditionUpdate::r#false(UPDATING, reason.name(), messages::message(input));
    }
    if let Some((reason, message)) = unmet_spec(input) {
        return ConditionUpdate::r#false(UPDATING, reason, message);
    }
    let was_updating = is_updating(previous);
    let is_healthy = input.state.etcd.known().is_some_and(EtcdState::all_voters_healthy);
    let is_outdated = |member: &Member| member.template != TemplateState::UpToDate;
    let is_outdated = input.state.remaining().any(is_outdated);
    let formed = input.state.bootstrap.cluster_id.is_some();
    if !formed || !(is_update || is_outdated || was_updating && !is_healthy) {
        return ConditionUpdate::r#false(UPDATING, UP_TO_DATE, "All members are up to date");
    }
    let message = messages::message(input);
    let message =
        if is_update { message } else { format!("{}. {message}", rollout::update_progress(input)) };
    ConditionUpdate::r#true(UPDATING, reason.name(), message)
}

fn is_updating(previous: &[Condition]) -> bool {
    let updating = find(previous, UPDATING);
    updating.is_some_and(|updating| updating.status.known() == Some(&ConditionStatus::True))
}

/// Whether an update is in progress according to the recorded status.
pub(super) fn was_updating(cluster: &EtcdCluster) -> bool {
    is_updating(recorded(cluster))
}

fn scaling(input: &StatusInput<'_>) -> ConditionUpdate {
    let (remaining, desired) = (input.state.remaining().count(), input.state.desired.replicas);
    let formed = input.state.bootstrap.cluster_id.is_some();
    let is_leaving = input.plan.reason == Reason::RemovingMember;
    if formed && desired > 0 && (remaining != desired || is_leaving) {
        let message = if remaining == desired {
            format!("Removing a member; {remaining}/{desired} members remain")
        } else {
            format!("Scaling from {remaining} to {desired} members")
        };
        ConditionUpdate::r#true(SCALING, input.plan.reason.name(), message)
    } else {
        ConditionUpdate::r#false(SCALING, AT_DESIRED_SIZE, "No scaling is in progress")
    }
}

fn recovering(input: &StatusInput<'_>) -> ConditionUpdate {
    match input.plan.reason {
        Reason::ReplacingMember
        | Reason::ReplacementBlocked
        | Reason::MemberUnhealthy
        | Reason::NoSpace
        | Reason::CorruptMember
        | Reason::LearnerFailed => {
            let reason = input.plan.reason.name();
            ConditionUpdate::r#true(RECOVERING, reason, messages::message(input))
        }
        Reason::QuorumLost
        | Reason::Paused
        | Reason::CreatingMembers
        | Reason::Bootstrapping
        | Reason::BootstrapFailed
        | Reason::RetainedVolumesExist
        | Reason::PreviousClusterTerminating
        | Reason::Hibernated
        | Reason::ClusterIdMismatch
        | Reason::UnknownMember
        | Reason::RemovingMember
        | Reason::RemovalBlocked
        | Reason::AddingMember
        | Reason::RollingUpdate
        | Reason::RollingUpdateBlocked
        | Reason::UpdateFailed
        | Reason::RolledBack
        | Reason::TlsTransition
        | Reason::ConfiguringAuth
        | Reason::RootPasswordMissing
        | Reason::PreparingVersionChange
        | Reason::NoUpgradePath
        | Reason::Defragmenting
        | Reason::NoSpaceUnresolved
        | Reason::CorruptionUnresolved
        | Reason::ScalingUp
        | Reason::ScalingDown
        | Reason::Healthy => {
            ConditionUpdate::r#false(RECOVERING, NOT_RECOVERING, "No member is being replaced")
        }
    }
}

/// Whether the namespace access controller reports that the operator has no permissions in the
/// object's namespace.
pub(crate) fn namespace_not_granted(cluster: &EtcdCluster) -> bool {
    let reason = find(recorded(cluster), STALLED).and_then(|stalled| stalled.reason.known());
    reason.is_some_and(|reason| reason.as_str() == NAMESPACE_NOT_GRANTED)
}

/// The recorded reason of the condition `Ready`.
pub(crate) fn previous_ready_reason(cluster: &EtcdCluster) -> Option<String> {
    Some(find(recorded(cluster), READY)?.reason.known()?.as_str().to_owned())
}

/// The status of a cluster whose members cannot be probed, because the operator has no client
/// certificate. All other conditions stay as they were recorded.
pub(crate) fn certificates_unavailable(
    cluster: &EtcdCluster,
    message: &str,
    needs_user: bool,
    now: Timestamp,
) -> EtcdClusterStatus {
    let reason = if needs_user { CERTIFICATE_ERROR } else { WAITING_FOR_CERTIFICATE };
    let stalled =
        if needs_user { ConditionUpdate::r#true(STALLED, reason, message) } else { not_stalled() };
    let updates = [
        ConditionUpdate::r#false(READY, reason, message),
        ConditionUpdate::new(RECONCILING, !needs_user, reason, message),
        stalled,
        ConditionUpdate::r#false(CERTIFICATES_VALID, reason, message),
    ];
    with_updates(cluster, &updates, now)
}

/// The status of a cluster whose spec is invalid. All other conditions stay as they were recorded.
pub(crate) fn invalid_spec(
    cluster: &EtcdCluster,
    result: &ValidationResult,
    now: Timestamp,
) -> EtcdClusterStatus {
    let errors: Vec<String> = result.violations.iter().map(ToString::to_string).collect();
    let message = format!("Spec is invalid, reconciliation stopped: {}", errors.join("; "));
    let updates = [
        ConditionUpdate::r#false(READY, INVALID_SPEC, message.clone()),
        ConditionUpdate::r#false(RECONCILING, INVALID_SPEC, "Waiting for the spec to be fixed"),
        ConditionUpdate::r#true(STALLED, INVALID_SPEC, message),
    ];
    with_updates(cluster, &updates, now)
}
