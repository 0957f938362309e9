//! Files are rewritten to give back what is free in them, one member at a time, the leader last: on a schedule, where it is worth it,
//! and where a file has reached its quota.
//! Comes in: a formed cluster. Goes out: whose turn is next. May touch: nothing; pure.
//! Who rewrites its file answers nobody meanwhile. So every voter has shown before that it is well, with a read that needs a
//! quorum, and nobody listens who would have to be sent everything. Each member has two turns in a round at the most: what
//! does not help is not tried for ever.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::Decision;
use crate::etcd_cluster::plan::{Reason, Step};
use crate::etcd_cluster::state::defragmentation::{Alarm, DefragTrigger, Defragmentation, Quota};
use crate::etcd_cluster::state::{
    EtcdState, ListedMember, Member, MemberName, ObservedState, PodState, Reading, VersionProgress,
};

/// The second is for a call that was written down and never made.
const MAX_RUNS_PER_MEMBER: usize = 2;
/// Of so many nobody can be spared.
const SMALL_CLUSTER: usize = 2;

/// One that rewrites its file is waited for, before anybody else is disturbed.
pub(super) fn in_progress(state: &ObservedState, etcd: &EtcdState) -> Decision {
    let entry = etcd.entry(state.upkeep.rewriting.as_ref()?)?;
    let reason = match etcd.space {
        Quota::Ok => Reason::Defragmenting,
        Quota::Exceeded | Quota::Recovered => Reason::NoSpace,
    };
    (!entry.is_healthy()).then_some((Step::Wait, reason))
}

/// One of two, or the only one, rewrites its file: nobody is answered meanwhile, and that is no loss.
pub(super) fn unavailable_alone(state: &ObservedState) -> Decision {
    let Defragmentation { rewriting: Some(_), round: Some(round), .. } = &state.upkeep else {
        return None;
    };
    let reason = match round.occasion {
        DefragTrigger::Schedule | DefragTrigger::Threshold => Reason::Defragmenting,
        DefragTrigger::NoSpace => Reason::NoSpace,
    };
    let runs = |it: &Member| it.pod == Reading::Known(PodState::Active) && !it.fails;
    let is_unavailable = state.remaining().count() <= SMALL_CLUSTER && state.remaining().all(runs);
    is_unavailable.then_some((Step::Wait, reason))
}

/// A file has reached its quota, and nobody can write. If room can be made it is; then the alarm is ended, and not before.
pub(super) fn reclaim_space(state: &ObservedState, etcd: &EtcdState) -> Decision {
    if etcd.space == Quota::Ok || !may_disrupt(etcd) {
        return None;
    }
    if etcd.space == Quota::Recovered {
        return Some((Step::DisarmAlarm(Alarm::NoSpace), Reason::NoSpace));
    }
    if let Some(step) = next(&state.upkeep, etcd) {
        return Some((step, Reason::NoSpace));
    }
    // A larger quota may be what members should be made anew for.
    if state.remaining().any(Member::is_outdated) && !etcd.alarmed {
        return None;
    }
    Some((Step::Wait, Reason::NoSpaceUnresolved))
}

/// Nothing else is to be done.
pub(super) fn rule(state: &ObservedState, etcd: &EtcdState) -> Decision {
    let is_there = match state.wanted.course {
        VersionProgress::AtTarget | VersionProgress::NoPath => true,
        VersionProgress::MoreSteps | VersionProgress::Downgrading => false,
    };
    if !is_there || etcd.alarmed || state.wanted.clients_move || !may_disrupt(etcd) {
        return None;
    }
    next(&state.upkeep, etcd).map(|step| (step, Reason::Defragmenting))
}

fn may_disrupt(etcd: &EtcdState) -> bool {
    etcd.all_voters_healthy() && etcd.learners().next().is_none()
}

/// The next step of a round that goes on, or should begin.
fn next(upkeep: &Defragmentation, etcd: &EtcdState) -> Option<Step> {
    let Defragmentation { round, due, rewriting: _, history, settling } = upkeep;
    let turns: &[MemberName] = match (round, due) {
        (Some(round), _) => &round.turns,
        (None, Some(_)) => &[],
        (None, None) => return None,
    };
    if let Some(revision) = history {
        return Some(Step::Compact(*revision));
    }
    let runs_of = |of: &MemberName| turns.iter().filter(|it| *it == of).count();
    let is_due = |it: &&ListedMember| it.worth && runs_of(&it.name) < MAX_RUNS_PER_MEMBER;
    let waiting = || etcd.voters().filter(is_due);
    if let Some(follower) = waiting().find(|it| !etcd.leads(it.id)) {
        return Some(Step::Defragment(follower.name.clone()));
    }
    let Some(last) = waiting().next() else {
        return Some(if *settling { Step::Wait } else { Step::FinishDefragmentation });
    };
    let transferee = etcd.voters().find(|it| it.id != last.id);
    Some(transferee.map_or_else(
        || Step::Defragment(last.name.clone()),
        // All others had their turn, and one of them leads from now on.
        |transferee| Step::MoveLeader(transferee.id),
    ))
}
