//! The member list over time: one change at a time, at most one learner, and always the same
//! cluster ID. No clock and no client.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::etcd::MemberList;

/// Between two reads that are further apart, more than one change may have happened.
const MAX_READ_GAP: Duration = Duration::from_millis(500);

/// What was observed so far.
#[derive(Debug, Default)]
pub(super) struct MembershipHistory {
    /// The last list: the ID of each member, and whether it is a learner.
    last: Option<(Duration, BTreeMap<u64, bool>)>,
    cluster: Option<u64>,
    pub(super) lists: u32,
    pub(super) changes: u32,
    pub(super) max_members: usize,
    violations: BTreeSet<String>,
}

impl MembershipHistory {
    /// Adds the list as read at this time.
    pub(super) fn observe(&mut self, at: Duration, list: &MemberList) {
        self.lists = self.lists.saturating_add(1);
        self.max_members = self.max_members.max(list.members.len());
        let cluster = *self.cluster.get_or_insert(list.cluster);
        if cluster != list.cluster {
            let message = format!("cluster ID {cluster:x} changed to {:x}", list.cluster);
            self.violations.insert(message);
        }
        let learners = list.members.iter().filter(|member| member.is_learner);
        let learners: Vec<String> = learners.map(ToString::to_string).collect();
        if learners.len() > 1 {
            self.violations.insert(format!("two learners at once: {}", learners.join(", ")));
        }
        let now: BTreeMap<u64, bool> =
            list.members.iter().map(|member| (member.id, member.is_learner)).collect();
        if let Some((before, was)) = self.last.replace((at, now.clone())) {
            self.compare(at.saturating_sub(before), &was, &now);
        }
    }

    fn compare(&mut self, gap: Duration, was: &BTreeMap<u64, bool>, now: &BTreeMap<u64, bool>) {
        let added = now.keys().filter(|id| !was.contains_key(id)).count();
        let removed = was.keys().filter(|id| !now.contains_key(id)).count();
        let promoted = |(id, learner): &(&u64, &bool)| !**learner && was.get(id) == Some(&true);
        let promoted = now.iter().filter(promoted).count();
        let all = added.saturating_add(removed).saturating_add(promoted);
        self.changes = self.changes.saturating_add(u32::try_from(all).unwrap_or(u32::MAX));
        // A removed member is followed by its replacement, so one removal and one addition may be
        // close.
        if gap <= MAX_READ_GAP && [added, removed, promoted].iter().any(|number| *number > 1) {
            let message = format!("{added} added, {removed} removed, {promoted} promoted at once");
            self.violations.insert(message);
        }
    }

    /// One message for each violation.
    pub(super) fn messages(&self) -> Vec<String> {
        self.violations.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::ListedMember;

    const CLOSE: Duration = Duration::from_millis(200);

    fn list(cluster: u64, members: &[(u64, bool)]) -> MemberList {
        let member = |&(id, is_learner): &(u64, bool)| ListedMember {
            id,
            name: format!("m{id}"),
            is_learner,
        };
        MemberList { cluster, members: members.iter().map(member).collect() }
    }

    fn observed(gap: Duration, lists: &[MemberList]) -> MembershipHistory {
        let mut history = MembershipHistory::default();
        let mut at = Duration::ZERO;
        for list in lists {
            history.observe(at, list);
            at = at.saturating_add(gap);
        }
        history
    }

    #[test]
    fn one_change_at_a_time_is_no_violation() {
        let history = observed(
            CLOSE,
            &[
                list(1, &[(1, false)]),
                list(1, &[(1, false), (2, true)]),
                list(1, &[(1, false), (2, false)]),
                list(1, &[(2, false)]),
            ],
        );
        assert!(history.messages().is_empty(), "{:?}", history.messages());
        assert_eq!((history.changes, history.max_members), (3, 2));
    }

    #[test]
    fn two_changes_at_once_two_learners_and_another_cluster_id_are_violations() {
        let two = observed(
            CLOSE,
            &[list(1, &[(1, false)]), list(1, &[(1, false), (2, false), (3, false)])],
        );
        assert_eq!(two.messages(), ["2 added, 0 removed, 0 promoted at once"]);
        let learners = observed(CLOSE, &[list(1, &[(1, true), (2, true)])]);
        assert_eq!(learners.messages().len(), 1);
        let other = observed(CLOSE, &[list(1, &[(1, false)]), list(2, &[(1, false)])]);
        assert_eq!(other.messages(), ["cluster ID 1 changed to 2"]);
    }

    #[test]
    fn changes_between_distant_reads_are_no_violation() {
        let gap = Duration::from_secs(5);
        let history = observed(gap, &[list(1, &[(1, false)]), list(1, &[(2, false), (3, false)])]);
        assert!(history.messages().is_empty());
    }
}
