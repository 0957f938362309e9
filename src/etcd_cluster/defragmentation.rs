//! What the status records about defragmentation, and when the next scheduled run is due.
//!
//! Crash safety: a member is recorded before it is defragmented, so the operator knows after a
//! crash which member may be unavailable, and until when.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::state::MemberName;
use super::state::defragmentation::{DefragRun, DefragTrigger, Defragmentation, Revision};
use crate::api::etcd_cluster::v1::status::{DefragmentationStatus, EtcdClusterStatus};
use crate::api::etcd_cluster::validated::Defragment;
use crate::api::field::Field;
use crate::api::schedule;
use crate::api::strings::Time;

/// The shortest time allowed for defragmenting a member.
const MIN_DEFRAG_TIMEOUT: Duration = Duration::from_mins(1);
/// Defragmentation throughput on a slow and busy disk.
const DEFRAG_BYTES_PER_SECOND: u64 = 4 << 20;
/// The largest database file that etcd supports.
const MAX_DB_SIZE: u64 = 8 << 30;
/// How long members may take to free compacted revisions.
const COMPACTION_DELAY: Duration = Duration::from_secs(30);
/// How many entries of defragmented members are recorded.
const MAX_RECORDED_MEMBERS: usize = 16;

/// Defragmentation as the status records it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DefragStatus {
    pub(crate) trigger: Option<DefragTrigger>,
    pub(crate) start_time: Option<Timestamp>,
    pub(crate) completion_time: Option<Timestamp>,
    pub(crate) members: Vec<MemberName>,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) compacted_revision: Option<Revision>,
    pub(crate) next_schedule_time: Option<Timestamp>,
}

impl DefragStatus {
    /// Reads it from a status.
    pub(crate) fn parse(status: &EtcdClusterStatus) -> Self {
        let recorded: DefragmentationStatus = status.defragmentation.clone().or_default();
        let DefragmentationStatus {
            trigger,
            start_time,
            completion_time,
            members,
            deadline,
            compacted_revision,
            next_schedule_time,
        } = recorded;
        let parse_time =
            |field: Field<Time>| field.known().and_then(|time| time.as_str().parse().ok());
        let trigger = trigger.known().map(|name| name.as_str().to_owned()).unwrap_or_default();
        let members = members.into_known().unwrap_or_default();
        Self {
            trigger: DefragTrigger::ALL.into_iter().find(|known| known.name() == trigger),
            start_time: parse_time(start_time),
            completion_time: parse_time(completion_time),
            members: members.into_iter().map(|name| MemberName(name.as_str().to_owned())).collect(),
            deadline: parse_time(deadline),
            compacted_revision: compacted_revision.known().copied().map(Revision),
            next_schedule_time: parse_time(next_schedule_time),
        }
    }

    /// Writes it as a status.
    pub(crate) fn status(&self) -> Field<DefragmentationStatus> {
        let time = |time: &Option<Timestamp>| time.map(|time| time.to_string().into()).into();
        let members: Vec<_> = self.members.iter().map(|name| name.0.as_str().into()).collect();
        let members = if members.is_empty() { Field::Absent } else { Field::Known(members) };
        Field::non_default(DefragmentationStatus {
            trigger: self.trigger.map(|trigger| trigger.name().into()).into(),
            start_time: time(&self.start_time),
            completion_time: time(&self.completion_time),
            members,
            deadline: time(&self.deadline),
            compacted_revision: self.compacted_revision.map(|revision| revision.0).into(),
            next_schedule_time: time(&self.next_schedule_time),
        })
    }

    /// The run in progress.
    pub(crate) fn run(&self) -> Option<DefragRun> {
        let is_running = self.start_time.is_some() && self.completion_time.is_none();
        let trigger = self.trigger.filter(|_| is_running)?;
        Some(DefragRun { trigger, completed: self.members.clone() })
    }

    /// Whether a defragmentation or compaction was started and may not be over.
    pub(crate) fn is_in_progress(&self, now: Timestamp) -> bool {
        self.run().is_some() && self.deadline.is_some_and(|deadline| now < deadline)
    }

