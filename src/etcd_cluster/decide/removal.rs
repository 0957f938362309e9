//! Removes a member: leadership first, then etcd's member list, then the pod, then its other
//! objects.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::Decision;
use crate::etcd_cluster::plan::{Reason, Step};
use crate::etcd_cluster::state::{
    EtcdState, ListedMember, Member, ObservedState, PodState, Reading,
};

pub(super) fn rule(state: &ObservedState, etcd: &EtcdState) -> Decision {
    leaving(state).find_map(|member| next(etcd, member))
}

/// The reason if no member can be removed yet. Other rules come before this: replacing a member
/// that lost its data must not wait for a removal that is blocked by it. The pod of a removed
/// member is not waited for: its node may be lost, and pods are never force-deleted.
pub(super) fn blocked(state: &ObservedState, etcd: &EtcdState) -> Decision {
    let is_listed = |member: &&Member| etcd.entry(&member.name).is_some();
    leaving(state).find(is_listed).map(|_| (Step::Wait, Reason::RemovalBlocked))
}

fn leaving(state: &ObservedState) -> impl Iterator<Item = &Member> {
    state.members.iter().filter(|member| member.intent.is_leaving())
}

/// The next step of a removal.
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
    let transferee = etcd.voters().find(|other| other.id != entry.id && other.is_healthy())?;
    // Without a transfer the others would have to time out and elect a leader.
    let step = if etcd.leads(entry.id) {
        Step::MoveLeader(transferee.id)
    } else {
        Step::RemoveMember(entry.id)
    };
    Some((step, Reason::RemovingMember))
}

/// Deletes the objects of a member that etcd does not list any more.
fn delete_objects(member: &Member) -> Option<Step> {
    match member.pod {
        Reading::Known(PodState::Missing) => Some(Step::DeleteMember(member.name.clone())),
        Reading::Known(
            PodState::Gated | PodState::Active | PodState::DataMissing | PodState::Terminated,
        ) => Some(Step::DeletePod(member.name.clone())),
        Reading::Known(PodState::Terminating) | Reading::Unknown => None,
    }
}
