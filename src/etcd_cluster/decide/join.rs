//! Adds a member: as a learner first, and as a voter once it has caught up.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::Decision;
use crate::etcd_cluster::plan::{Reason, Step};
use crate::etcd_cluster::state::{EtcdState, Intent, Member, ObservedState};

pub(super) fn rule(state: &ObservedState, etcd: &EtcdState) -> Decision {
    let joining = state.members.iter().filter(|member| member.intent == Intent::Join);
    let mut decisions = joining.filter_map(|member| next(state, etcd, member));
    decisions.next()
}

fn next(state: &ObservedState, etcd: &EtcdState, member: &Member) -> Decision {
    let replace = || Some((Step::MarkForRemoval(member.name.clone()), Reason::LearnerFailed));
    let Some(entry) = etcd.entry(&member.name) else {
        // etcd listed the member before, and does not any more. It cannot rejoin under this name.
        if member.started {
            return replace();
        }
        // An unhealthy voter is removed first: etcd rejects additions while one is missing.
        let can_add = etcd.learners().next().is_none() && etcd.all_voters_healthy();
        return can_add.then(|| (Step::AddLearner(member.name.clone()), Reason::AddingMember));
    };
    if !entry.is_learner {
        return None;
    }
    if entry.is_healthy() {
        return Some((Step::PromoteLearner(entry.id), Reason::AddingMember));
    }
    if member.replacement_due || member.is_stale() || member.has_lost_data(&state.desired) {
        return replace();
    }
    None
}

/// Waits for a learner. Other rules come before this: replacing a lost voter must not wait for it.
pub(super) fn waiting(_: &ObservedState, etcd: &EtcdState) -> Decision {
    etcd.learners().next().map(|_| (Step::Wait, Reason::AddingMember))
}
