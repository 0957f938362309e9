//! Defragments members one at a time, the leader last: on a schedule, above a threshold, and if a
//! database file has reached its quota.
//!
//! Guarantees: a member is unavailable while it is defragmented, so before that every voter has
//! passed a linearizable read, and there is no learner that would need a snapshot. Each member is
//! defragmented at most twice in a run, so that a run that does not help ends.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::Decision;
use crate::etcd_cluster::plan::{Reason, Step};
use crate::etcd_cluster::state::defragmentation::{Alarm, DefragTrigger, Defragmentation, Quota};
use crate::etcd_cluster::state::{
    EtcdState, ListedMember, Member, MemberName, ObservedState, PodState, Reading, VersionProgress,
};

/// The second one is for a request that was recorded and never sent.
const MAX_RUNS_PER_MEMBER: usize = 2;
/// A cluster of this size has no quorum while one member is unavailable.
const SMALL_CLUSTER: usize = 2;

/// Waits for a member that is being defragmented before any other is disrupted.
pub(super) fn in_progress(state: &ObservedState, etcd: &EtcdState) -> Decision {
    let entry = etcd.entry(state.defragmentation.in_progress.as_ref()?)?;
    let reason = match etcd.quota {
        Quota::Ok => Reason::Defragmenting,
        Quota::Exceeded | Quota::Recovered => Reason::NoSpace,
    };
    (!entry.is_healthy()).then_some((Step::Wait, reason))
}

/// One of at most two members is being defragmented: the missing quorum is expected.
pub(super) fn unavailable_alone(state: &ObservedState) -> Decision {
    let Defragmentation { in_progress: Some(_), run: Some(run), .. } = &state.defragmentation
    else {
        return None;
    };
    let reason = match run.trigger {
        DefragTrigger::Schedule | DefragTrigger::Threshold => Reason::Defragmenting,
        DefragTrigger::NoSpace => Reason::NoSpace,
    };
    let runs = |member: &Member| member.pod == Reading::Known(PodState::Active) && !member.failing;
    let is_unavailable = state.remaining().count() <= SMALL_CLUSTER && state.remaining().all(runs);
    is_unavailable.then_some((Step::Wait, reason))
}

/// Reclaims space while a quota is exceeded and writes are rejected; disarms the alarm only after
/// that.
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
    // A larger quota may be the reason for the pending rolling update.
    if state.remaining().any(Member::is_outdated) && !etcd.blocking_alarm {
        return None;
    }
    Some((Step::Wait, Reason::NoSpaceUnresolved))
}

/// Defragments if nothing else is to be done.
pub(super) fn rule(state: &ObservedState, etcd: &EtcdState) -> Decision {
    let is_at_target = match state.desired.version {
        VersionProgress::AtTarget | VersionProgress::NoPath => true,
        VersionProgress::MoreSteps | VersionProgress::Downgrading => false,
    };
    if !is_at_target
        || etcd.blocking_alarm
        || state.desired.client_tls_transition
        || !may_disrupt(etcd)
    {
        return None;
    }
    next(&state.defragmentation, etcd).map(|step| (step, Reason::Defragmenting))
}

fn may_disrupt(etcd: &EtcdState) -> bool {
    etcd.all_voters_healthy() && etcd.learners().next().is_none()
}

/// The next step of a run that is in progress or due.
fn next(state: &Defragmentation, etcd: &EtcdState) -> Option<Step> {
    let Defragmentation { run, due, in_progress: _, compact_to, waiting_for_compaction } = state;
    let completed: &[MemberName] = match (run, due) {
        (Some(run), _) => &run.completed,
        (None, Some(_)) => &[],
        (None, None) => return None,
    };
    if let Some(revision) = compact_to {
        return Some(Step::Compact(*revision));
    }
    let runs_of = |name: &MemberName| completed.iter().filter(|done| *done == name).count();
    let is_due = |entry: &&ListedMember| {
        entry.should_defragment && runs_of(&entry.name) < MAX_RUNS_PER_MEMBER
    };
    let pending = || etcd.voters().filter(is_due);
    if let Some(follower) = pending().find(|entry| !etcd.leads(entry.id)) {
        return Some(Step::Defragment(follower.name.clone()));
    }
    let Some(last) = pending().next() else {
        return Some(if *waiting_for_compaction {
            Step::Wait
        } else {
            Step::FinishDefragmentation
        });
    };
    let transferee = etcd.voters().find(|entry| entry.id != last.id);
    Some(transferee.map_or_else(
        || Step::Defragment(last.name.clone()),
        // All followers are done; one of them becomes the leader.
        |transferee| Step::MoveLeader(transferee.id),
    ))
}
