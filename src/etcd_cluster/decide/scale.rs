//! Scales to the desired number of members, one at a time, and only while all voters are healthy.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::cmp::Ordering;

use super::Decision;
use crate::etcd_cluster::plan::{Reason, Step};
use crate::etcd_cluster::state::{EtcdState, Intent, Member, ObservedState};

pub(super) fn rule(state: &ObservedState, etcd: &EtcdState) -> Decision {
    let is_joining =
        |member: &Member| member.intent == Intent::Join && etcd.entry(&member.name).is_none();
    match state.remaining().count().cmp(&state.desired.replicas) {
        Ordering::Equal => None,
        Ordering::Less if state.remaining().any(is_joining) => None,
        Ordering::Less => {
            let name = state.candidate_names.first()?;
            etcd.all_voters_healthy().then(|| (Step::CreateMember(name.clone()), Reason::ScalingUp))
        }
        Ordering::Greater => {
            let leaving = removal_candidate(state, etcd)?;
            Some((Step::MarkForRemoval(leaving.name.clone()), Reason::ScalingDown))
        }
    }
}

/// The member to remove: one that has not joined yet, else the newest follower, else the leader.
/// The last voter is never removed: its data would be lost.
fn removal_candidate<'a>(state: &'a ObservedState, etcd: &EtcdState) -> Option<&'a Member> {
    let newest_first = || state.members.iter().rev().filter(|member| !member.intent.is_leaving());
    if let Some(joining) = newest_first().find(|member| etcd.entry(&member.name).is_none()) {
        return Some(joining);
    }
    if !etcd.all_voters_healthy() {
        return None;
    }
    let entry = |member: &Member| etcd.entry(&member.name);
    let can_remove =
        |member: &&Member| entry(member).is_some_and(|entry| etcd.survives_losing(entry.id));
    let leads = |member: &Member| entry(member).is_some_and(|entry| etcd.leads(entry.id));
    let follower = newest_first().filter(can_remove).find(|member| !leads(member));
    follower.or_else(|| newest_first().find(can_remove))
}
