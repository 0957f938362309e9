//! The state of defragmentation and compaction: the recorded run has the members that are done, the
//! sizes of the database files show which members are worth defragmenting.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde::{Deserialize, Serialize};

use super::MemberName;

/// The state of defragmentation and compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Defragmentation {
    /// The run that is recorded as started and not completed.
    pub run: Option<DefragRun>,
    /// Why a run should start, if none is in progress.
    pub due: Option<DefragTrigger>,
    /// The member that may be unreachable because it is being defragmented.
    pub in_progress: Option<MemberName>,
    /// The revision to compact to, if defragmentation does not reclaim enough space.
    pub compact_to: Option<Revision>,
    /// Whether etcd may still be compacting: space becomes free in the background.
    pub waiting_for_compaction: bool,
}

/// A run: one member at a time, each at most twice.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DefragRun {
    /// What triggered the run.
    pub trigger: DefragTrigger,
    /// The members that were defragmented, in order.
    pub completed: Vec<MemberName>,
}

/// What triggers a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DefragTrigger {
    /// The schedule of the spec.
    Schedule,
    /// Enough space is free in a database file.
    Threshold,
    /// A database file has reached its quota, and writes are rejected.
    NoSpace,
}

/// Whether the database files are within their quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Quota {
    /// The NOSPACE alarm is not active.
    #[default]
    Ok,
    /// The NOSPACE alarm is active.
    Exceeded,
    /// The NOSPACE alarm is active, and all database files are within their quota again.
    Recovered,
}

/// A revision of etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Revision(pub i64);

/// An alarm that stays active in etcd until it is disarmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Alarm {
    /// A database file has reached its quota.
    NoSpace,
    /// Members have different data.
    Corrupt,
}

impl DefragTrigger {
    /// All triggers.
    pub const ALL: [Self; 3] = [Self::Schedule, Self::Threshold, Self::NoSpace];

    /// The name in the status.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Schedule => "Schedule",
            Self::Threshold => "Threshold",
            Self::NoSpace => "NoSpace",
        }
    }
}

impl Alarm {
    /// etcd's name of the alarm.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoSpace => "NOSPACE",
            Self::Corrupt => "CORRUPT",
        }
    }
}
