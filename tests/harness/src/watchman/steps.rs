//! The members of a cluster, from one moment to the next: one change at a time, one learner at most, one cluster
//! for ever. No clock and no client.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::etcd::Listed;

/// Between two looks that are further apart, more than one change may have its time.
const CLOSE: Duration = Duration::from_millis(500);

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Steps {
    last: Option<(Duration, BTreeMap<u64, bool>)>,
    cluster: Option<u64>,
    pub(super) looks: u32,
    pub(super) changes: u32,
    pub(super) most: usize,
    complaints: BTreeSet<String>,
}

impl Steps {
    /// The list as it was at this moment.
    pub(super) fn see(&mut self, at: Duration, listed: &Listed) {
        self.looks = self.looks.saturating_add(1);
        self.most = self.most.max(listed.members.len());
        let cluster = *self.cluster.get_or_insert(listed.cluster);
        if cluster != listed.cluster {
            let words = format!("cluster {cluster:x} has become {:x}", listed.cluster);
            self.complaints.insert(words);
        }
        let learners = listed.members.iter().filter(|it| it.learner);
        let learners: Vec<String> = learners.map(ToString::to_string).collect();
        if learners.len() > 1 {
            self.complaints.insert(format!("two learn at once: {}", learners.join(", ")));
        }
        let now: BTreeMap<u64, bool> =
            listed.members.iter().map(|it| (it.id, it.learner)).collect();
        if let Some((before, was)) = self.last.replace((at, now.clone())) {
            self.compare(at.saturating_sub(before), &was, &now);
        }
    }

    fn compare(&mut self, apart: Duration, was: &BTreeMap<u64, bool>, now: &BTreeMap<u64, bool>) {
        let come = now.keys().filter(|id| !was.contains_key(id)).count();
        let gone = was.keys().filter(|id| !now.contains_key(id)).count();
        let promoted = |(id, learner): &(&u64, &bool)| !**learner && was.get(id) == Some(&true);
        let promoted = now.iter().filter(promoted).count();
        let all = come.saturating_add(gone).saturating_add(promoted);
        self.changes = self.changes.saturating_add(u32::try_from(all).unwrap_or(u32::MAX));
        // One that goes makes room for one that comes, so these two may be close.
        if apart <= CLOSE && [come, gone, promoted].iter().any(|number| *number > 1) {
            let words = format!("{come} came, {gone} went, {promoted} were promoted at once");
            self.complaints.insert(words);
        }
    }

    /// What was wrong, in words.
    pub(super) fn words(&self) -> Vec<String> {
        self.complaints.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::Registered;

    const MOMENT: Duration = Duration::from_millis(200);

    fn list(cluster: u64, members: &[(u64, bool)]) -> Listed {
        let member =
            |&(id, learner): &(u64, bool)| Registered { id, name: format!("m{id}"), learner };
        Listed { cluster, members: members.iter().map(member).collect() }
    }

    fn seen(apart: Duration, lists: &[Listed]) -> Steps {
        let mut steps = Steps::default();
        let mut at = Duration::ZERO;
        for listed in lists {
            steps.see(at, listed);
            at = at.saturating_add(apart);
        }
        steps
    }

    #[test]
    fn one_after_the_other_is_how_it_should_be() {
        let steps = seen(
            MOMENT,
            &[
                list(1, &[(1, false)]),
                list(1, &[(1, false), (2, true)]),
                list(1, &[(1, false), (2, false)]),
                list(1, &[(2, false)]),
            ],
        );
        assert!(steps.words().is_empty(), "{:?}", steps.words());
        assert_eq!((steps.changes, steps.most), (3, 2));
    }

    #[test]
    fn two_at_once_two_learners_and_another_cluster_are_seen() {
        let two =
            seen(MOMENT, &[list(1, &[(1, false)]), list(1, &[(1, false), (2, false), (3, false)])]);
        assert_eq!(two.words(), ["2 came, 0 went, 0 were promoted at once"]);
        let learners = seen(MOMENT, &[list(1, &[(1, true), (2, true)])]);
        assert_eq!(learners.words().len(), 1);
        let other = seen(MOMENT, &[list(1, &[(1, false)]), list(2, &[(1, false)])]);
        assert_eq!(other.words(), ["cluster 1 has become 2"]);
    }

    #[test]
    fn what_nobody_saw_is_not_complained_of() {
        let apart = Duration::from_secs(5);
        let steps = seen(apart, &[list(1, &[(1, false)]), list(1, &[(2, false), (3, false)])]);
        assert!(steps.words().is_empty());
    }
}