    /// When the next scheduled run is due. A recorded time of the same schedule that has passed
    /// stays due, so a missed run is made up for, once.
    pub(crate) fn next_run(&self, spec: Option<&Defragment>, now: Timestamp) -> Option<Timestamp> {
        let Defragment { schedule, time_zone, reclaim_above: _ } = spec?;
        let cron = schedule::parse(schedule.as_deref()?, time_zone.as_deref()).ok()?;
        let is_scheduled = |at: &Timestamp| {
            let just_before = at.checked_sub(Duration::from_secs(1)).ok();
            just_before.and_then(|before| cron.next(before).ok()) == Some(*at)
        };
        let is_due = |at: &Timestamp| *at <= now && is_scheduled(at);
        self.next_schedule_time.filter(is_due).or_else(|| cron.next(now).ok())
    }

    /// The next scheduled run after the one that is due and being done now.
    fn run_after_next(&self, spec: Option<&Defragment>, now: Timestamp) -> Option<Timestamp> {
        Self { next_schedule_time: None, ..self.clone() }.next_run(spec, now)
    }

    /// The run in progress, or one that starts now.
    fn current_run(
        &self,
        due: &Defragmentation,
        spec: Option<&Defragment>,
        now: Timestamp,
    ) -> Self {
        let next_schedule_time = self.run_after_next(spec, now);
        if self.run().is_some() {
            return Self { next_schedule_time, ..self.clone() };
        }
        Self {
            trigger: due.due,
            start_time: Some(now),
            next_schedule_time,
            compacted_revision: self.compacted_revision,
            ..Self::default()
        }
    }
}

/// An event of a defragmentation run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DefragEvent<'a> {
    /// A member is about to be defragmented.
    MemberStarted(&'a MemberName),
    /// Revisions were compacted.
    Compacted(Revision),
    /// The run is finished.
    Finished,
}

/// Records the events of a defragmentation run.
pub(crate) struct DefragStatusWriter<'a> {
    pub(crate) status: &'a EtcdClusterStatus,
    pub(crate) observed: &'a Defragmentation,
    pub(crate) spec: Option<&'a Defragment>,
    pub(crate) now: Timestamp,
}

impl DefragStatusWriter<'_> {
    /// The status change that records an event.
    pub(crate) fn record(&self, event: DefragEvent<'_>) -> Value {
        let status = match event {
            DefragEvent::MemberStarted(name) => self.member_started(name),
            DefragEvent::Compacted(revision) => self.compacted(revision),
            DefragEvent::Finished => {
                DefragStatus { completion_time: Some(self.now), deadline: None, ..self.run() }
            }
        };
        json!({ "defragmentation": status.status() })
    }

    fn run(&self) -> DefragStatus {
        DefragStatus::parse(self.status).current_run(self.observed, self.spec, self.now)
    }

    fn member_started(&self, name: &MemberName) -> DefragStatus {
        let mut status = self.run();
        status.members.push(name.clone());
        status.members.truncate(MAX_RECORDED_MEMBERS);
        status.deadline = self.now.checked_add(defrag_timeout(self.db_size(name))).ok();
        status
    }

    /// After a compaction every member is defragmented again.
    fn compacted(&self, revision: Revision) -> DefragStatus {
        DefragStatus {
            trigger: Some(DefragTrigger::NoSpace),
            members: Vec::new(),
            deadline: self.now.checked_add(COMPACTION_DELAY).ok(),
            compacted_revision: Some(revision),
            ..self.run()
        }
    }

    /// The last reported size of a member's database file; the largest possible one if unknown.
    fn db_size(&self, name: &MemberName) -> u64 {
        let members = self.status.members.known().map(Vec::as_slice).unwrap_or_default();
        let mut members = members.iter();
        let member = members
            .find(|member| member.name.known().is_some_and(|known| known.as_str() == name.0));
        let reported = member.and_then(|member| member.db_size.known().copied());
        reported.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(MAX_DB_SIZE)
    }
}

/// How long defragmenting a database file of this size may take.
fn defrag_timeout(bytes: u64) -> Duration {
    let at_worst = Duration::from_secs(bytes.div_euclid(DEFRAG_BYTES_PER_SECOND));
    MIN_DEFRAG_TIMEOUT.saturating_add(at_worst)
}

#[cfg(test)]
mod tests;
