//! Members have different data, or so it was found. Nothing else happens until they have the same again.
//! Comes in: a formed cluster whose alarm is raised, and which data each member has. Goes out: who is replaced, or that the alarm is
//! over. May touch: nothing; pure. What as many have as must agree is right: etcd acknowledges nothing else. Whoever has other data is
//! retired, one at a time, like one that is lost; and where no data has so many, a person decides.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::{Decision, heal, removal, rollout, unknown_members};
use crate::etcd_cluster::plan::{Reason, Step};
use crate::etcd_cluster::state::defragmentation::Alarm;
use crate::etcd_cluster::state::{EtcdState, Intent, ListedMember, Member, ObservedState, quorum};

pub(super) fn rule(state: &ObservedState, etcd: &EtcdState) -> Decision {
    if !etcd.corrupt {
        return None;
    }
    let Some(majority) = majority_hash(etcd) else {
        let reason = if majority_possible(state, etcd) {
            Reason::CorruptMember
        } else {
            Reason::CorruptionUnresolved
        };
        return Some((Step::Wait, reason));
    };
    if let Some(decision) = leaving(state, etcd, majority) {
        return Some(decision);
    }
    let differs = |it: &&ListedMember| it.data_hash.is_some_and(|it| it != majority);
    if let Some(corrupt) = etcd.members.iter().find(differs) {
        return Some(replace_corrupt(state, etcd, corrupt));
    }
    if etcd.voters().all(|it| it.data_hash == Some(majority)) {
        return Some((Step::DisarmAlarm(Alarm::Corrupt), Reason::CorruptMember));
    }
    // Somebody could not be asked. If it is lost, the others have the same, and it is replaced as at any other time.
    let is_action = |(step, _): &(Step, Reason)| *step != Step::Wait;
    let lost = heal::rule(state, etcd).or_else(|| unknown_members(state, etcd)).filter(is_action);
    // Or it does not start with what is wanted of it.
    let failing = || rollout::rollback(state, etcd);
    // One that is well and yet cannot be compared may never be.
    let is_incomparable = |it: &ListedMember| it.data_hash.is_none() && it.is_healthy();
    let reason = if etcd.voters().any(is_incomparable) {
        Reason::CorruptionUnresolved
    } else {
        Reason::CorruptMember
    };
    Some(lost.or_else(failing).unwrap_or((Step::Wait, reason)))
}

/// The data that as many voters have as must agree.
pub(super) fn majority_hash(etcd: &EtcdState) -> Option<u64> {
    let hashes = || etcd.voters().filter_map(|it| it.data_hash);
    let needed = quorum(etcd.voters().count());
    hashes().find(|copy| hashes().filter(|it| it == copy).count() >= needed)
}

/// Whether so many may have the same that must agree, once those are back who do not answer now.
fn majority_possible(state: &ObservedState, etcd: &EtcdState) -> bool {
    let hashes = || etcd.voters().filter_map(|it| it.data_hash);
    let same = |copy: u64| hashes().filter(|it| *it == copy).count();
    let may_return = |it: &&ListedMember| {
        let is_replacement_due = state.member(&it.name).is_none_or(|it| it.replacement_due);
        it.data_hash.is_none() && !it.is_healthy() && !is_replacement_due
    };
    let away = etcd.voters().filter(may_return).count();
    let most = hashes().map(same).max().unwrap_or(0);
    away > 0 && most.saturating_add(away) >= quorum(etcd.voters().count())
}

/// Whoever goes and has other data goes on its way. One that has the right data is needed to tell what is right.
fn leaving(state: &ObservedState, etcd: &EtcdState, majority: u64) -> Decision {
    let may_leave =
        |it: &&Member| etcd.entry(&it.name).is_none_or(|entry| entry.data_hash != Some(majority));
    let leaving = state.members.iter().filter(|it| it.intent == Intent::Leave).filter(may_leave);
    let mut decisions = leaving.filter_map(|it| removal::next(etcd, it));
    decisions.next().map(|(step, _)| (step, Reason::CorruptMember))
}

fn replace_corrupt(
    state: &ObservedState,
    etcd: &EtcdState,
    corrupt: &ListedMember,
) -> (Step, Reason) {
    if !state.remaining().any(|it| it.name == corrupt.name) {
        return (Step::Wait, Reason::CorruptionUnresolved);
    }
    // Without those who are well the others could not agree: they have to come back first.
    let can_go = corrupt.is_learner || etcd.survives_losing(corrupt.id);
    let step = if can_go { Step::MarkForRemoval(corrupt.name.clone()) } else { Step::Wait };
    (step, Reason::CorruptMember)
}
