//! A voter that will not come back by itself is retired, if the others can do without it.
//! Comes in: a formed cluster. Goes out: whom to retire. May touch: nothing; pure.
//! It goes before its successor comes: a successor that came first would raise the number that must
//! agree while one of them is dead.
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
        // A founder that somebody struck from the list. Joiners have a rule of their own.
        return if member.intent == Intent::Bootstrap { Healing::Replace } else { Healing::Keep };
    };
    // Who answers is not lost, whatever its objects look like.
    // Whose pod was made from what was taken back gets another one first.
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
