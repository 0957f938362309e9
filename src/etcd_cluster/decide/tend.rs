//! Files are rewritten to give back what is free in them, one member at a time, the leader last: on a schedule, where it is worth it,
//! and where a file has reached its quota.
//! Comes in: a formed cluster. Goes out: whose turn is next. May touch: nothing; pure.
//! Who rewrites its file answers nobody meanwhile. So every voter has shown before that it is well, with a read that needs a
//! quorum, and nobody listens who would have to be sent everything. Each member has two turns in a round at the most: what
//! does not help is not tried for ever.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::Said;
use crate::etcd_cluster::plan::{Because, Step};
use crate::etcd_cluster::seen::upkeep::{Alarm, Occasion, Space, Upkeep};
use crate::etcd_cluster::seen::{Course, Etcd, Member, Name, Pod, Reading, Registered, Seen};

/// The second is for a call that was written down and never made.
const MOST_TURNS: usize = 2;
/// Of so many nobody can be spared.
const FEW: usize = 2;

/// One that rewrites its file is waited for, before anybody else is disturbed.
pub(super) fn begun(seen: &Seen, etcd: &Etcd) -> Said {
    let entry = etcd.entry(seen.upkeep.rewriting.as_ref()?)?;
    let because = match etcd.space {
        Space::Enough => Because::Defragmenting,
        Space::Full | Space::Regained => Because::NoSpace,
    };
    (!entry.is_well()).then_some((Step::Wait, because))
}

/// One of two, or the only one, rewrites its file: nobody is answered meanwhile, and that is no loss.
pub(super) fn alone(seen: &Seen) -> Said {
    let Upkeep { rewriting: Some(_), round: Some(round), .. } = &seen.upkeep else { return None };
    let because = match round.occasion {
        Occasion::Schedule | Occasion::Threshold => Because::Defragmenting,
        Occasion::NoSpace => Because::NoSpace,
    };
    let runs = |it: &Member| it.pod == Reading::Known(Pod::Started) && !it.fails;
    let is_it = seen.staying().count() <= FEW && seen.staying().all(runs);
    is_it.then_some((Step::Wait, because))
}

/// A file has reached its quota, and nobody can write. If room can be made it is; then the alarm is ended, and not before.
pub(super) fn no_space(seen: &Seen, etcd: &Etcd) -> Said {
    if etcd.space == Space::Enough || !can_be_disturbed(etcd) {
        return None;
    }
    if etcd.space == Space::Regained {
        return Some((Step::Disarm(Alarm::NoSpace), Because::NoSpace));
    }
    if let Some(step) = next(&seen.upkeep, etcd) {
        return Some((step, Because::NoSpace));
    }
    // A larger quota may be what members should be made anew for.
    if seen.staying().any(Member::is_outdated) && !etcd.alarmed {
        return None;
    }
    Some((Step::Wait, Because::NoSpaceStays))
}

/// Nothing else is to be done.
pub(super) fn rule(seen: &Seen, etcd: &Etcd) -> Said {
    let is_there = match seen.wanted.course {
        Course::Reached | Course::NoWay => true,
        Course::Further | Course::Down => false,
    };
    if !is_there || etcd.alarmed || seen.wanted.clients_move || !can_be_disturbed(etcd) {
        return None;
    }
    next(&seen.upkeep, etcd).map(|step| (step, Because::Defragmenting))
}

fn can_be_disturbed(etcd: &Etcd) -> bool {
    etcd.all_voters_are_well() && etcd.learners().next().is_none()
}

/// The next step of a round that goes on, or should begin.
fn next(upkeep: &Upkeep, etcd: &Etcd) -> Option<Step> {
    let Upkeep { round, due, rewriting: _, history, settling } = upkeep;
    let turns: &[Name] = match (round, due) {
        (Some(round), _) => &round.turns,
        (None, Some(_)) => &[],
        (None, None) => return None,
    };
    if let Some(revision) = history {
        return Some(Step::Compact(*revision));
    }
    let had = |of: &Name| turns.iter().filter(|it| *it == of).count();
    let has_turn = |it: &&Registered| it.worth && had(&it.name) < MOST_TURNS;
    let waiting = || etcd.voters().filter(has_turn);
    if let Some(follower) = waiting().find(|it| !etcd.leads(it.id)) {
        return Some(Step::Defragment(follower.name.clone()));
    }
    let Some(last) = waiting().next() else {
        return Some(if *settling { Step::Wait } else { Step::EndUpkeep });
    };
    let heir = etcd.voters().find(|it| it.id != last.id);
    Some(heir.map_or_else(
        || Step::Defragment(last.name.clone()),
        // All others had their turn, and one of them leads from now on.
        |heir| Step::MoveLeader(heir.id),
    ))
}
