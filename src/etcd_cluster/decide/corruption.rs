//! Handles the CORRUPT alarm: members have different data, and nothing else is done until they
//! match.
//!
//! The data that a quorum of voters has is right: etcd acknowledges nothing else. Members with
//! other data are replaced one at a time, like lost ones. Without such a majority the user must
//! decide.
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
    let differs = |entry: &&ListedMember| entry.data_hash.is_some_and(|hash| hash != majority);
    if let Some(corrupt) = etcd.members.iter().find(differs) {
        return Some(replace_corrupt(state, etcd, corrupt));
    }
    if etcd.voters().all(|entry| entry.data_hash == Some(majority)) {
        return Some((Step::DisarmAlarm(Alarm::Corrupt), Reason::CorruptMember));
    }
    // A member could not be read. If it is lost, the others match, and it is replaced as usual.
    let is_action = |(step, _): &(Step, Reason)| *step != Step::Wait;
    let lost = heal::rule(state, etcd).or_else(|| unknown_members(state, etcd)).filter(is_action);
    // Or it does not start with the desired template.
    let failing = || rollout::rollback(state, etcd);
    // If the data of a healthy member cannot be read, that may last for good.
    let is_incomparable = |entry: &ListedMember| entry.data_hash.is_none() && entry.is_healthy();
    let reason = if etcd.voters().any(is_incomparable) {
        Reason::CorruptionUnresolved
    } else {
        Reason::CorruptMember
    };
    Some(lost.or_else(failing).unwrap_or((Step::Wait, reason)))
}

/// The hash that a quorum of voters has.
pub(super) fn majority_hash(etcd: &EtcdState) -> Option<u64> {
    let hashes = || etcd.voters().filter_map(|entry| entry.data_hash);
    let needed = quorum(etcd.voters().count());
    hashes().find(|hash| hashes().filter(|other| other == hash).count() >= needed)
}

/// Whether a quorum of voters may have the same data once unreachable voters are back.
fn majority_possible(state: &ObservedState, etcd: &EtcdState) -> bool {
    let hashes = || etcd.voters().filter_map(|entry| entry.data_hash);
    let same = |hash: u64| hashes().filter(|other| *other == hash).count();
    let may_return = |entry: &&ListedMember| {
        let is_replacement_due =
            state.member(&entry.name).is_none_or(|member| member.replacement_due);
        entry.data_hash.is_none() && !entry.is_healthy() && !is_replacement_due
    };
    let unreachable = etcd.voters().filter(may_return).count();
    let largest = hashes().map(same).max().unwrap_or(0);
    unreachable > 0 && largest.saturating_add(unreachable) >= quorum(etcd.voters().count())
}

/// Continues the removal of members with other data. One with the right data is needed for the
/// majority.
fn leaving(state: &ObservedState, etcd: &EtcdState, majority: u64) -> Decision {
    let may_leave = |member: &&Member| {
        etcd.entry(&member.name).is_none_or(|entry| entry.data_hash != Some(majority))
    };
    let is_leaving = |member: &&Member| member.intent == Intent::Leave;
    let leaving = state.members.iter().filter(is_leaving).filter(may_leave);
    let mut decisions = leaving.filter_map(|member| removal::next(etcd, member));
    decisions.next().map(|(step, _)| (step, Reason::CorruptMember))
}

fn replace_corrupt(
    state: &ObservedState,
    etcd: &EtcdState,
    corrupt: &ListedMember,
) -> (Step, Reason) {
    if !state.remaining().any(|member| member.name == corrupt.name) {
        return (Step::Wait, Reason::CorruptionUnresolved);
    }
    // If the others have no quorum without it, unreachable members must return first.
    let can_go = corrupt.is_learner || etcd.survives_losing(corrupt.id);
    let step = if can_go { Step::MarkForRemoval(corrupt.name.clone()) } else { Step::Wait };
    (step, Reason::CorruptMember)
}
