//! As many members as are wanted, one by one, and only while all are well.
//! Comes in: a formed cluster in which nobody comes or goes. Goes out: who comes or goes next.
//! May touch: nothing; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::cmp::Ordering;

use super::Decision;
use crate::etcd_cluster::plan::{Reason, Step};
use crate::etcd_cluster::state::{EtcdState, Intent, Member, ObservedState};

pub(super) fn rule(state: &ObservedState, etcd: &EtcdState) -> Decision {
    let is_expected = |it: &&Member| it.intent == Intent::Join && etcd.entry(&it.name).is_none();
    match state.remaining().count().cmp(&state.desired.replicas) {
        Ordering::Equal => None,
        Ordering::Less if state.remaining().any(|it| is_expected(&it)) => None,
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

/// Who goes: whoever has not come yet, else the youngest that does not lead, else the leader. The last
/// one never does: its data would go with it.
fn removal_candidate<'a>(state: &'a ObservedState, etcd: &EtcdState) -> Option<&'a Member> {
    let newest_first = || state.members.iter().rev().filter(|it| !it.intent.is_leaving());
    if let Some(expected) = newest_first().find(|it| etcd.entry(&it.name).is_none()) {
        return Some(expected);
    }
    if !etcd.all_voters_healthy() {
        return None;
    }
    let can_go =
        |it: &&Member| etcd.entry(&it.name).is_some_and(|entry| etcd.survives_losing(entry.id));
    let leads = |it: &Member| etcd.entry(&it.name).is_some_and(|entry| etcd.leads(entry.id));
    let followers = newest_first().filter(can_go).find(|it| !leads(it));
    followers.or_else(|| newest_first().find(can_go))
}
