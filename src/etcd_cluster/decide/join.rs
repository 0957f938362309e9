//! A member that comes: etcd hears of it, it listens until it knows everything, then it votes.
//! Comes in: a formed cluster. Goes out: the next of these steps. May touch: nothing; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::Said;
use crate::etcd_cluster::plan::{Because, Step};
use crate::etcd_cluster::seen::{Etcd, Intent, Member, Seen};

pub(super) fn rule(seen: &Seen, etcd: &Etcd) -> Said {
    let joiners = seen.members.iter().filter(|it| it.intent == Intent::Join);
    let mut said = joiners.filter_map(|member| one(seen, etcd, member));
    said.next()
}

fn one(seen: &Seen, etcd: &Etcd, member: &Member) -> Said {
    let retire = || Some((Step::Retire(member.name.clone()), Because::JoinFailed));
    let Some(entry) = etcd.entry(&member.name) else {
        // etcd knew it, and does not any more. It cannot come back under this name.
        if member.had_pod {
            return retire();
        }
        // A dead voter must go first: etcd takes nobody while one is missing.
        let is_free = etcd.learners().next().is_none() && etcd.all_voters_are_well();
        return is_free.then(|| (Step::AddLearner(member.name.clone()), Because::Joining));
    };
    if !entry.learner {
        return None;
    }
    if entry.is_well() {
        return Some((Step::Promote(entry.id), Because::Joining));
    }
    if member.given_up || member.is_stale() || member.has_lost_its_data(&seen.wanted) {
        return retire();
    }
    None
}

/// When one who comes is awaited. Others speak before this: a voter that is lost must not wait for a learner.
pub(super) fn waiting(_: &Seen, etcd: &Etcd) -> Said {
    etcd.learners().next().map(|_| (Step::Wait, Because::Joining))
}
