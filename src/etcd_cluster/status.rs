//! Computes the status of a cluster and of each of its members from one reconciliation.
//! Figures that always move change in coarse steps, so that a busy cluster that is up to date costs
//! no status write.

#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod conditions;
mod member;
mod messages;
mod step_names;

use std::collections::BTreeMap;

use conditions::was_updating;
pub(crate) use conditions::{
    certificates_unavailable, invalid_spec, namespace_not_granted, previous_ready_reason,
};
pub(crate) use member::member_status;
pub(crate) use messages::{message, pod_problem};
pub(crate) use step_names::step_name;

use super::plan::{Plan, Reason};
use super::raft_log::OldestWriter;
use super::state::build::StateInputs;
use super::state::defragmentation::Quota;
use super::state::{
    Downgrade, EtcdState, ListedMember, Member, MemberName, ObservedState, PodState, Reading,
    Rollback, TemplateState, VersionProgress,
};
use super::tls::report::CertificateReport;
use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::etcd_cluster::v1::status::{
    ClientTlsStatus, DefragmentationStatus, EtcdClusterStatus, MemberRole, MemberStatus, PlanStatus,
};
use crate::api::etcd_types::EndpointStatus;
use crate::api::etcd_version::{Minor, Release};
use crate::api::field::Field;
use crate::api::names;
use crate::api::pod::LocalRef;
use crate::etcd_cluster::defragmentation::DefragStatus;
use crate::etcd_cluster::render::options;
use crate::etcd_cluster::rollback;
use messages::defragmentation;

/// The first minor version that reports its storage version.
const FIRST_WITH_STORAGE_VERSION: Minor = Minor { major: 3, minor: 6 };
/// The limits of the lists in a status.
const MAX_MEMBERS: usize = 16;
const MAX_ALARMS: usize = 8;

/// The inputs of a status.
pub(crate) struct StatusInput<'a> {
    pub(crate) inputs: &'a StateInputs<'a>,
    pub(crate) state: &'a ObservedState,
    pub(crate) plan: &'a Plan,
    /// The error of this reconciliation, with its causes.
    pub(crate) error: Option<String>,
    /// The report of the certificate manager.
    pub(crate) certificates: CertificateReport,
    /// The members whose pods the API server rejected in this reconciliation, with its messages.
    pub(crate) rejected_pods: BTreeMap<MemberName, String>,
}

/// The plan in the status. The last member to become healthy in a rolling update is a part of that
/// update, not an unhealthy member that is about to be replaced.
pub(crate) fn reported_plan(cluster: &EtcdCluster, state: &ObservedState, plan: Plan) -> Plan {
    let is_starting = |listed: &ListedMember| {
        let member = state.member(&listed.name);
        member.is_some_and(|member| {
            let is_up_to_date = member.template == TemplateState::UpToDate;
            is_up_to_date && !member.replacement_due && !member.failing
        })
    };
    let voters = state.etcd.known().into_iter().flat_map(EtcdState::voters);
    let mut unhealthy = voters.filter(|voter| !voter.is_healthy());
    let is_unhealthy = plan.reason == Reason::MemberUnhealthy;
    if is_unhealthy && was_updating(cluster) && unhealthy.all(is_starting) {
        return Plan { reason: Reason::RollingUpdate, ..plan };
    }
    plan
}

