//! What one reconciliation does, and why.
//!
//! Guarantees: tasks are safe at any time, in any order, and when repeated. A step is not: there is
//! at most one in a reconciliation, and each documents its precondition and why a crash during it
//! does no harm.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod names;

use serde::{Deserialize, Serialize};

pub use super::reason::Reason;
use super::state::defragmentation::{Alarm, Revision};
use super::state::{ClusterId, MemberId, MemberName};
use super::transport::Scheme;
use crate::api::start_mode::StartMode;

/// The tasks and the step of one reconciliation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Tasks, which are safe at any time.
    pub tasks: Vec<Task>,
    /// The step that changes or disrupts members.
    pub step: Step,
    /// The rule that decided.
    pub reason: Reason,
}

/// An action that is safe at any time and safe to repeat.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Task {
    /// Record the initial members: once, and again only after the objects of an aborted bootstrap
    /// are gone.
    RecordBootstrapMembers(Vec<MemberName>),
    /// Record that the bootstrap is aborted, for good. No client can have written data: the client
    /// Secret is created only after the cluster ID is recorded.
    AbortBootstrap,
    /// Delete an initial member of an aborted bootstrap, with its pod and its volume.
    DeleteBootstrapMember(MemberName),
    /// Record, once, that initial members are started. From then on an initial member without an
    /// EtcdMember was deleted, and is not one that was never created.
    RecordBootstrapStarted,
    /// Record the ID of the cluster that was formed, once.
    RecordClusterId(ClusterId),
    /// Create the EtcdMember of an initial member.
    CreateBootstrapMember(MemberName),
    /// Recreate the EtcdMember of a volume, as a member that was started before.
    AdoptVolume(MemberName),
    /// Create a member's pod, with a scheduling gate if it may bootstrap or join.
    CreatePod {
        /// The member.
        member: MemberName,
        /// The start mode of its agent.
        start_mode: StartMode,
        /// The template of the pod.
        #[serde(default)]
        template: PodTemplate,
    },
    /// Record a member's first pod. No etcd runs in a pod before that, so that after a crash the
    /// operator knows that the member may have data.
    MarkStarted(MemberName),
    /// Remove the scheduling gate from a pod that is recorded.
    RemoveSchedulingGate(MemberName),
    /// Delete a pod in which etcd does not run, so that it can be recreated.
    DeleteInactivePod(MemberName),
    /// Delete the pod of a hibernated member. Its volume stays.
    Hibernate(MemberName),
}

/// The template that a pod is created from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PodTemplate {
    /// The desired template.
    #[default]
    Desired,
    /// The template that other members run with, because no member has confirmed the desired one
    /// yet.
    Previous,
}

/// At most one change.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Step {
    /// No change.
    Wait,
    /// Create the EtcdMember of a new member, before it is added to etcd: a crash leaves an intent,
    /// and never an unknown member in etcd's list.
    CreateMember(MemberName),
    /// Add a new member as a learner. Precondition: every voter is healthy, and no other member is
    /// being added. A repetition is rejected, because the peer URL exists; the list then has the
    /// member.
    AddLearner(MemberName),
    /// Promote a learner. Precondition: it is healthy and has caught up. A repetition is rejected.
    PromoteLearner(MemberId),
    /// Record that a member is to be removed. That is final, so a crash loses no intent.
    MarkForRemoval(MemberName),
    /// Transfer leadership. Precondition: the transferee is healthy. A repetition changes nothing.
    MoveLeader(MemberId),
    /// Remove a member from etcd's list, by ID: its name could belong to another member by now.
    /// Precondition: the others have quorum without it.
    RemoveMember(MemberId),
    /// Delete the pod of an outdated member; it is recreated with its volume and the current
    /// template. Precondition: every other voter is healthy, or the member is unhealthy. It can be
    /// repeated.
    RecreatePod(MemberName),
    /// Record that the spec is rolled back, because this member does not start with it, and the
    /// template in use instead. That holds until the spec changes, and can be repeated. It needs no
    /// quorum: it disrupts no member, and may be the only way to restore one.
    RollBack(MemberName),
    /// Write entries without effect to the raft log, until members have snapshots beyond all
    /// entries of an older version. Precondition: every voter is healthy. A repetition writes more
    /// entries.
    AdvanceRaftLog,
    /// Enable a downgrade by one minor version in etcd. Precondition: every voter is healthy, and
    /// all run the same version. A repetition is rejected; members then report the downgrade.
    EnableDowngrade,
    /// Cancel a downgrade in etcd. A repetition changes nothing, or is rejected.
    CancelDowngrade,
    /// Switch the peer URL of a member to this scheme: in its EtcdMember first, then in etcd's
    /// list. Precondition: every voter is healthy, the member is a voter, and every pod has peer
    /// certificates if the scheme needs them. A repetition changes nothing.
    UpdatePeerUrl(MemberName, Scheme),
    /// Create the required users and roles in etcd: root, the operator, applications. Precondition:
    /// every voter is healthy. Existing ones stay as they are, except for root's password.
    EnsureUsers,
    /// Enable authentication. Precondition: the operator's user exists and has full access. It can
    /// be repeated.
    EnableAuth,
    /// Disable authentication. It can be repeated.
    DisableAuth,
    /// Compact to a revision, to reclaim space. Precondition: writes are rejected, and every voter
    /// is healthy. A repetition is rejected, which shows that the compaction is done.
    Compact(Revision),
    /// Defragment a member, which is unavailable until that is done. It is recorded first, with a
    /// deadline. Precondition: every voter is healthy, there is no learner, and the member is not
    /// the leader if another voter can be. It can be repeated, at most twice.
    Defragment(MemberName),
    /// Record that the run of defragmentations is complete.
    FinishDefragmentation,
    /// Disarm an alarm. Precondition: its cause is gone. It can be repeated.
    DisarmAlarm(Alarm),
    /// Delete the pod of a member that etcd does not list any more.
    DeletePod(MemberName),
    /// Delete the remaining objects of a member without a pod: its EtcdMember, and its volume if
    /// that belongs to this cluster.
    DeleteMember(MemberName),
}
