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
/// The most members and alarms that a status lists.
const MAX_MEMBERS: usize = 16;
const MAX_ALARMS: usize = 8;

/// Everything that a status is computed from.
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

/// The plan as it is reported. The last member to come back from a rolling update is a part of that
/// update, not an unhealthy member that is about to be replaced.
pub(crate) fn reported_plan(cluster: &EtcdCluster, state: &ObservedState, plan: Plan) -> Plan {
    let is_starting = |listed: &ListedMember| {
        let member = state.member(&listed.name);
        member.is_some_and(|it| {
            it.template == TemplateState::UpToDate && !it.replacement_due && !it.failing
        })
    };
    let voters = state.etcd.known().into_iter().flat_map(EtcdState::voters);
    let mut unhealthy = voters.filter(|it| !it.is_healthy());
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
    let (stock, blueprint, way) = (inputs.objects, inputs.blueprint, inputs.path);
    let before = stock.cluster.status.clone().unwrap_or_default();
    let members = members(input);
    let healthy_voters = members.iter().filter(|it| {
        it.healthy.known() == Some(&true) && it.role.known() != Some(&MemberRole::Learner)
    });
    let count = |number: usize| Field::Known(i32::try_from(number).unwrap_or(i32::MAX));
    let is_ready = match way.progress() {
        VersionProgress::Downgrading => data_is_downgraded(input),
        VersionProgress::AtTarget | VersionProgress::MoreSteps | VersionProgress::NoPath => {
            storage_version_reached(input) && raft_log_is_readable(input)
        }
    };
    let next = way.next(is_ready && no_alarm(state));
    // Before a version step starts no member has taken it, and after a rollback no member runs the spec.
    let is_in_progress =
        next == blueprint.spec.version && state.desired.rollback != Rollback::Active;
    let updated = if is_in_progress { up_to_date_members(state).count() } else { 0 };
    let urls = state.members.iter().map(|it| blueprint.client_url(&it.name).into());
    let formed = state.bootstrap.cluster_id.is_some();
    EtcdClusterStatus {
        observed_generation: stock.cluster.metadata.generation.into(),
        cluster_id: before.cluster_id.clone(),
        bootstrap: before.bootstrap.clone(),
        current_version: way.lowest_running.map_or_else(
            || before.current_version.clone(),
            |it| Field::Known(it.to_string().into()),
        ),
        target_version: Field::Known(next.to_string().into()),
        raft_log: OldestWriter::observe(&before, inputs.probe).map(OldestWriter::status).into(),
        replicas: count(state.members.len()),
        ready_replicas: count(healthy_voters.count()),
        updated_replicas: count(updated),
        selector: Field::Known(format!("{}={}", names::CLUSTER_LABEL, blueprint.name).into()),
        leader: leader(input).into(),
        endpoints: Field::Known(urls.collect()),
        service_name: Field::Known(names::client_service(blueprint.name).into()),
        binding: if formed { binding(blueprint.name) } else { Field::Absent },
        highest_revision: restore_floor(input, &before).into(),
        members: Field::Known(members),
        rollback: rollback::active(&stock.cluster).cloned().into(),
        plan: Field::Known(PlanStatus {
            step: Field::Known(step_name(plan, state).into()),
            reason: Field::Known(plan_reason(input).into()),
            error: input.error.clone().map(|it| messages::truncate(&it).into()).into(),
        }),
        defragmentation: defragmentation_status(input, &before),
        progress: defragmentation::progress(input),
        backup: before.backup.clone(),
        tuning: Field::Known(options::tuning_status(blueprint.spec, blueprint.measured)),
        client_tls: client_transport(input, &before),
        conditions: Field::Known(conditions::all(input, &before)),
    }
}

/// Why the next step is taken, and which versions follow.
fn plan_reason(input: &StatusInput<'_>) -> String {
    let summary = input.plan.reason.summary();
    let next = messages::rollout::next_versions(input)
        .filter(|_| input.state.bootstrap.cluster_id.is_some());
    next.map_or_else(|| summary.to_owned(), |it| format!("{summary}; {it}"))
}

/// Whether no alarm is active: with one no step to another minor version starts.
fn no_alarm(state: &ObservedState) -> bool {
    state.etcd.known().is_some_and(|it| it.quota == Quota::Ok && !it.corrupt && !it.blocking_alarm)
}

