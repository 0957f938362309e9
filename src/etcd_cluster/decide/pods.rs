//! Creates missing pods, removes scheduling gates, and adopts volumes without an EtcdMember.
//!
//! Crash safety: only the first pod of a member may bootstrap or join, and it has a scheduling gate
//! until it is recorded as started. Every later pod rejoins with its data; its agent exits if the
//! data is missing.
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

/// Deletes every pod. The volumes stay, and members rejoin with them.
pub(super) fn hibernate(state: &ObservedState) -> Vec<Task> {
    let runs = |member: &&Member| match member.pod {
        Reading::Known(
            PodState::Gated | PodState::Active | PodState::DataMissing | PodState::Terminated,
        ) => true,
        Reading::Known(PodState::Missing | PodState::Terminating) | Reading::Unknown => false,
    };
    let members = state.members.iter().filter(runs);
    members.map(|member| Task::Hibernate(member.name.clone())).collect()
}

/// Whether etcd lists a member, or may. Without quorum a recorded removal still counts.
fn is_listed(state: &ObservedState, name: &MemberName) -> bool {
    let was_removed = || state.member(name).is_some_and(|member| member.intent == Intent::Removed);
    state.etcd.known().map_or_else(|| !was_removed(), |etcd| etcd.entry(name).is_some())
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
        // The pod waits for something only the old spec requires. New and initial members have
        // their own rules.
        Reading::Known(PodState::Active)
            if is_inactive_and_stale(state, member) && is_voter(state, member) =>
        {
            Some(Task::DeleteInactivePod(name()))
        }
        Reading::Known(PodState::Active | PodState::DataMissing | PodState::Terminating)
        | Reading::Unknown => None,
    }
}

/// The template of this member's next pod. Until a canary confirms an update, all other pods are
/// created from the previous template, so that a bad update affects at most one member.
pub(super) fn pod_template(state: &ObservedState, member: &Member) -> PodTemplate {
    // The pod of a member that etcd does not list may stay on a lost node for good.
    let counts = |other: &&Member| other.name != member.name && is_listed(state, &other.name);
    let others = || state.members.iter().filter(counts);
    let is_confirmed = || others().any(|other| confirms_update(state.etcd.known(), other));
    let is_known = state.desired.rollback == Rollback::Available;
    let has_canary = || others().any(|other| is_canary_before(state, other, member));
    if is_known && has_canary() && !is_confirmed() {
        PodTemplate::Previous
    } else {
        PodTemplate::Desired
    }
}

/// Whether one member is the canary, or becomes it before the other. Of members without a pod it is
/// the first; but a member with a stale pod that is being deleted still has an update that did not
/// start, and tries the next one when the pod is gone.
fn is_canary_before(state: &ObservedState, one: &Member, other: &Member) -> bool {
    let lacks_pod = |member: &Member| member.pod == Reading::Known(PodState::Missing);
    let is_candidate = |member: &&Member| lacks_pod(member) && is_listed(state, &member.name);
    let first = state.members.iter().find(is_candidate);
    let is_next = first.is_some_and(|first| first.name == one.name);
    let has_started = one.pod == Reading::Known(PodState::Active);
    let is_being_replaced =
        || has_started && one.template == TemplateState::StaleNotRunning && is_voter(state, one);
    if lacks_pod(one) {
        is_next || !lacks_pod(other)
    } else {
        one.template == TemplateState::UpToDate || is_being_replaced()
    }
}

/// Whether etcd does not run in a member's pod, and a new pod would have another template.
pub(super) fn is_inactive_and_stale(state: &ObservedState, member: &Member) -> bool {
    match member.template {
        TemplateState::StaleNotRunning => true,
        // It did not start with the previous template either.
        TemplateState::PreviousNotRunning => {
            member.failing && pod_template(state, member) == PodTemplate::Desired
        }
        TemplateState::UpToDate | TemplateState::Outdated => false,
    }
}

fn is_voter(state: &ObservedState, member: &Member) -> bool {
    let listed = |etcd: &EtcdState| etcd.entry(&member.name).is_some_and(|entry| !entry.is_learner);
    let is_bootstrapping =
        state.bootstrap.cluster_id.is_none() && !state.bootstrap.members.is_empty();
    !is_bootstrapping && state.etcd.known().is_none_or(listed)
}

/// The start mode of this member's next pod; `None` if it must not have one now.
fn start_mode(state: &ObservedState, member: &Member) -> Option<StartMode> {
    // A member that is marked for removal keeps running until etcd has removed it.
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
        // The cluster was formed without this member. It has never run, so it has no data to lose.
        (Intent::Bootstrap | Intent::Join, Some(_)) => {
            let etcd = state.etcd.known()?;
            etcd.entry(&member.name).map(|_| StartMode::Join)
        }
        (Intent::Join, None) | (Intent::Leave | Intent::Removed, _) => None,
    }
}
