//! Marks a voter for removal if it cannot recover and the others have quorum without it.
//!
//! It is removed before its replacement is added: otherwise the quorum would grow while one voter
//! is down.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::{Decision, pods, rollout};
use crate::etcd_cluster::plan::{Reason, Step};
use crate::etcd_cluster::state::{EtcdState, Intent, Member, ObservedState, PodState, Reading};

pub(super) fn rule(state: &ObservedState, etcd: &EtcdState) -> Decision {
    let mut blocked = false;
    for member in state.remaining() {
        match healing(state, etcd, member) {
            Healing::Replace => {
                return Some((Step::MarkForRemoval(member.name.clone()), Reason::ReplacingMember));
            }
            Healing::Blocked => blocked = true,
            Healing::Keep => {}
        }
    }
    blocked.then_some((Step::Wait, Reason::ReplacementBlocked))
}

enum Healing {
    Keep,
    Replace,
    Blocked,
}

fn healing(state: &ObservedState, etcd: &EtcdState, member: &Member) -> Healing {
    let Some(entry) = etcd.entry(&member.name) else {
        // An initial member that was removed from etcd's list. New members have their own rule.
        return if member.intent == Intent::Bootstrap { Healing::Replace } else { Healing::Keep };
    };
    // A reachable member is not lost, whatever its objects look like. A pod from a template that
    // was rolled back is recreated before the member is replaced.
    let is_recreated = pods::is_inactive_and_stale(state, member)
        && member.pod == Reading::Known(PodState::Active);
    let is_own_failure = !rollout::caused_by_update(state, Some(etcd), member);
    let is_replacement_due = member.replacement_due && !is_recreated && is_own_failure;
    let is_lost = is_replacement_due || member.has_lost_data(&state.desired);
    if entry.is_learner || !is_lost || entry.healthy != Reading::Known(false) {
        return Healing::Keep;
    }
    if etcd.survives_losing(entry.id) { Healing::Replace } else { Healing::Blocked }
}
