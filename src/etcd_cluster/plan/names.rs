//! The names of tasks and steps, the Events of steps, and the crash points of all of them. The
//! end-to-end tests abort the operator at each crash point of each action, so every action has a
//! name.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::{Plan, Step, Task};
use crate::etcd_cluster::state::{EtcdState, MemberName};

/// A point of an action at which the operator may crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashPoint {
    /// Before the action.
    Before,
    /// After the action, before anything records it.
    After,
    /// After all actions of the reconciliation, before the status is written.
    BeforeStatus,
}

impl CrashPoint {
    /// Every crash point.
    pub const ALL: [Self; 3] = [Self::Before, Self::After, Self::BeforeStatus];

    /// Its name in the fault injection directory.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
            Self::BeforeStatus => "before-status",
        }
    }
}

macro_rules! tasks {
    ($($variant:ident,)+) => {
        impl Task {
            /// The name of every task.
            pub const NAMES: [&'static str; [$(stringify!($variant)),+].len()] =
                [$(stringify!($variant)),+];

            /// The name of the task.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => stringify!($variant),)+
                }
            }
        }
    };
}

/// Each step with the reason of the Event that is recorded when it succeeds.
macro_rules! steps {
    ($($variant:ident => $event:literal,)+) => {
        impl Step {
            /// The name of every step that does something.
            pub const NAMES: [&'static str; [$(stringify!($variant)),+].len()] =
                [$(stringify!($variant)),+];

            /// The reason of every Event of a step.
            pub const EVENTS: [&'static str; [$($event),+].len()] = [$($event),+];

            /// The name of the step; none for `Wait`.
            #[must_use]
            pub const fn name(&self) -> Option<&'static str> {
                match self {
                    Self::Wait => None,
                    $(Self::$variant { .. } => Some(stringify!($variant)),)+
                }
            }

            /// The reason of its Event, in the past tense; none for `Wait`.
            #[must_use]
            pub const fn event(&self) -> Option<&'static str> {
                match self {
                    Self::Wait => None,
                    $(Self::$variant { .. } => Some($event),)+
                }
            }
        }
    };
}

tasks! {
    RecordBootstrapMembers,
    AbortBootstrap,
    DeleteBootstrapMember,
    RecordBootstrapStarted,
    RecordClusterId,
    CreateBootstrapMember,
    AdoptVolume,
    CreatePod,
    MarkStarted,
    RemoveSchedulingGate,
    DeleteInactivePod,
    Hibernate,
}

steps! {
    CreateMember => "MemberCreated",
    AddLearner => "MemberAdded",
    PromoteLearner => "MemberPromoted",
    MarkForRemoval => "MemberMarkedForRemoval",
    MoveLeader => "LeaderMoved",
    RemoveMember => "MemberRemoved",
    RecreatePod => "PodRecreated",
    RollBack => "RolledBack",
    AdvanceRaftLog => "RaftLogAdvanced",
    EnableDowngrade => "DowngradeEnabled",
    CancelDowngrade => "DowngradeCancelled",
    UpdatePeerUrl => "PeerURLUpdated",
    EnsureUsers => "UsersConfigured",
    EnableAuth => "AuthEnabled",
    DisableAuth => "AuthDisabled",
    Compact => "Compacted",
    Defragment => "Defragmented",
    FinishDefragmentation => "DefragmentationCompleted",
    DisarmAlarm => "AlarmDisarmed",
    DeletePod => "PodDeleted",
    DeleteMember => "MemberDeleted",
}

impl Step {
    /// The member that the step concerns, if it concerns one that is known by name.
    #[must_use]
    pub fn member<'a>(&'a self, etcd: Option<&'a EtcdState>) -> Option<&'a MemberName> {
        match self {
            Self::CreateMember(name)
            | Self::AddLearner(name)
            | Self::MarkForRemoval(name)
            | Self::RecreatePod(name)
            | Self::RollBack(name)
            | Self::UpdatePeerUrl(name, _)
            | Self::Defragment(name)
            | Self::DeletePod(name)
            | Self::DeleteMember(name) => Some(name),
            Self::PromoteLearner(id) | Self::MoveLeader(id) | Self::RemoveMember(id) => {
                etcd?.members.iter().find(|member| member.id == *id).map(|member| &member.name)
            }
            Self::Wait
            | Self::AdvanceRaftLog
            | Self::EnableDowngrade
            | Self::CancelDowngrade
            | Self::EnsureUsers
            | Self::EnableAuth
            | Self::DisableAuth
            | Self::Compact(_)
            | Self::FinishDefragmentation
            | Self::DisarmAlarm(_) => None,
        }
    }
}

impl Plan {
    /// The names of its actions, in order.
    pub fn action_names(&self) -> impl Iterator<Item = &'static str> {
        self.tasks.iter().map(Task::name).chain(self.step.name())
    }
}
