//! The founding of a cluster: all founders at once, and who they are is decided once.
//! Comes in: a cluster that was not formed yet. Goes out: a whole plan, of chores alone.
//! May touch: nothing; pure. The founders are written down before the first is made: an edit of the
//! size meanwhile must not change what the first of them was told of the others. Until it was written
//! down that they are a cluster nobody can have written to them, and they can be given up.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::pods;
use crate::api::start_mode::StartMode;
use crate::etcd_cluster::plan::{Plan, Reason, Step, Task};
use crate::etcd_cluster::state::{
    Member, MemberName, ObservedState, PodState, Reading, VolumeState, quorum,
};

type Decision = (Vec<Task>, Reason);

pub(super) fn plan(state: &ObservedState) -> Plan {
    let founders = &state.bootstrap.members;
    let (tasks, reason) = if state.bootstrap.aborted {
        aborted(state)
    } else if !founders.is_empty() {
        in_progress(state, founders)
    } else if state.members.is_empty() {
        not_started(state)
    } else {
        record_lost(state)
    };
    Plan { tasks, step: Step::Wait, reason }
}

/// Nothing was ever begun.
fn not_started(state: &ObservedState) -> Decision {
    // Volumes that were made for this very cluster: there were members, and everything about them is lost.
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

/// There are members, and what was written down about them is lost, as after a restore of the
/// objects without their status. Who was somebody comes back; nobody founds.
fn record_lost(state: &ObservedState) -> Decision {
    if let Reading::Known(etcd) = &state.etcd {
        return (vec![Task::RecordClusterId(etcd.cluster)], Reason::Bootstrapping);
    }
    if state.desired.replicas == 0 {
        return (pods::hibernate(state), Reason::Hibernated);
    }
    let mut tasks = pods::tasks(state);
    tasks.retain(|it| match it {
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
    let members = state.members.iter().map(|it| &it.name);
    let left: Vec<_> =
        members.chain(&state.orphaned_volumes).cloned().map(Task::DeleteBootstrapMember).collect();
    if left.is_empty() {
        return (vec![Task::RecordBootstrapMembers(initial_names(state))], Reason::CreatingMembers);
    }
    (left, Reason::BootstrapFailed)
}

fn in_progress(state: &ObservedState, founders: &[MemberName]) -> Decision {
    // Before anything else: from now on nobody founds any more.
    if let Reading::Known(etcd) = &state.etcd {
        return (vec![Task::RecordClusterId(etcd.cluster)], Reason::Bootstrapping);
    }
    let missing = founders.iter().filter(|name| state.member(name).is_none()).cloned();
    // Somebody deleted its EtcdMember. Whether it ever was anybody is not known, so it founds no more.
    let make: fn(_) -> Task =
        if state.bootstrap.started { Task::AdoptVolume } else { Task::CreateBootstrapMember };
    let missing: Vec<Task> = missing.map(make).collect();
    if !missing.is_empty() {
        return (missing, Reason::CreatingMembers);
    }
    if cannot_form_quorum(state, founders) {
        return (vec![Task::AbortBootstrap], Reason::BootstrapFailed);
    }
    let mut tasks = pods::tasks(state);
    if !state.bootstrap.started
        && tasks.iter().any(|it| matches!(it, Task::RemoveSchedulingGate(_)))
    {
        tasks.retain(|it| !matches!(it, Task::RemoveSchedulingGate(_)));
        tasks.push(Task::RecordBootstrapStarted);
    }
    (tasks, Reason::Bootstrapping)
}

/// Whether too few can still become a cluster, or one cannot start as it was made and would start as
/// it would be made now.
fn cannot_form_quorum(state: &ObservedState, founders: &[MemberName]) -> bool {
    let member = |name| state.member(name);
    // A pod that is on its way out for so long is on a node that is lost.
    let is_stuck =
        |it: &Member| it.replacement_due && it.pod == Reading::Known(PodState::Terminating);
    let is_lost = |it: &&Member| it.has_lost_data(&state.desired) || is_stuck(it);
    let lost = founders.iter().filter_map(member).filter(is_lost).count();
    let left = founders.len().saturating_sub(lost);
    // Its volume was never made, or was deleted before it was used.
    let lacks_volume = |it: &Member| {
        state.desired.persistent
            && it.volume == Reading::Known(VolumeState::Missing)
            && matches!(it.pod, Reading::Known(PodState::Gated | PodState::Active))
    };
    let cannot_start = |it: &Member| it.is_stale() || lacks_volume(it);
    left < quorum(founders.len()) || founders.iter().filter_map(member).any(cannot_start)
}
