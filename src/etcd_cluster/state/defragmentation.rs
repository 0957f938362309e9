//! What one pass knows about the members' files: whether they are being rewritten, and whether they should be.
//! Comes in: nothing. Goes out: `Upkeep`. May touch: nothing; pure.
//! What was written down says whose turn it was; what members say of their files says who is worth a turn.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde::{Deserialize, Serialize};

use super::MemberName;

/// How the members' files are looked after.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Defragmentation {
    /// The round that goes on.
    pub run: Option<DefragRun>,
    /// Why one should begin, if none goes on.
    pub due: Option<DefragTrigger>,
    /// Who may be silent because it rewrites its file.
    pub in_progress: Option<MemberName>,
    /// Up to where history is given up, if nothing else makes room.
    pub compact_to: Option<Revision>,
    /// Whether history was given up a moment ago, and members may not have let go of it yet.
    pub waiting_for_compaction: bool,
}

/// A round: one member after the other, each twice at the most.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DefragRun {
    /// Why it began.
    pub trigger: DefragTrigger,
    /// Whose turn it was, in order.
    pub completed: Vec<MemberName>,
}

/// Why files are rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DefragTrigger {
    /// The time has come.
    Schedule,
    /// So much is free in one of them that it is worth it.
    Threshold,
    /// One of them has reached its quota, and nobody can write.
    NoSpace,
}

/// Whether there is room in the members' files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Quota {
    /// No alarm is raised.
    #[default]
    Ok,
    /// One of them has reached its quota, and nobody can write.
    Exceeded,
    /// The same; but all of them have room by now.
    Recovered,
}

/// A revision of etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Revision(pub i64);

/// An alarm that etcd keeps up until somebody ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Alarm {
    /// A file has reached its quota.
    NoSpace,
    /// Members have different data.
    Corrupt,
}

impl DefragTrigger {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Schedule, Self::Threshold, Self::NoSpace];

    /// The one word for it.
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
    /// etcd's word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoSpace => "NOSPACE",
            Self::Corrupt => "CORRUPT",
        }
    }
}
