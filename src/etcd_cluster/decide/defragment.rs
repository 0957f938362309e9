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
    let entry = etcd.entry(state.defragmentation.in_progress.as_ref()?)?;
    let reason = match etcd.quota {
        Quota::Ok => Reason::Defragmenting,
        Quota::Exceeded | Quota::Recovered => Reason::NoSpace,
    };
    (!entry.is_healthy()).then_some((Step::Wait, reason))
}

/// One of two, or the only one, rewrites its file: nobody is answered meanwhile, and that is no loss.
pub(super) fn unavailable_alone(state: &ObservedState) -> Decision {
    let Defragmentation { in_progress: Some(_), run: Some(round), .. } = &state.defragmentation
    else {
        return None;
    };
    let reason = match round.trigger {
        DefragTrigger::Schedule | DefragTrigger::Threshold => Reason::Defragmenting,
        DefragTrigger::NoSpace => Reason::NoSpace,
    };
    let runs = |it: &Member| it.pod == Reading::Known(PodState::Active) && !it.failing;
    let is_unavailable = state.remaining().count() <= SMALL_CLUSTER && state.remaining().all(runs);
    is_unavailable.then_some((Step::Wait, reason))
}

/// A file has reached its quota, and nobody can write. If room can be made it is; then the alarm is ended, and not before.
pub(super) fn reclaim_space(state: &ObservedState, etcd: &EtcdState) -> Decision {
    if etcd.quota == Quota::Ok || !may_disrupt(etcd) {
        return None;
    }
    if etcd.quota == Quota::Recovered {
        return Some((Step::DisarmAlarm(Alarm::NoSpace), Reason::NoSpace));
    }
    if let Some(step) = next(&state.defragmentation, etcd) {
        return Some((step, Reason::NoSpace));
    }
    // A larger quota may be what members should be made anew for.
    if state.remaining().any(Member::is_outdated) && !etcd.blocking_alarm {
        return None;
    }
    Some((Step::Wait, Reason::NoSpaceUnresolved))
}

/// Nothing else is to be done.
pub(super) fn rule(state: &ObservedState, etcd: &EtcdState) -> Decision {
    let is_there = match state.desired.version {
        VersionProgress::AtTarget | VersionProgress::NoPath => true,
        VersionProgress::MoreSteps | VersionProgress::Downgrading => false,
    };
    if !is_there || etcd.blocking_alarm || state.desired.client_tls_transition || !may_disrupt(etcd)
    {
        return None;
    }
    next(&state.defragmentation, etcd).map(|step| (step, Reason::Defragmenting))
}

fn may_disrupt(etcd: &EtcdState) -> bool {
    etcd.all_voters_healthy() && etcd.learners().next().is_none()
}

/// The next step of a round that goes on, or should begin.
fn next(upkeep: &Defragmentation, etcd: &EtcdState) -> Option<Step> {
    let Defragmentation {
        run: round,
        due,
        in_progress: _,
        compact_to: history,
        waiting_for_compaction: settling,
    } = upkeep;
    let turns: &[MemberName] = match (round, due) {
        (Some(round), _) => &round.completed,
        (None, Some(_)) => &[],
        (None, None) => return None,
    };
    if let Some(revision) = history {
        return Some(Step::Compact(*revision));
    }
    let runs_of = |of: &MemberName| turns.iter().filter(|it| *it == of).count();
    let is_due =
        |it: &&ListedMember| it.should_defragment && runs_of(&it.name) < MAX_RUNS_PER_MEMBER;
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
