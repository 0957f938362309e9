//! The founding of a cluster: all founders at once, and who they are is decided once.
//! Comes in: a cluster that was not formed yet. Goes out: a whole plan, of chores alone.
//! May touch: nothing; pure. The founders are written down before the first is made: an edit of the
//! size meanwhile must not change what the first of them was told of the others. Until it was written
//! down that they are a cluster nobody can have written to them, and they can be given up.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::pods;
use crate::api::told::Told;
use crate::etcd_cluster::plan::{Because, Chore, Plan, Step};
use crate::etcd_cluster::seen::{Member, Name, Pod, Reading, Seen, Volume, quorum};

type Said = (Vec<Chore>, Because);

pub(super) fn plan(seen: &Seen) -> Plan {
    let founders = &seen.record.founders;
    let (chores, because) = if seen.record.abandoned {
        abandoned(seen)
    } else if !founders.is_empty() {
        founding(seen, founders)
    } else if seen.members.is_empty() {
        nobody_yet(seen)
    } else {
        forgotten(seen)
    };
    Plan { chores, step: Step::Wait, because }
}

/// Nothing was ever begun.
fn nobody_yet(seen: &Seen) -> Said {
    // Volumes that were made for this very cluster: there were members, and everything about them is lost.
    if !seen.orphans.is_empty() {
        let adopted = seen.orphans.iter().cloned().map(Chore::Adopt);
        return (adopted.collect(), Because::QuorumLost);
    }
    if !seen.predecessors.is_empty() {
        return (Vec::new(), Because::PredecessorThere);
    }
    if !seen.retained.is_empty() {
        return (Vec::new(), Because::VolumesRetained);
    }
    match first_names(seen) {
        names if names.is_empty() => (Vec::new(), Because::Asleep),
        names => (vec![Chore::RecordFounders(names)], Because::Founding),
    }
}

fn first_names(seen: &Seen) -> Vec<Name> {
    seen.free_names.iter().take(seen.wanted.replicas).cloned().collect()
}

/// There are members, and what was written down about them is lost, as after a restore of the
/// objects without their status. Who was somebody comes back; nobody founds.
fn forgotten(seen: &Seen) -> Said {
    if let Reading::Known(etcd) = &seen.etcd {
        return (vec![Chore::RecordFormed(etcd.cluster)], Because::Forming);
    }
    if seen.wanted.replicas == 0 {
        return (pods::put_to_sleep(seen), Because::Asleep);
    }
    let mut chores = pods::chores(seen);
    chores.retain(|it| match it {
        Chore::MakePod { told, .. } => *told == Told::Return,
        Chore::Adopt(_) | Chore::ClearPod(_) => true,
        Chore::RecordFounders(_)
        | Chore::RecordAbandoned
        | Chore::Scrap(_)
        | Chore::RecordBegun
        | Chore::RecordFormed(_)
        | Chore::MakeFounder(_)
        | Chore::RecordPod(_)
        | Chore::LetGo(_)
        | Chore::Sleep(_) => false,
    });
    (chores, Because::QuorumLost)
}

fn abandoned(seen: &Seen) -> Said {
    let members = seen.members.iter().map(|it| &it.name);
    let left: Vec<_> = members.chain(&seen.orphans).cloned().map(Chore::Scrap).collect();
    if left.is_empty() {
        return (vec![Chore::RecordFounders(first_names(seen))], Because::Founding);
    }
    (left, Because::FoundersLost)
}

fn founding(seen: &Seen, founders: &[Name]) -> Said {
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
    if is_hopeless(seen, founders) {
        return (vec![Chore::RecordAbandoned], Because::FoundersLost);
    }
    let mut chores = pods::chores(seen);
    if !seen.record.begun && chores.iter().any(|it| matches!(it, Chore::LetGo(_))) {
        chores.retain(|it| !matches!(it, Chore::LetGo(_)));
        chores.push(Chore::RecordBegun);
    }
    (chores, Because::Forming)
}

/// Whether too few can still become a cluster, or one cannot start as it was made and would start as
/// it would be made now.
fn is_hopeless(seen: &Seen, founders: &[Name]) -> bool {
    let member = |name| seen.member(name);
    // A pod that is on its way out for so long is on a node that is lost.
    let is_stuck = |it: &Member| it.given_up && it.pod == Reading::Known(Pod::Going);
    let is_lost = |it: &&Member| it.has_lost_its_data(&seen.wanted) || is_stuck(it);
    let lost = founders.iter().filter_map(member).filter(is_lost).count();
    let left = founders.len().saturating_sub(lost);
    // Its volume was never made, or was deleted before it was used.
    let lacks_volume = |it: &Member| {
        seen.wanted.durable
            && it.volume == Reading::Known(Volume::None)
            && matches!(it.pod, Reading::Known(Pod::Gated | Pod::Started))
    };
    let cannot_start = |it: &Member| it.is_stale() || lacks_volume(it);
    left < quorum(founders.len()) || founders.iter().filter_map(member).any(cannot_start)
}
