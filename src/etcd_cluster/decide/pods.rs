//! Pods that are missing, pods that wait, and volumes that nobody looks after.
//! Comes in: the members. Goes out: chores. May touch: nothing; pure.
//! Only the first pod of a member may found or join, and it waits until it was written down that there
//! is one. Every other comes back to data that is there; the agent in it refuses if there is none.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::rollout::confirms_update;
use crate::api::start_mode::StartMode;
use crate::etcd_cluster::plan::{PodTemplate, Task};
use crate::etcd_cluster::state::{
    EtcdState, Intent, Member, MemberName, ObservedState, PodState, Reading, Rollback,
    TemplateState, VolumeState,
};

pub(super) fn tasks(state: &ObservedState) -> Vec<Task> {
    let adopted = state.orphaned_volumes.iter().filter(|name| is_listed(state, name)).cloned();
    let pods = state.members.iter().filter_map(|member| task(state, member));
    adopted.map(Task::AdoptVolume).chain(pods).collect()
}

/// Ends every pod. The volumes stay, and the members come back to them.
pub(super) fn hibernate(state: &ObservedState) -> Vec<Task> {
    let runs = |it: &&Member| match it.pod {
        Reading::Known(
            PodState::Gated | PodState::Active | PodState::DataMissing | PodState::Terminated,
        ) => true,
        Reading::Known(PodState::Missing | PodState::Terminating) | Reading::Unknown => false,
    };
    state.members.iter().filter(runs).map(|it| Task::Hibernate(it.name.clone())).collect()
}

/// Whether etcd lists somebody, or may. When nobody can be asked, who was seen to have left still has.
fn is_listed(state: &ObservedState, name: &MemberName) -> bool {
    let has_left = || state.member(name).is_some_and(|it| it.intent == Intent::Removed);
    state.etcd.known().map_or_else(|| !has_left(), |etcd| etcd.entry(name).is_some())
}

fn task(state: &ObservedState, member: &Member) -> Option<Task> {
    let name = || member.name.clone();
    match member.pod {
        Reading::Known(PodState::Missing) => {
            let start_mode = start_mode(state, member)?;
            Some(Task::CreatePod {
                member: name(),
                start_mode,
                template: pod_template(state, member),
            })
        }
        Reading::Known(PodState::Gated) if member.intent.is_leaving() => None,
        Reading::Known(PodState::Gated) if member.started => {
            Some(Task::RemoveSchedulingGate(name()))
        }
        Reading::Known(PodState::Gated) => Some(Task::MarkStarted(name())),
        Reading::Known(PodState::Terminated) => Some(Task::DeleteInactivePod(name())),
        // It waits for what the old spec asks for. Whoever comes to found or to join has rules of their own.
        Reading::Known(PodState::Active)
            if is_inactive_and_stale(state, member) && is_voter(state, member) =>
        {
            Some(Task::DeleteInactivePod(name()))
        }
        Reading::Known(PodState::Active | PodState::DataMissing | PodState::Terminating)
        | Reading::Unknown => None,
    }
}

/// What a pod of this member is made of, if it is made now. While nobody has shown that a change works, one member tries it out;
/// all others come back as those are made that run, so that a bad change never has more than one.
pub(super) fn pod_template(state: &ObservedState, member: &Member) -> PodTemplate {
    // Of those that etcd does not list a pod may be left on a lost node, for ever.
    let counts = |it: &&Member| it.name != member.name && is_listed(state, &it.name);
    let others = || state.members.iter().filter(counts);
    let is_confirmed = || others().any(|it| confirms_update(state.etcd.known(), it));
    let is_known = state.desired.rollback == Rollback::Available;
    if is_known && others().any(|it| is_canary_before(state, it, member)) && !is_confirmed() {
        PodTemplate::Previous
    } else {
        PodTemplate::Desired
    }
}

/// Whether one tries out what is wanted, or does so before another. Of those who lack a pod it is the first; but one whose pod is
/// being cleared away still has a change that did not start, and tries the next one as soon as it is gone.
fn is_canary_before(state: &ObservedState, one: &Member, other: &Member) -> bool {
    let lacks_pod = |it: &Member| it.pod == Reading::Known(PodState::Missing);
    let first = state.members.iter().find(|it| lacks_pod(it) && is_listed(state, &it.name));
    let is_next = first.is_some_and(|it| it.name == one.name);
    let has_started = one.pod == Reading::Known(PodState::Active);
    let is_cleared =
        || has_started && one.template == TemplateState::StaleNotRunning && is_voter(state, one);
    if lacks_pod(one) {
        is_next || !lacks_pod(other)
    } else {
        one.template == TemplateState::UpToDate || is_cleared()
    }
}

/// Whether nothing runs in a member's pod, and another would be made otherwise.
pub(super) fn is_inactive_and_stale(state: &ObservedState, member: &Member) -> bool {
    match member.template {
        TemplateState::StaleNotRunning => true,
        // It has not come back as it was, either.
        TemplateState::PreviousNotRunning => {
            member.failing && pod_template(state, member) == PodTemplate::Desired
        }
        TemplateState::UpToDate | TemplateState::Outdated => false,
    }
}

fn is_voter(state: &ObservedState, member: &Member) -> bool {
    let listed = |etcd: &EtcdState| etcd.entry(&member.name).is_some_and(|it| !it.is_learner);
    let is_bootstrapping =
        state.bootstrap.cluster_id.is_none() && !state.bootstrap.members.is_empty();
    !is_bootstrapping && state.etcd.known().is_none_or(listed)
}

/// What a new pod of this member is told; nothing if there must be none now.
fn start_mode(state: &ObservedState, member: &Member) -> Option<StartMode> {
    // Who goes is needed until etcd has struck it from its list.
    if member.intent.is_leaving() && !is_listed(state, &member.name) {
        return None;
    }
    if member.started {
        let has_data =
            member.volume == Reading::Known(VolumeState::Present) && state.desired.persistent;
        return has_data.then_some(StartMode::Rejoin);
    }
    if member.volume.known() == Some(&VolumeState::Terminating) {
        return None;
    }
    match (member.intent, state.bootstrap.cluster_id) {
        (Intent::Bootstrap, None) => Some(StartMode::Bootstrap),
        // The others formed the cluster without it. It has never run, so it has nothing to forget.
        (Intent::Bootstrap | Intent::Join, Some(_)) => {
            let etcd = state.etcd.known()?;
            etcd.entry(&member.name).map(|_| StartMode::Join)
        }
        (Intent::Join, None) | (Intent::Leave | Intent::Removed, _) => None,
    }
}
