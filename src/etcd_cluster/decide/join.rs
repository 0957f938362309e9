//! A member that comes: etcd hears of it, it listens until it knows everything, then it votes.
//! Comes in: a formed cluster. Goes out: the next of these steps. May touch: nothing; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::Decision;
use crate::etcd_cluster::plan::{Reason, Step};
use crate::etcd_cluster::state::{EtcdState, Intent, Member, ObservedState};

pub(super) fn rule(state: &ObservedState, etcd: &EtcdState) -> Decision {
    let joining = state.members.iter().filter(|it| it.intent == Intent::Join);
    let mut decisions = joining.filter_map(|member| next(state, etcd, member));
    decisions.next()
}

fn next(state: &ObservedState, etcd: &EtcdState, member: &Member) -> Decision {
    let retire = || Some((Step::MarkForRemoval(member.name.clone()), Reason::LearnerFailed));
    let Some(entry) = etcd.entry(&member.name) else {
        // etcd knew it, and does not any more. It cannot come back under this name.
        if member.started {
            return retire();
        }
        // A dead voter must go first: etcd takes nobody while one is missing.
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
        return retire();
    }
    None
}

/// When one who comes is awaited. Others speak before this: a voter that is lost must not wait for a learner.
pub(super) fn waiting(_: &ObservedState, etcd: &EtcdState) -> Decision {
    etcd.learners().next().map(|_| (Step::Wait, Reason::AddingMember))
}