/// The status of the cluster.
#[expect(clippy::too_many_lines, reason = "one line per field of the status")]
pub(crate) fn cluster_status(input: &StatusInput<'_>) -> EtcdClusterStatus {
    let StatusInput { inputs, state, plan, .. } = input;
    let (cluster, blueprint, path) = (&inputs.objects.cluster, inputs.blueprint, inputs.path);
    let previous = cluster.status.clone().unwrap_or_default();
    let members = members(input);
    let healthy_voters = members.iter().filter(|member| {
        member.healthy.known() == Some(&true) && member.role.known() != Some(&MemberRole::Learner)
    });
    let count = |number: usize| Field::Known(i32::try_from(number).unwrap_or(i32::MAX));
    let is_ready = match path.progress() {
        VersionProgress::Downgrading => data_is_downgraded(input),
        VersionProgress::AtTarget | VersionProgress::MoreSteps | VersionProgress::NoPath => {
            storage_version_reached(input) && raft_log_is_readable(input)
        }
    };
    let next = path.next(is_ready && no_alarm(state));
    // Before a version step starts no member runs its version, and after a rollback no member runs
    // the spec.
    let is_in_progress =
        next == blueprint.spec.version && state.desired.rollback != Rollback::Active;
    let updated = if is_in_progress { up_to_date_members(state).count() } else { 0 };
    let urls = state.members.iter().map(|member| blueprint.client_url(&member.name).into());
    let formed = state.bootstrap.cluster_id.is_some();
    EtcdClusterStatus {
        observed_generation: cluster.metadata.generation.into(),
        cluster_id: previous.cluster_id.clone(),
        bootstrap: previous.bootstrap.clone(),
        current_version: path.lowest_running.map_or_else(
            || previous.current_version.clone(),
            |release| Field::Known(release.to_string().into()),
        ),
        target_version: Field::Known(next.to_string().into()),
        raft_log: OldestWriter::observe(&previous, inputs.probe).map(OldestWriter::status).into(),
        replicas: count(state.members.len()),
        ready_replicas: count(healthy_voters.count()),
        updated_replicas: count(updated),
        selector: Field::Known(format!("{}={}", names::CLUSTER_LABEL, blueprint.name).into()),
        leader: leader(input).into(),
        endpoints: Field::Known(urls.collect()),
        service_name: Field::Known(names::client_service(blueprint.name).into()),
        binding: if formed { binding(blueprint.name) } else { Field::Absent },
        highest_revision: restore_floor(input, &previous).into(),
        db_size: members.iter().filter_map(|member| member.db_size.known().copied()).max().into(),
        members: Field::Known(members),
        rollback: rollback::active(cluster).cloned().into(),
        plan: Field::Known(PlanStatus {
            step: Field::Known(step_name(plan, state).into()),
            reason: Field::Known(plan_reason(input).into()),
            error: input.error.as_deref().map(|error| messages::truncate(error).into()).into(),
        }),
        defragmentation: defragmentation_status(input, &previous),
        progress: defragmentation::progress(input),
        backup: previous.backup.clone(),
        tuning: Field::Known(options::tuning_status(blueprint.spec, blueprint.measured)),
        client_tls: client_transport(input, &previous),
        conditions: Field::Known(conditions::all(input, &previous)),
    }
}

/// Why the next step is taken, and which versions follow.
fn plan_reason(input: &StatusInput<'_>) -> String {
    let summary = input.plan.reason.summary();
    let next = messages::rollout::next_versions(input)
        .filter(|_| input.state.bootstrap.cluster_id.is_some());
    next.map_or_else(|| summary.to_owned(), |next| format!("{summary}; {next}"))
}

/// Whether no alarm is active: with one no step to another minor version starts.
fn no_alarm(state: &ObservedState) -> bool {
    let etcd = state.etcd.known();
    etcd.is_some_and(|etcd| etcd.quota == Quota::Ok && !etcd.corrupt && !etcd.blocking_alarm)
}

/// Whether the storage version of every member that runs the lowest release is that of its release.
/// Releases before 3.6 do not report one.
fn storage_version_reached(input: &StatusInput<'_>) -> bool {
    let statuses = input.inputs.probe.members.values().filter_map(|probe| probe.status.as_ref());
    let releases = |status: &EndpointStatus| {
        (Release::parse(&status.version), Release::parse(&status.storage_version))
    };
    let all: Vec<_> = statuses.map(releases).collect();
    let Some(lowest) = all.iter().filter_map(|(runs, _)| *runs).min() else { return false };
    let is_reached = |(runs, storage): &(Option<Release>, Option<Release>)| match (runs, storage) {
        (Some(runs), _)
            if runs.minor() != lowest.minor() || runs.minor() < FIRST_WITH_STORAGE_VERSION =>
        {
            true
        }
        (Some(runs), Some(storage)) => runs.minor() == storage.minor(),
        (Some(_) | None, None) | (None, Some(_)) => false,
    };
    all.iter().all(is_reached)
}

/// Whether all data has the storage version of the previous minor, so that members can
/// start with that minor.
fn data_is_downgraded(input: &StatusInput<'_>) -> bool {
    let Some(etcd) = input.state.etcd.known() else { return false };
    let storage = |name| Release::parse(&input.inputs.probe.status(name)?.storage_version);
    let target = input.inputs.path.spec.minor();
    let is_downgraded = |name| storage(name).is_some_and(|release| release.minor() == target);
    etcd.downgrade == Downgrade::Requested
        && etcd.members.iter().all(|entry| is_downgraded(&entry.name))
}

/// Whether the next release can read the raft log of every member.
fn raft_log_is_readable(input: &StatusInput<'_>) -> bool {
    let requirement = input.inputs.raft_log_requirement();
    requirement.is_none_or(|requirement| requirement.is_met(input.inputs.probe))
}

/// The scheme that clients are to use from now on.
fn client_transport(
    input: &StatusInput<'_>,
    previous: &EtcdClusterStatus,
) -> Field<ClientTlsStatus> {
    let StateInputs { blueprint, objects, now, .. } = input.inputs;
    match blueprint.transport {
        Some(transport) => transport.client_status(input.state, objects, *now),
        None => previous.client_tls.clone(),
    }
}