/// Whether the storage version of every member that runs the lowest release is that of its release.
/// Releases before 3.6 do not report one.
fn storage_version_reached(input: &StatusInput<'_>) -> bool {
    let standings = input.inputs.probe.members.values().filter_map(|it| it.status.as_ref());
    let releases =
        |it: &EndpointStatus| (Release::parse(&it.version), Release::parse(&it.storage_version));
    let all: Vec<_> = standings.map(releases).collect();
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

/// Whether all data has the storage version of the previous minor, so that members of it can start.
fn data_is_downgraded(input: &StatusInput<'_>) -> bool {
    let Some(etcd) = input.state.etcd.known() else { return false };
    let storage = |name| Release::parse(&input.inputs.probe.status(name)?.storage_version);
    let target = input.inputs.path.spec.minor();
    let is_downgraded = |name| storage(name).is_some_and(|it| it.minor() == target);
    etcd.downgrade == Downgrade::Requested && etcd.members.iter().all(|it| is_downgraded(&it.name))
}

/// Whether the next release can read the raft log of every member.
fn raft_log_is_readable(input: &StatusInput<'_>) -> bool {
    input.inputs.raft_log_requirement().is_none_or(|it| it.is_met(input.inputs.probe))
}

/// The scheme that clients are to use from now on.
fn client_transport(input: &StatusInput<'_>, before: &EtcdClusterStatus) -> Field<ClientTlsStatus> {
    let StateInputs { blueprint, objects: stock, now, .. } = input.inputs;
    match blueprint.transport {
        Some(doors) => doors.client_status(input.state, stock, *now),
        None => before.client_tls.clone(),
    }
}

/// What is recorded of the last defragmentation, and when the next one is due.
fn defragmentation_status(
    input: &StatusInput<'_>,
    before: &EtcdClusterStatus,
) -> Field<DefragmentationStatus> {
    let told = DefragStatus::parse(before);
    let next = told.next_run(input.inputs.blueprint.spec.defragment.as_ref(), input.inputs.now);
    DefragStatus { next_schedule_time: next, ..told }.status()
}

fn binding(cluster: &str) -> Field<LocalRef> {
    Field::Known(LocalRef { name: Field::Known(names::client_secret(cluster).into()) })
}

fn leader(input: &StatusInput<'_>) -> Option<crate::api::strings::ObjectName> {
    let etcd = input.state.etcd.known()?;
    let leader = etcd.members.iter().find(|it| etcd.leads(it.id))?;
    Some(leader.name.0.as_str().into())
}

/// The remaining members whose active pod has the current template.
fn up_to_date_members(state: &ObservedState) -> impl Iterator<Item = &Member> {
    let is_up_to_date = |it: &&Member| {
        it.template == TemplateState::UpToDate && it.pod == Reading::Known(PodState::Active)
    };
    state.remaining().filter(is_up_to_date)
}

/// The revision beyond which a restore must go: rounded up, so that it changes rarely and is never
/// too small.
fn restore_floor(input: &StatusInput<'_>, before: &EtcdClusterStatus) -> Option<i64> {
    const STEP: i64 = 100_000;
    let known = before.highest_revision.known().copied();
    let Reading::Known(council) = &input.inputs.probe.quorum else { return known };
    let up = council.revision.div_euclid(STEP).saturating_add(1).saturating_mul(STEP);
    Some(known.unwrap_or(0).max(up))
}

/// Every member that has an EtcdMember, or that etcd lists.
fn members(input: &StatusInput<'_>) -> Vec<MemberStatus> {
    let StatusInput { inputs, state, .. } = input;
    let listed = state.etcd.known().map(|etcd| etcd.members.as_slice()).unwrap_or_default();
    let unknown = listed.iter().filter(|it| state.member(&it.name).is_none()).map(|it| &it.name);
    let names = state.members.iter().map(|it| &it.name).chain(unknown);
    names
        .map(|name| {
            let entry = listed.iter().find(|it| it.name == *name);
            let standing = inputs.probe.status(name);
            let id = entry.map(|it| it.id.0).or(standing.map(|it| it.member));
            let alarms = alarms(input, id);
            let lag = standing.map(|it| round_lag(inputs.probe.max_raft_index(), it.applied_index));
            MemberStatus {
                name: Field::Known(name.0.as_str().into()),
                id: id.map(|it| format!("{it:x}").into()).into(),
                role: Field::Known(member::role(state, name)),
                version: standing.map(|it| it.version.as_str().into()).into(),
                db_size: standing.map(|it| round_bytes(it.db_size)).into(),
                db_in_use: standing.map(|it| round_bytes(it.db_in_use)).into(),
                raft_lag: lag.into(),
                healthy: Field::Known(entry.is_some_and(ListedMember::is_healthy)),
                alarms: if alarms.is_empty() { Field::Absent } else { Field::Known(alarms) },
            }
        })
        .take(MAX_MEMBERS)
        .collect()
}

fn alarms(input: &StatusInput<'_>, id: Option<u64>) -> Vec<crate::api::strings::Token> {
    let Reading::Known(council) = &input.inputs.probe.quorum else { return Vec::new() };
    let active = council.alarms.iter().filter(|it| Some(it.member) == id);
    active.map(|it| it.alarm_type.into()).take(MAX_ALARMS).collect()
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
