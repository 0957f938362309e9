//! Whether members' files should be rewritten, and whether history must be given up for it.
//! Comes in: what members say of their files, what is asked for, what was written down, and the time. Goes out: `Upkeep`.
//! May touch: `api`, Kubernetes' own types; pure. A file is full when it is as large as its quota, whatever is free in it; so what counts
//! is its size, and the quota that the member runs with, which may be another than is asked for now.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use crate::api::etcd_cluster::validated::Compaction;
use crate::api::etcd_types::EndpointStatus;
use crate::etcd_cluster::defragmentation::DefragStatus;
use crate::etcd_cluster::observe::etcd::{QuorumView, member_of_peer_url};
use crate::etcd_cluster::observe::objects::flag;
use crate::etcd_cluster::render::options;
use crate::etcd_cluster::state::build::StateInputs;
use crate::etcd_cluster::state::defragmentation::{
    Alarm, DefragTrigger, Defragmentation, Quota, Revision,
};
use crate::etcd_cluster::state::{MemberName, Reading};

/// For less than this no file is rewritten.
const MIN_RECLAIM: u64 = 1 << 20;
/// How often free space alone is a reason, at the most.
const THRESHOLD_INTERVAL: Duration = Duration::from_hours(1);
/// How soon room is made once more where it did not last, or was not enough. Until then people have time to see what is written.
const NOSPACE_RETRY_DELAY: Duration = Duration::from_mins(5);

/// A member's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DbFile {
    pub(crate) size: u64,
    pub(crate) in_use: u64,
    /// How large it may become.
    pub(crate) quota: Option<u64>,
}

impl DbFile {
    /// What rewriting it would give back.
    pub(crate) const fn free(self) -> u64 {
        self.size.saturating_sub(self.in_use)
    }

    /// Whether there is room for so much, and a fifth of the quota is left. With less the alarm would be back in no time.
    fn has_room_for(self, bytes: u64) -> bool {
        self.quota.is_some_and(|quota| bytes <= quota.div_euclid(5).saturating_mul(4))
    }
}

