//! The database files of the members: whether to defragment them, and whether to compact before
//! that.
//!
//! A file is full when its size reaches the quota, however much of it is free. So the size counts,
//! and the quota that the member runs with, which may differ from the spec.
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

/// Less than this is never worth a defragmentation.
const MIN_RECLAIM: u64 = 1 << 20;
/// The minimum time between two runs that are triggered by free space.
const THRESHOLD_INTERVAL: Duration = Duration::from_hours(1);
/// The minimum time between two runs that are triggered by NOSPACE, if the space is used up again
/// or was not enough. Users have that time to read the status.
const NOSPACE_RETRY_DELAY: Duration = Duration::from_mins(5);

/// A member's database file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DbFile {
    pub(crate) size: u64,
    pub(crate) in_use: u64,
    /// The quota that the member runs with.
    pub(crate) quota: Option<u64>,
}

impl DbFile {
    /// The size that defragmentation would reclaim.
    pub(crate) const fn free(self) -> u64 {
        self.size.saturating_sub(self.in_use)
    }

    /// Whether this size leaves a fifth of the quota free. With less the alarm would be back at
    /// once.
    fn leaves_headroom(self, bytes: u64) -> bool {
        self.quota.is_some_and(|quota| bytes <= quota.div_euclid(5).saturating_mul(4))
    }
}

impl StateInputs<'_> {
    /// The state of defragmentation and compaction.
    pub(crate) fn defragmentation(&self) -> Defragmentation {
        let status = self.defrag_status();
        let in_progress = status.is_in_progress(self.now);
        let recorded = Defragmentation {
            in_progress: status.members.last().filter(|_| in_progress).cloned(),
            waiting_for_compaction: in_progress && status.members.is_empty(),
            run: status.run(),
            due: None,
            compact_to: None,
        };
        let Reading::Known(view) = &self.probe.quorum else { return recorded };
        let compact_to = self.compact_to(view, &status);
        let due = if recorded.run.is_some() { None } else { self.due(view, &status, compact_to) };
        Defragmentation { due, compact_to, ..recorded }
    }

    fn defrag_status(&self) -> DefragStatus {
        DefragStatus::parse(&self.objects.cluster.status.clone().unwrap_or_default())
    }

    /// Whether a member may be unreachable because it is being defragmented.
    pub(crate) fn is_defragmenting(&self, name: &MemberName) -> bool {
        let status = self.defrag_status();
        status.is_in_progress(self.now) && status.members.last() == Some(name)
    }

    /// Why a run should start.
    fn due(
        &self,
        view: &QuorumView,
        status: &DefragStatus,
        compact_to: Option<Revision>,
    ) -> Option<DefragTrigger> {
        let should_defragment = || {
            self.files(view).any(|file| file.is_some_and(|file| self.should_defragment(view, file)))
        };
        if is_full(view) {
            let last =
                status.completion_time.filter(|_| status.trigger == Some(DefragTrigger::NoSpace));
            let can_help = compact_to.is_some() || should_defragment();
            let is_due = can_help && self.has_passed(last, NOSPACE_RETRY_DELAY);
            return is_due.then_some(DefragTrigger::NoSpace);
        }
        let desired = self.blueprint.spec.defragment.as_ref()?;
        if desired.schedule.is_some() {
            let next = status.next_run(Some(desired), self.now)?;
            return (next <= self.now).then_some(DefragTrigger::Schedule);
        }
        let is_due =
            should_defragment() && self.has_passed(status.completion_time, THRESHOLD_INTERVAL);
        is_due.then_some(DefragTrigger::Threshold)
    }

    fn has_passed(&self, since: Option<Timestamp>, time: Duration) -> bool {
        since.is_none_or(|since| {
            Duration::try_from(self.now.duration_since(since)).unwrap_or_default() >= time
        })
    }

    /// The revision to compact to, if even the space in use exceeds what the quota allows. Once in
    /// a run: if that does not help, more compactions do not help either.
    fn compact_to(&self, view: &QuorumView, status: &DefragStatus) -> Option<Revision> {
        let was_tried = status.run().is_some_and(|run| run.trigger == DefragTrigger::NoSpace);
        let fits =
            |file: Option<DbFile>| file.is_some_and(|file| file.leaves_headroom(file.in_use));
        if was_tried || !is_full(view) || self.files(view).all(fits) {
            return None;
        }
        let retained = match self.blueprint.spec.options.compaction {
            // Revisions that the spec retains stay. Only etcd knows the age of a revision, and
            // compacts by age itself.
            Some(Compaction::Count(count)) => i64::from(count),
            Some(Compaction::Age(_)) => return None,
            // Writes are rejected, so connected clients have seen every revision; others must be
            // able to list and watch again at any time.
            None => 0,
        };
        let target = view.revision.saturating_sub(retained);
        let compacted = status.compacted_revision.map_or(0, |revision| revision.0);
        (target > compacted).then_some(Revision(target))
    }

    /// Whether the database files of all voters are within their quota.
    pub(crate) fn quota(&self, view: &QuorumView) -> Quota {
        let has_headroom =
            |file: Option<DbFile>| file.is_some_and(|file| file.leaves_headroom(file.size));
        match is_full(view) {
            false => Quota::Ok,
            true if self.files(view).all(has_headroom) => Quota::Recovered,
            true => Quota::Exceeded,
        }
    }

    /// Whether enough of a database file is free to defragment it.
    pub(crate) fn should_defragment(&self, view: &QuorumView, file: DbFile) -> bool {
        let DbFile { size, in_use, quota } = file;
        let desired = self.blueprint.spec.defragment.as_ref();
        let min_free = if is_full(view) {
            // If defragmentation without compaction ends the alarm, any gain is worth it.
            let ends_alarm = !file.leaves_headroom(size) && file.leaves_headroom(in_use);
            Some(if ends_alarm { MIN_RECLAIM } else { quota.unwrap_or(size).div_euclid(20) })
        } else {
            desired.map(|desired| desired.reclaim_above.unwrap_or(size.div_euclid(10)))
        };
        min_free.is_some_and(|min_free| file.free() > min_free.max(MIN_RECLAIM))
    }

    /// The database files of all voters; `None` for a voter that is unreachable.
    fn files<'a>(&'a self, view: &'a QuorumView) -> impl Iterator<Item = Option<DbFile>> + 'a {
        let voters = view.members.iter().filter(|listed| !listed.is_learner);
        voters.map(|listed| {
            let name = listed.peer_urls.iter().find_map(|url| member_of_peer_url(url))?;
            self.db_file(&name, listed.id)
        })
    }

    /// A member's database file.
    pub(crate) fn db_file(&self, name: &MemberName, id: u64) -> Option<DbFile> {
        let EndpointStatus { db_size, db_in_use, .. } =
            self.probe.status(name).filter(|status| status.member == id)?;
        Some(DbFile {
            size: u64::try_from(*db_size).ok()?,
            in_use: u64::try_from(*db_in_use).ok()?,
            quota: self.objects.pod(name).and_then(quota),
        })
    }
}

/// Whether the NOSPACE alarm is active.
fn is_full(view: &QuorumView) -> bool {
    view.alarms.iter().any(|alarm| alarm.alarm_type == Alarm::NoSpace.name())
}

/// The quota that etcd runs with in a pod.
fn quota(pod: &Pod) -> Option<u64> {
    flag(pod, options::QUOTA_FLAG)?.parse().ok()
}

#[cfg(test)]
mod tests;
