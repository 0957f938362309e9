//! What each chore and each step is called, and the moments at which whoever does it may die.
//! Comes in: a plan. Goes out: words. May touch: nothing; pure.
//! Stories let the operator die at each moment of each deed, so every deed must be named here.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::{Plan, Step, Task};

/// A moment of a deed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashPoint {
    /// Nothing was done yet.
    Before,
    /// It was done, and nobody knows.
    After,
    /// The pass is over, and the status does not tell of it yet.
    BeforeStatus,
}

impl CrashPoint {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Before, Self::After, Self::BeforeStatus];

    /// The one name for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
            Self::BeforeStatus => "before-status",
        }
    }
}

impl Task {
    /// The words of all of them.
    pub const NAMES: [&'static str; 12] = [
        "RecordBootstrapMembers",
        "AbortBootstrap",
        "DeleteBootstrapMember",
        "RecordBootstrapStarted",
        "RecordClusterId",
        "CreateBootstrapMember",
        "AdoptVolume",
        "CreatePod",
        "MarkStarted",
        "RemoveSchedulingGate",
        "DeleteInactivePod",
        "Hibernate",
    ];

    /// The one name for it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RecordBootstrapMembers(_) => "RecordBootstrapMembers",
            Self::AbortBootstrap => "AbortBootstrap",
            Self::DeleteBootstrapMember(_) => "DeleteBootstrapMember",
            Self::RecordBootstrapStarted => "RecordBootstrapStarted",
            Self::RecordClusterId(_) => "RecordClusterId",
            Self::CreateBootstrapMember(_) => "CreateBootstrapMember",
            Self::AdoptVolume(_) => "AdoptVolume",
            Self::CreatePod { .. } => "CreatePod",
            Self::MarkStarted(_) => "MarkStarted",
            Self::RemoveSchedulingGate(_) => "RemoveSchedulingGate",
            Self::DeleteInactivePod(_) => "DeleteInactivePod",
            Self::Hibernate(_) => "Hibernate",
        }
    }
}

impl Step {
    /// The words of all of them that do something.
    pub const NAMES: [&'static str; 21] = [
        "CreateMember",
        "AddLearner",
        "PromoteLearner",
        "MarkForRemoval",
        "MoveLeader",
        "RemoveMember",
        "RecreatePod",
        "RollBack",
        "AdvanceRaftLog",
        "EnableDowngrade",
        "CancelDowngrade",
        "UpdatePeerUrl",
        "EnsureUsers",
        "EnableAuth",
        "DisableAuth",
        "Compact",
        "Defragment",
        "FinishDefragmentation",
        "DisarmAlarm",
        "DeletePod",
        "DeleteMember",
    ];

    /// The one name for it, if it does something.
    #[must_use]
    pub const fn name(&self) -> Option<&'static str> {
        match self {
            Self::Wait => None,
            Self::CreateMember(_) => Some("CreateMember"),
            Self::AddLearner(_) => Some("AddLearner"),
            Self::PromoteLearner(_) => Some("PromoteLearner"),
            Self::MarkForRemoval(_) => Some("MarkForRemoval"),
            Self::MoveLeader(_) => Some("MoveLeader"),
            Self::RemoveMember(_) => Some("RemoveMember"),
            Self::RecreatePod(_) => Some("RecreatePod"),
            Self::RollBack(_) => Some("RollBack"),
            Self::AdvanceRaftLog => Some("AdvanceRaftLog"),
            Self::EnableDowngrade => Some("EnableDowngrade"),
            Self::CancelDowngrade => Some("CancelDowngrade"),
            Self::UpdatePeerUrl(..) => Some("UpdatePeerUrl"),
            Self::EnsureUsers => Some("EnsureUsers"),
            Self::EnableAuth => Some("EnableAuth"),
            Self::DisableAuth => Some("DisableAuth"),
            Self::Compact(_) => Some("Compact"),
            Self::Defragment(_) => Some("Defragment"),
            Self::FinishDefragmentation => Some("FinishDefragmentation"),
            Self::DisarmAlarm(_) => Some("DisarmAlarm"),
            Self::DeletePod(_) => Some("DeletePod"),
            Self::DeleteMember(_) => Some("DeleteMember"),
        }
    }
}

impl Plan {
    /// Everything that it does, in words and in order.
    pub fn action_names(&self) -> impl Iterator<Item = &'static str> {
        self.tasks.iter().map(Task::name).chain(self.step.name())
    }
}