impl StateInputs<'_> {
    /// How the members' files are looked after.
    pub(crate) fn upkeep(&self) -> Defragmentation {
        let told = DefragStatus::parse(&self.objects.cluster.status.clone().unwrap_or_default());
        let under_way = told.is_in_progress(self.now);
        let begun = Defragmentation {
            in_progress: told.members.last().filter(|_| under_way).cloned(),
            waiting_for_compaction: under_way && told.members.is_empty(),
            run: told.run(),
            due: None,
            compact_to: None,
        };
        let Reading::Known(council) = &self.probe.quorum else { return begun };
        let history = self.history(council, &told);
        let due = if begun.run.is_some() { None } else { self.due(council, &told, history) };
        Defragmentation { due, compact_to: history, ..begun }
    }

    /// Whether a member may be silent because it rewrites its file.
    pub(crate) fn is_defragmenting(&self, name: &MemberName) -> bool {
        let told = DefragStatus::parse(&self.objects.cluster.status.clone().unwrap_or_default());
        told.is_in_progress(self.now) && told.members.last() == Some(name)
    }

    /// Why a round should begin.
    fn due(
        &self,
        council: &QuorumView,
        told: &DefragStatus,
        history: Option<Revision>,
    ) -> Option<DefragTrigger> {
        let should_defragment = || {
            self.files(council).any(|it| it.is_some_and(|it| self.should_defragment(council, it)))
        };
        if is_full(council) {
            let rescued =
                told.completion_time.filter(|_| told.trigger == Some(DefragTrigger::NoSpace));
            let can_help = history.is_some() || should_defragment();
            let is_due = can_help && self.has_passed(rescued, NOSPACE_RETRY_DELAY);
            return is_due.then_some(DefragTrigger::NoSpace);
        }
        let asked = self.blueprint.spec.defragment.as_ref()?;
        if asked.schedule.is_some() {
            let look = told.next_run(Some(asked), self.now)?;
            return (look <= self.now).then_some(DefragTrigger::Schedule);
        }
        let is_due =
            should_defragment() && self.has_passed(told.completion_time, THRESHOLD_INTERVAL);
        is_due.then_some(DefragTrigger::Threshold)
    }

    fn has_passed(&self, since: Option<Timestamp>, time: Duration) -> bool {
        since.is_none_or(|it| {
            Duration::try_from(self.now.duration_since(it)).unwrap_or_default() >= time
        })
    }

    /// Up to where history must be given up, where what is in use is too much. Once in a round: what does not help then does not help
    /// again and again.
    fn history(&self, council: &QuorumView, told: &DefragStatus) -> Option<Revision> {
        let was_tried = told.run().is_some_and(|it| it.trigger == DefragTrigger::NoSpace);
        let fits = |it: Option<DbFile>| it.is_some_and(|it| it.has_room_for(it.in_use));
        if was_tried || !is_full(council) || self.files(council).all(fits) {
            return None;
        }
        let kept = match self.blueprint.spec.options.compaction {
            // What the user asked to be kept is kept. How old a revision is nobody can say but etcd, which forgets it in its own time.
            Some(Compaction::Count(count)) => i64::from(count),
            Some(Compaction::Age(_)) => return None,
            // Nobody can write, so whoever is connected has seen all of it; and whoever is not must be able to begin anew at any time.
            None => 0,
        };
        let goal = council.revision.saturating_sub(kept);
        let done = told.compacted_revision.map_or(0, |it| it.0);
        (goal > done).then_some(Revision(goal))
    }

    /// Whether there is room in the files of all who vote.
    pub(crate) fn space(&self, council: &QuorumView) -> Quota {
        let has_room = |it: Option<DbFile>| it.is_some_and(|it| it.has_room_for(it.size));
        match is_full(council) {
            false => Quota::Ok,
            true if self.files(council).all(has_room) => Quota::Recovered,
            true => Quota::Exceeded,
        }
    }

    /// Whether so much is free in a file that it is worth rewriting.
    pub(crate) fn should_defragment(&self, council: &QuorumView, file: DbFile) -> bool {
        let DbFile { size, in_use, quota } = file;
        let asked = self.blueprint.spec.defragment.as_ref();
        let least = if is_full(council) {
            // Where that alone keeps the alarm up, any gain is worth it.
            let ends_it = !file.has_room_for(size) && file.has_room_for(in_use);
            Some(if ends_it { MIN_RECLAIM } else { quota.unwrap_or(size).div_euclid(20) })
        } else {
            asked.map(|it| it.reclaim_above.unwrap_or(size.div_euclid(10)))
        };
        least.is_some_and(|least| file.free() > least.max(MIN_RECLAIM))
    }

    /// The files of all who vote; nothing of those who do not answer.
    fn files<'a>(&'a self, council: &'a QuorumView) -> impl Iterator<Item = Option<DbFile>> + 'a {
        let voters = council.members.iter().filter(|it| !it.is_learner);
        voters.map(|it| {
            let name = it.peer_urls.iter().find_map(|url| member_of_peer_url(url))?;
            self.db_file(&name, it.id)
        })
    }

    /// A member's file.
    pub(crate) fn db_file(&self, name: &MemberName, id: u64) -> Option<DbFile> {
        let EndpointStatus { db_size, db_in_use, .. } =
            self.probe.status(name).filter(|it| it.member == id)?;
        Some(DbFile {
            size: u64::try_from(*db_size).ok()?,
            in_use: u64::try_from(*db_in_use).ok()?,
            quota: self.objects.pod(name).and_then(quota),
        })
    }
}

/// Whether a file has reached its quota.
fn is_full(council: &QuorumView) -> bool {
    council.alarms.iter().any(|it| it.alarm_type == Alarm::NoSpace.name())
}

/// The quota that etcd runs with in a pod.
fn quota(pod: &Pod) -> Option<u64> {
    flag(pod, options::QUOTA_FLAG)?.parse().ok()
}

#[cfg(test)]
mod tests;
