//! Recreates outdated pods, one at a time: unhealthy members first, the leader last.
//!
//! Guarantees: before a member is disrupted, enough others for a quorum have passed a linearizable
//! read. So if the member does not recover, it is the only one affected.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::{Decision, pods};
use crate::etcd_cluster::plan::{PodTemplate, Reason, Step};
use crate::etcd_cluster::state::{
    EtcdState, ListedMember, Member, ObservedState, PodState, Reading, Rollback, TemplateState,
    quorum,
};

/// With fewer voters, data in memory would have only one copy left.
const MIN_REPLICAS_IN_MEMORY: usize = 3;

pub(super) fn rule(state: &ObservedState, etcd: &EtcdState) -> Decision {
    let voters = || state.remaining().filter_map(|member| Some((member, voter(etcd, member)?)));
    let outdated_members = || voters().filter(|(member, _)| member.is_outdated());
    let outdated = || outdated_members().map(|(_, entry)| entry);
    let first = outdated().next()?;
    let wait = || Some((Step::Wait, Reason::RollingUpdate));
    // A terminating pod may still be reachable, but must not be counted on.
    if voters().any(|(member, _)| member.pod != Reading::Known(PodState::Active)) {
        return wait();
    }
    if etcd.blocking_alarm {
        return Some((Step::Wait, Reason::RollingUpdateBlocked));
    }
    // An unhealthy member may run with a template that was rolled back since. While another one is
    // the canary, it would be recreated from the same template.
    let is_unhealthy = |entry: &ListedMember| entry.healthy == Reading::Known(false);
    let can_change = |member: &Member| pods::pod_template(state, member) == PodTemplate::Desired;
    let mut unhealthy =
        outdated_members().filter(|(member, entry)| is_unhealthy(entry) && can_change(member));
    if let Some((_, entry)) = unhealthy.find(|(_, entry)| tolerates_losing(state, etcd, entry)) {
        return Some(recreate_or_replace(state, etcd, entry));
    }
    if voters().any(|(member, _)| member.replacement_due) {
        return Some((Step::Wait, Reason::RollingUpdateBlocked));
    }
    let canary_running = !outdated_members().all(|(member, _)| can_change(member));
    if canary_running || !etcd.all_voters_healthy() || !tolerates_losing(state, etcd, first) {
        return wait();
    }
    if let Some(follower) = outdated().find(|entry| !etcd.leads(entry.id)) {
        return Some(recreate_or_replace(state, etcd, follower));
    }
    // All followers are up to date; one of them becomes the leader.
    match etcd.voters().find(|entry| entry.id != first.id) {
        Some(transferee) => Some((Step::MoveLeader(transferee.id), Reason::RollingUpdate)),
        None => Some(recreate_or_replace(state, etcd, first)),
    }
}

/// Rolls back an update with which the first updated member does not start.
pub(super) fn rollback(state: &ObservedState, etcd: &EtcdState) -> Decision {
    roll_back(state, Some(etcd))
}

/// The same, also without quorum.
pub(super) fn roll_back(state: &ObservedState, etcd: Option<&EtcdState>) -> Decision {
    let mut failing =
        state.remaining().filter(|member| member.failing && caused_by_update(state, etcd, member));
    let failing = failing.next().filter(|_| state.desired.rollback == Rollback::Available)?;
    Some((Step::RollBack(failing.name.clone()), Reason::UpdateFailed))
}

/// Recreates the pod of a member; or replaces the member, if its data is lost with the pod.
fn recreate_or_replace(
    state: &ObservedState,
    etcd: &EtcdState,
    entry: &ListedMember,
) -> (Step, Reason) {
    if state.desired.persistent {
        return (Step::RecreatePod(entry.name.clone()), Reason::RollingUpdate);
    }
    if etcd.voters().count() >= MIN_REPLICAS_IN_MEMORY && etcd.survives_losing(entry.id) {
        return (Step::MarkForRemoval(entry.name.clone()), Reason::RollingUpdate);
    }
    (Step::Wait, Reason::RollingUpdateBlocked)
}

/// Whether the others have quorum without this member. One or two members never have; then a short
/// outage is what the user chose.
fn tolerates_losing(state: &ObservedState, etcd: &EtcdState, entry: &ListedMember) -> bool {
    let (all, others) = (etcd.voters().count(), etcd.voters().filter(|other| other.id != entry.id));
    let healthy = others.filter(|other| other.is_healthy()).count();
    let is_small = all < MIN_REPLICAS_IN_MEMORY && state.desired.replicas < MIN_REPLICAS_IN_MEMORY;
    healthy >= quorum(all) || is_small && healthy.saturating_add(1) == all
}

/// Whether a member fails because of the update: then a replacement would fail in the same way, and
/// each attempt would cost a member. If another member is healthy with the same template, the
/// failure has another cause.
pub(super) fn caused_by_update(
    state: &ObservedState,
    etcd: Option<&EtcdState>,
    member: &Member,
) -> bool {
    // The pod does not start, or the API server rejects it.
    let pod_attempted = match member.pod {
        Reading::Known(PodState::Active) => true,
        Reading::Known(PodState::Missing) => {
            member.failing && pods::pod_template(state, member) == PodTemplate::Desired
        }
        Reading::Known(
            PodState::Gated | PodState::DataMissing | PodState::Terminating | PodState::Terminated,
        )
        | Reading::Unknown => false,
    };
    member.template == TemplateState::UpToDate
        && pod_attempted
        && state.remaining().any(Member::is_outdated)
        && !state.remaining().any(|other| other.name != member.name && confirms_update(etcd, other))
}

/// Whether a member is up to date and healthy.
pub(super) fn confirms_update(etcd: Option<&EtcdState>, member: &Member) -> bool {
    let entry = etcd.and_then(|etcd| voter(etcd, member));
    member.template == TemplateState::UpToDate && entry.is_some_and(ListedMember::is_healthy)
}

fn voter<'a>(etcd: &'a EtcdState, member: &Member) -> Option<&'a ListedMember> {
    etcd.entry(&member.name).filter(|entry| !entry.is_learner)
}
