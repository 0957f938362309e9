//! What one pass shall do, and why.
//! Comes in: nothing. Goes out: `Plan`. May touch: `seen`, the words of `api`; pure.
//! Chores are safe whenever they are done, in any order, and again. A step is not: there is one at
//! most in a pass, and each says here what must hold before it and why a crash in it does no harm.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod names;

use serde::{Deserialize, Serialize};

pub use super::reason::Reason;
use super::state::defragmentation::{Alarm, Revision};
use super::state::{ClusterId, MemberId, MemberName};
use super::transport::Scheme;
use crate::api::start_mode::StartMode;

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What can be done at any time.
    pub tasks: Vec<Task>,
    /// What changes who the members are.
    pub step: Step,
    /// Which rule spoke.
    pub reason: Reason,
}

/// Something that is safe at any time and safe to repeat.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Task {
    /// Write down who founds the cluster: once, and again only after those before were cleared away.
    RecordBootstrapMembers(Vec<MemberName>),
    /// Write down that the founders are given up. There is no way back. Nobody can have written to them:
    /// only a cluster that was written down as formed is given a Secret for clients.
    AbortBootstrap,
    /// Clear away a founder that was given up, with its pod and its volume.
    DeleteBootstrapMember(MemberName),
    /// Write down that founders are let go, once. From then on a founder without an EtcdMember is one
    /// that was deleted, and not one that was never made.
    RecordBootstrapStarted,
    /// Write down which cluster was founded, once.
    RecordClusterId(ClusterId),
    /// Make the EtcdMember of a founder.
    CreateBootstrapMember(MemberName),
    /// Make the EtcdMember anew that belongs to a volume, as one that had a pod before.
    AdoptVolume(MemberName),
    /// Make a member's pod; what may found or join waits until it was written down.
    CreatePod {
        /// Whose.
        member: MemberName,
        /// What its agent is told.
        start_mode: StartMode,
        /// What it is made of.
        #[serde(default)]
        template: PodTemplate,
    },
    /// Write down a member's first pod. No etcd runs in a pod that was not: whoever comes after a
    /// crash knows that this member may have been somebody.
    MarkStarted(MemberName),
    /// Let a pod go that was written down.
    RemoveSchedulingGate(MemberName),
    /// Delete a pod in which nothing runs, so that another can be made.
    DeleteInactivePod(MemberName),
    /// Delete the pod of a member that shall sleep. Its volume stays.
    Hibernate(MemberName),
}

/// What a pod is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PodTemplate {
    /// What is wanted.
    #[default]
    Desired,
    /// What others run with, because nobody has shown yet that what is wanted works.
    Previous,
}

/// One change, or none.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Step {
    /// None.
    Wait,
    /// Make the EtcdMember of somebody who joins. Before etcd hears of them, so that a crash leaves an
    /// intention and never a stranger in etcd's list.
    CreateMember(MemberName),
    /// Let etcd know of a joiner, who only listens. Before: every voter is well and nobody else is on
    /// the way. Again it is refused, because the peer URL is taken; the list shows it then.
    AddLearner(MemberName),
    /// Let a listener vote. Before: it answers, and is near enough. Again it is refused.
    PromoteLearner(MemberId),
    /// Write down that a member goes. It can never be taken back, so a crash loses no intention.
    MarkForRemoval(MemberName),
    /// Let another lead. Before: they are well. Again it changes nothing.
    MoveLeader(MemberId),
    /// Strike a member from etcd's list, by its ID: a name could be another's by now. Before: the rest
    /// can agree without it.
    RemoveMember(MemberId),
    /// Delete the pod of a member that runs as it was made once; it comes back on its volume, as it is made now.
    /// Before: every other voter is well, or it is down itself. Again it does the same.
    RecreatePod(MemberName),
    /// Write down that what the spec asks for is taken back, because this member does not start with it, and what members
    /// are made of instead. It holds until the spec changes; again it writes the same. It needs no quorum: it changes nobody,
    /// and may be the only way to one.
    RollBack(MemberName),
    /// Write entries to etcd's log that change nothing, until members make snapshots that lie beyond what an older
    /// release wrote. Before: every voter is well. Again it writes more of them.
    AdvanceRaftLog,
    /// Tell etcd to bring its data down to the minor version before, so that members of it can come in. Before: every voter
    /// is well, and all run the same. Again it is refused; members say then that it was told.
    EnableDowngrade,
    /// Tell etcd that it shall not go down any more. Again it changes nothing, or is refused.
    CancelDowngrade,
    /// Let the others call a member in this way: it is written down, then etcd's list is changed. Before: every voter is well, it
    /// votes itself, and every pod has what it needs to call so. Again it changes nothing.
    UpdatePeerUrl(MemberName, Scheme),
    /// Make everybody known to etcd who must be: root, the operator, the applications. Before: every voter is well. What is there
    /// is left as it is, but for root's password.
    EnsureUsers,
    /// Let etcd ask for users. Before: the operator was seen among them, with every right. Again it changes nothing.
    EnableAuth,
    /// Let etcd ask for no users any more. Again it changes nothing.
    DisableAuth,
    /// Give history up to a revision, so that there is room again. Before: nobody can write, and every voter is well. Again it is
    /// refused, which says that it was done.
    Compact(Revision),
    /// Let a member rewrite its file, which gives free space back; it answers nobody meanwhile. It is written down before, with how long
    /// that may take. Before: every voter is well, nobody listens, and it does not lead if there is another who can. Again it does
    /// the same, twice at the most.
    Defragment(MemberName),
    /// Write down that every file had its turn.
    FinishDefragmentation,
    /// End an alarm. Before: what it was raised for is over. Again it changes nothing.
    DisarmAlarm(Alarm),
    /// Delete the pod of a member that etcd does not know any more.
    DeletePod(MemberName),
    /// Delete what is left of a member that has no pod any more: its EtcdMember, and its volume if the
    /// user wants that.
    DeleteMember(MemberName),
}