/// What is recorded of the last defragmentation, and when the next one is due.
fn defragmentation_status(
    input: &StatusInput<'_>,
    previous: &EtcdClusterStatus,
) -> Field<DefragmentationStatus> {
    let recorded = DefragStatus::parse(previous);
    let next = recorded.next_run(input.inputs.blueprint.spec.defragment.as_ref(), input.inputs.now);
    DefragStatus { next_schedule_time: next, ..recorded }.status()
}

fn binding(cluster: &str) -> Field<LocalRef> {
    Field::Known(LocalRef { name: Field::Known(names::client_secret(cluster).into()) })
}

fn leader(input: &StatusInput<'_>) -> Option<crate::api::strings::ObjectName> {
    let etcd = input.state.etcd.known()?;
    let leader = etcd.members.iter().find(|entry| etcd.leads(entry.id))?;
    Some(leader.name.0.as_str().into())
}

/// The remaining members whose active pod has the current template.
fn up_to_date_members(state: &ObservedState) -> impl Iterator<Item = &Member> {
    let is_up_to_date = |member: &&Member| {
        member.template == TemplateState::UpToDate && member.pod == Reading::Known(PodState::Active)
    };
    state.remaining().filter(is_up_to_date)
}

/// The revision beyond which a restore must go: rounded up, so that the status changes rarely and
/// the revision is never too small.
fn restore_floor(input: &StatusInput<'_>, previous: &EtcdClusterStatus) -> Option<i64> {
    const STEP: i64 = 100_000;
    let known = previous.highest_revision.known().copied();
    let Reading::Known(quorum) = &input.inputs.probe.quorum else { return known };
    let rounded = quorum.revision.div_euclid(STEP).saturating_add(1).saturating_mul(STEP);
    Some(known.unwrap_or(0).max(rounded))
}

/// Every member that has an EtcdMember, or that etcd lists.
fn members(input: &StatusInput<'_>) -> Vec<MemberStatus> {
    let StatusInput { inputs, state, .. } = input;
    let listed = state.etcd.known().map(|etcd| etcd.members.as_slice()).unwrap_or_default();
    let listed_names = listed.iter().map(|entry| &entry.name);
    let unknown = listed_names.filter(|name| state.member(name).is_none());
    let names = state.members.iter().map(|member| &member.name).chain(unknown);
    names
        .map(|name| {
            let entry = listed.iter().find(|entry| entry.name == *name);
            let status = inputs.probe.status(name);
            let id = entry.map(|entry| entry.id.0).or(status.map(|status| status.member));
            let alarms = alarms(input, id);
            let furthest = inputs.probe.max_raft_index();
            let lag = status.map(|status| round_lag(furthest, status.applied_index));
            MemberStatus {
                name: Field::Known(name.0.as_str().into()),
                id: id.map(|id| format!("{id:x}").into()).into(),
                role: Field::Known(member::role(state, name)),
                version: status.map(|status| status.version.as_str().into()).into(),
                db_size: status.map(|status| round_bytes(status.db_size)).into(),
                db_in_use: status.map(|status| round_bytes(status.db_in_use)).into(),
                raft_lag: lag.into(),
                healthy: Field::Known(entry.is_some_and(ListedMember::is_healthy)),
                alarms: if alarms.is_empty() { Field::Absent } else { Field::Known(alarms) },
            }
        })
        .take(MAX_MEMBERS)
        .collect()
}

fn alarms(input: &StatusInput<'_>, id: Option<u64>) -> Vec<crate::api::strings::Token> {
    let Reading::Known(quorum) = &input.inputs.probe.quorum else { return Vec::new() };
    let active = quorum.alarms.iter().filter(|alarm| Some(alarm.member) == id);
    active.map(|alarm| alarm.alarm_type.into()).take(MAX_ALARMS).collect()
}

/// Bytes rounded up in steps of a quarter, and never finer than 16 MiB.
fn round_bytes(bytes: i64) -> i64 {
    const MIN_STEP: i64 = 16 << 20;
    let step = (bytes.max(1).ilog2())
        .checked_sub(2)
        .map_or(MIN_STEP, |bits| MIN_STEP.max(1_i64 << bits.min(60)));
    bytes.saturating_add(step.saturating_sub(1)).div_euclid(step).saturating_mul(step)
}

/// Raft entries that a member is behind, rounded up to a power of two; 0 below a thousand.
fn round_lag(furthest: u64, applied: u64) -> i64 {
    let behind = furthest.saturating_sub(applied);
    if behind < 1000 { 0 } else { i64::try_from(behind.next_power_of_two()).unwrap_or(i64::MAX) }
}

#[cfg(test)]
mod tests;
