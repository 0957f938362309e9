//! The founding of a cluster: all founders at once, and who they are is decided once.
//! Comes in: a cluster that was not formed yet. Goes out: a whole plan, of chores alone.
//! May touch: nothing; pure. The founders are written down before the first is made: an edit of the
//! size meanwhile must not change what the first of them was told of the others.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::pods;
use crate::etcd_cluster::plan::{Because, Chore, Plan, Step};
use crate::etcd_cluster::seen::{Reading, Seen, quorum};

pub(super) fn plan(seen: &Seen) -> Plan {
    let (chores, because) = said(seen);
    Plan { chores, step: Step::Wait, because }
}

fn said(seen: &Seen) -> (Vec<Chore>, Because) {
    let founders = &seen.record.founders;
    if founders.is_empty() {
        let names: Vec<_> = seen.free_names.iter().take(seen.wanted.replicas).cloned().collect();
        return match names.len() {
            0 => (Vec::new(), Because::Well),
            _ => (vec![Chore::RecordFounders(names)], Because::Founding),
        };
    }
    // Before anything else: from now on nobody founds any more.
    if let Reading::Known(etcd) = &seen.etcd {
        return (vec![Chore::RecordFormed(etcd.cluster)], Because::Forming);
    }
    let missing = founders.iter().filter(|name| seen.member(name).is_none()).cloned();
    // Somebody deleted its EtcdMember. Whether it ever was anybody is not known, so it founds no more.
    let make: fn(_) -> Chore = if seen.record.begun { Chore::Adopt } else { Chore::MakeFounder };
    let missing: Vec<Chore> = missing.map(make).collect();
    if !missing.is_empty() {
        return (missing, Because::Founding);
    }
    let mut chores = pods::chores(seen);
    if !seen.record.begun && chores.iter().any(|it| matches!(it, Chore::LetGo(_))) {
        chores.retain(|it| !matches!(it, Chore::LetGo(_)));
        chores.push(Chore::RecordBegun);
    }
    let lost = |it: &&_| seen.member(it).is_some_and(|it| it.has_lost_its_data(&seen.wanted));
    let left = founders.len().saturating_sub(founders.iter().filter(lost).count());
    let can_form = left >= quorum(founders.len());
    let because = if can_form { Because::Forming } else { Because::FoundersLost };
    (chores, because)
}
