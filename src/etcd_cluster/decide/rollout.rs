//! Members that run as they were made once are made anew, one at a time: who does not answer first, the leader last.
//! Comes in: a formed cluster in which nobody comes or goes. Goes out: whose pod is next. May touch: nothing; pure.
//! Before anybody is disturbed, so many others have proven to be well, with a read that needs a quorum, that they can
//! do without. So whoever does not come back is the only one that was touched.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::{Decision, pods};
use crate::etcd_cluster::plan::{PodTemplate, Reason, Step};
use crate::etcd_cluster::state::{
    EtcdState, ListedMember, Member, ObservedState, PodState, Reading, Rollback, TemplateState,
    quorum,
};

/// With fewer voters than these, data that is in memory would be in one place only.
const MIN_REPLICAS_IN_MEMORY: usize = 3;

pub(super) fn rule(state: &ObservedState, etcd: &EtcdState) -> Decision {
    let voters = || state.remaining().filter_map(|it| Some((it, voter(etcd, it)?)));
    let outdated_members = || voters().filter(|(it, _)| it.is_outdated());
    let outdated = || outdated_members().map(|(_, entry)| entry);
    let first = outdated().next()?;
    let wait = || Some((Step::Wait, Reason::RollingUpdate));
    // Whose pod is on its way out may still answer, and is not to be counted on.
    if voters().any(|(it, _)| it.pod != Reading::Known(PodState::Active)) {
        return wait();
    }
    if etcd.blocking_alarm {
        return Some((Step::Wait, Reason::RollingUpdateBlocked));
    }
    // Who is down may be down because of what was taken back since. While another tries out what is wanted, it would come
    // back as it is.
    let is_down = |it: &ListedMember| it.healthy == Reading::Known(false);
    let can_change = |it: &Member| pods::pod_template(state, it) == PodTemplate::Desired;
    let mut down = outdated_members().filter(|(it, entry)| is_down(entry) && can_change(it));
    if let Some((_, down)) = down.find(|(_, entry)| tolerates_losing(state, etcd, entry)) {
        return Some(recreate_or_replace(state, etcd, down));
    }
    if voters().any(|(it, _)| it.replacement_due) {
        return Some((Step::Wait, Reason::RollingUpdateBlocked));
    }
    let canary_running = !outdated_members().all(|(it, _)| can_change(it));
    if canary_running || !etcd.all_voters_healthy() || !tolerates_losing(state, etcd, first) {
        return wait();
    }
    if let Some(follower) = outdated().find(|it| !etcd.leads(it.id)) {
        return Some(recreate_or_replace(state, etcd, follower));
    }
    // All others are as they should be, and one of them leads from now on.
    match etcd.voters().find(|it| it.id != first.id) {
        Some(transferee) => Some((Step::MoveLeader(transferee.id), Reason::RollingUpdate)),
        None => Some(recreate_or_replace(state, etcd, first)),
    }
}

/// A change that the first one to try it does not start with is taken back.
pub(super) fn rollback(state: &ObservedState, etcd: &EtcdState) -> Decision {
    roll_back(state, Some(etcd))
}

/// The same, also where no quorum answers.
pub(super) fn roll_back(state: &ObservedState, etcd: Option<&EtcdState>) -> Decision {
    let mut failing =
        state.remaining().filter(|it| it.failing && caused_by_update(state, etcd, it));
    let failing = failing.next().filter(|_| state.desired.rollback == Rollback::Available)?;
    Some((Step::RollBack(failing.name.clone()), Reason::UpdateFailed))
}

/// Another pod for a member; or another member, if its data would end with its pod.
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

/// Whether the others agree without this one. Of one or two nobody can be spared; but that is what was asked for.
fn tolerates_losing(state: &ObservedState, etcd: &EtcdState, entry: &ListedMember) -> bool {
    let (all, others) = (etcd.voters().count(), etcd.voters().filter(|it| it.id != entry.id));
    let healthy = others.filter(|it| it.is_healthy()).count();
    let is_small = all < MIN_REPLICAS_IN_MEMORY && state.desired.replicas < MIN_REPLICAS_IN_MEMORY;
    healthy >= quorum(all) || is_small && healthy.saturating_add(1) == all
}

/// Whether a member fails because of what is being rolled out: replacing it would bring the same failure back, and would
/// cost a member for each try. If another one runs well that was made so, it fails for reasons of its own.
pub(super) fn caused_by_update(
    state: &ObservedState,
    etcd: Option<&EtcdState>,
    member: &Member,
) -> bool {
    // Its pod does not start, or is refused.
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
        && !state.remaining().any(|it| it.name != member.name && confirms_update(etcd, it))
}

/// Whether a member is as it is wanted, and well.
pub(super) fn confirms_update(etcd: Option<&EtcdState>, member: &Member) -> bool {
    let entry = etcd.and_then(|etcd| voter(etcd, member));
    member.template == TemplateState::UpToDate && entry.is_some_and(ListedMember::is_healthy)
}

fn voter<'a>(etcd: &'a EtcdState, member: &Member) -> Option<&'a ListedMember> {
    etcd.entry(&member.name).filter(|it| !it.is_learner)
}
