//! A member that goes: first from the lead, then from etcd's list, then its pod, then what is left.
//! Comes in: a formed cluster. Goes out: the next of these steps. May touch: nothing; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::Decision;
use crate::etcd_cluster::plan::{Reason, Step};
use crate::etcd_cluster::state::{
    EtcdState, ListedMember, Member, ObservedState, PodState, Reading,
};

pub(super) fn rule(state: &ObservedState, etcd: &EtcdState) -> Decision {
    leaving(state).find_map(|member| next(etcd, member))
}

/// When nobody who goes can go yet. Others speak before this: who has lost its data must not wait for
/// one that cannot go because of it. Nobody waits for the pod of one that has gone: its node may be
/// lost, and it is never deleted by force.
pub(super) fn blocked(state: &ObservedState, etcd: &EtcdState) -> Decision {
    let is_listed = |it: &&Member| etcd.entry(&it.name).is_some();
    leaving(state).find(is_listed).map(|_| (Step::Wait, Reason::RemovalBlocked))
}

fn leaving(state: &ObservedState) -> impl Iterator<Item = &Member> {
    state.members.iter().filter(|it| it.intent.is_leaving())
}

/// The next step of one that goes.
pub(super) fn next(etcd: &EtcdState, member: &Member) -> Decision {
    match etcd.entry(&member.name) {
        Some(entry) => remove_from_etcd(etcd, entry),
        None => delete_objects(member).map(|step| (step, Reason::RemovingMember)),
    }
}

fn remove_from_etcd(etcd: &EtcdState, entry: &ListedMember) -> Decision {
    if entry.is_learner {
        return Some((Step::RemoveMember(entry.id), Reason::RemovingMember));
    }
    if !etcd.survives_losing(entry.id) {
        return None;
    }
    let transferee = etcd.voters().find(|it| it.id != entry.id && it.is_healthy())?;
    // Without this the others would have to find out by themselves.
    let step = if etcd.leads(entry.id) {
        Step::MoveLeader(transferee.id)
    } else {
        Step::RemoveMember(entry.id)
    };
    Some((step, Reason::RemovingMember))
}

/// etcd does not know it any more, so nothing of it is needed.
fn delete_objects(member: &Member) -> Option<Step> {
    match member.pod {
        Reading::Known(PodState::Missing) => Some(Step::DeleteMember(member.name.clone())),
        Reading::Known(
            PodState::Gated | PodState::Active | PodState::DataMissing | PodState::Terminated,
        ) => Some(Step::DeletePod(member.name.clone())),
        Reading::Known(PodState::Terminating) | Reading::Unknown => None,
    }
}
