//! Bootstraps a cluster with all initial members at once; they are chosen only once.
//!
//! Crash safety: the initial members are recorded before the first is created, so that a change of
//! `spec.replicas` cannot alter the initial cluster that the first of them was started with. Until
//! the cluster ID is recorded no client can have written data, so the bootstrap can be aborted.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::pods;
use crate::api::start_mode::StartMode;
use crate::etcd_cluster::plan::{Plan, Reason, Step, Task};
use crate::etcd_cluster::state::{
    Member, MemberName, ObservedState, PodState, Reading, VolumeState, quorum,
};

type Decision = (Vec<Task>, Reason);

pub(super) fn plan(state: &ObservedState) -> Plan {
    let initial = &state.bootstrap.members;
    let (tasks, reason) = if state.bootstrap.aborted {
        aborted(state)
    } else if !initial.is_empty() {
        in_progress(state, initial)
    } else if state.members.is_empty() {
        not_started(state)
    } else {
        record_lost(state)
    };
    Plan { tasks, step: Step::Wait, reason }
}

/// Nothing is recorded, and no member exists.
fn not_started(state: &ObservedState) -> Decision {
    // Volumes of this very cluster: it had members, and their objects are lost.
    if !state.orphaned_volumes.is_empty() {
        let adopted = state.orphaned_volumes.iter().cloned().map(Task::AdoptVolume);
        return (adopted.collect(), Reason::QuorumLost);
    }
    if !state.previous_cluster_objects.is_empty() {
        return (Vec::new(), Reason::PreviousClusterTerminating);
    }
    if !state.retained_volumes.is_empty() {
        return (Vec::new(), Reason::RetainedVolumesExist);
    }
    match initial_names(state) {
        names if names.is_empty() => (Vec::new(), Reason::Hibernated),
        names => (vec![Task::RecordBootstrapMembers(names)], Reason::CreatingMembers),
    }
}

fn initial_names(state: &ObservedState) -> Vec<MemberName> {
    state.candidate_names.iter().take(state.desired.replicas).cloned().collect()
}

/// Members exist, and their record is lost, as after a restore of objects without their status.
/// Members that ran before rejoin; none bootstraps again.
fn record_lost(state: &ObservedState) -> Decision {
    if let Reading::Known(etcd) = &state.etcd {
        return (vec![Task::RecordClusterId(etcd.cluster)], Reason::Bootstrapping);
    }
    if state.desired.replicas == 0 {
        return (pods::hibernate(state), Reason::Hibernated);
    }
    let mut tasks = pods::tasks(state);
    tasks.retain(|task| match task {
        Task::CreatePod { start_mode, .. } => *start_mode == StartMode::Rejoin,
        Task::AdoptVolume(_) | Task::DeleteInactivePod(_) => true,
        Task::RecordBootstrapMembers(_)
        | Task::AbortBootstrap
        | Task::DeleteBootstrapMember(_)
        | Task::RecordBootstrapStarted
        | Task::RecordClusterId(_)
        | Task::CreateBootstrapMember(_)
        | Task::MarkStarted(_)
        | Task::RemoveSchedulingGate(_)
        | Task::Hibernate(_) => false,
    });
    (tasks, Reason::QuorumLost)
}

fn aborted(state: &ObservedState) -> Decision {
    let members = state.members.iter().map(|member| &member.name);
    let remaining: Vec<_> =
        members.chain(&state.orphaned_volumes).cloned().map(Task::DeleteBootstrapMember).collect();
    if remaining.is_empty() {
        return (vec![Task::RecordBootstrapMembers(initial_names(state))], Reason::CreatingMembers);
    }
    (remaining, Reason::BootstrapFailed)
}

fn in_progress(state: &ObservedState, initial: &[MemberName]) -> Decision {
    // Before anything else: once this is recorded, no member bootstraps any more.
    if let Reading::Known(etcd) = &state.etcd {
        return (vec![Task::RecordClusterId(etcd.cluster)], Reason::Bootstrapping);
    }
    let missing = initial.iter().filter(|name| state.member(name).is_none()).cloned();
    // Its EtcdMember was deleted. It may have been a member already, so it must not bootstrap
    // again.
    let make: fn(_) -> Task =
        if state.bootstrap.started { Task::AdoptVolume } else { Task::CreateBootstrapMember };
    let missing: Vec<Task> = missing.map(make).collect();
    if !missing.is_empty() {
        return (missing, Reason::CreatingMembers);
    }
    if cannot_form_quorum(state, initial) {
        return (vec![Task::AbortBootstrap], Reason::BootstrapFailed);
    }
    let mut tasks = pods::tasks(state);
    if !state.bootstrap.started
        && tasks.iter().any(|task| matches!(task, Task::RemoveSchedulingGate(_)))
    {
        tasks.retain(|task| !matches!(task, Task::RemoveSchedulingGate(_)));
        tasks.push(Task::RecordBootstrapStarted);
    }
    (tasks, Reason::Bootstrapping)
}

/// Whether too few initial members are left for a quorum, or one cannot start from its pod and
/// would start from a new one.
fn cannot_form_quorum(state: &ObservedState, initial: &[MemberName]) -> bool {
    let find = |name| state.member(name);
    // A pod that has been terminating for that long is on a lost node.
    let is_stuck = |member: &Member| {
        member.replacement_due && member.pod == Reading::Known(PodState::Terminating)
    };
    let is_lost = |member: &&Member| member.has_lost_data(&state.desired) || is_stuck(member);
    let lost = initial.iter().filter_map(find).filter(is_lost).count();
    let remaining = initial.len().saturating_sub(lost);
    // The volume was never created, or was deleted before its first use.
    let lacks_volume = |member: &Member| {
        state.desired.persistent
            && member.volume == Reading::Known(VolumeState::Missing)
            && matches!(member.pod, Reading::Known(PodState::Gated | PodState::Active))
    };
    let cannot_start = |member: &Member| member.is_stale() || lacks_volume(member);
    remaining < quorum(initial.len()) || initial.iter().filter_map(find).any(cannot_start)
}
