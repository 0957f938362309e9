//! What one pass shall do, and why.
//! Comes in: nothing. Goes out: `Plan`. May touch: `seen`, the words of `api`; pure.
//! Chores are safe whenever they are done, in any order, and again. A step is not: there is one at
//! most in a pass, and each says here what must hold before it and why a crash in it does no harm.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::seen::{ClusterId, MemberId, Name};
use crate::api::told::Told;

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What can be done at any time.
    pub chores: Vec<Chore>,
    /// What changes who the members are.
    pub step: Step,
    /// Which rule spoke.
    pub because: Because,
}

/// Something that is safe at any time and safe to repeat.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Chore {
    /// Write down who founds the cluster, once.
    RecordFounders(Vec<Name>),
    /// Write down that founders are let go, once. From then on a founder without an EtcdMember is one
    /// that was deleted, and not one that was never made.
    RecordBegun,
    /// Write down which cluster was founded, once.
    RecordFormed(ClusterId),
    /// Make the EtcdMember of a founder.
    MakeFounder(Name),
    /// Make the EtcdMember anew that belongs to a volume, as one that had a pod before.
    Adopt(Name),
    /// Make a member's pod; what may found or join waits until it was written down.
    MakePod {
        /// Whose.
        member: Name,
        /// What its agent is told.
        told: Told,
    },
    /// Write down a member's first pod. No etcd runs in a pod that was not: whoever comes after a
    /// crash knows that this member may have been somebody.
    RecordPod(Name),
    /// Let a pod go that was written down.
    LetGo(Name),
}

/// One change, or none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// None.
    Wait,
    /// Make the EtcdMember of somebody who joins. Before etcd hears of them, so that a crash leaves an
    /// intention and never a stranger in etcd's list.
    MakeJoiner(Name),
    /// Let etcd know of a joiner, who only listens. Before: every voter is well and nobody else is on
    /// the way. Again it is refused, because the peer URL is taken; the list shows it then.
    AddLearner(Name),
    /// Let a listener vote. Before: it answers, and is near enough. Again it is refused.
    Promote(MemberId),
    /// Write down that a member goes. It can never be taken back, so a crash loses no intention.
    Retire(Name),
    /// Let another lead. Before: they are well. Again it changes nothing.
    MoveLeader(MemberId),
    /// Strike a member from etcd's list, by its ID: a name could be another's by now. Before: the rest
    /// can agree without it.
    Remove(MemberId),
    /// Delete the pod of a member that etcd does not know any more.
    DeletePod(Name),
    /// Delete what is left of a member that has no pod any more: its EtcdMember, and its volume if the
    /// user wants that.
    Forget(Name),
}

/// Which rule spoke. The same word is in logs, metrics, Events and conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Because {
    /// The user wants everything left alone.
    Paused,
    /// The founders are being made.
    Founding,
    /// The founders have yet to find each other.
    Forming,
    /// Too many founders have lost their data before they were a cluster: a person is needed.
    FoundersLost,
    /// etcd does not answer with a quorum, or nobody could ask it.
    QuorumLost,
    /// Another cluster than the one that was founded answers: a person is needed.
    ForeignCluster,
    /// etcd lists somebody who is none of ours: a person is needed.
    ForeignMember,
    /// A member goes.
    Leaving,
    /// A member goes, and the others cannot do without it yet.
    LeavingBlocked,
    /// A member comes.
    Joining,
    /// A member that comes has not come for too long.
    JoinFailed,
    /// A member has lost its data, or has been unwell for too long.
    MemberLost,
    /// A member has lost its data, and the others cannot do without it.
    MemberLostBlocked,
    /// There are fewer members than are wanted.
    TooFew,
    /// There are more members than are wanted.
    TooMany,
    /// A voter is unwell, and has time to come back.
    MemberUnwell,
    /// Everything is as it is wanted.
    Well,
}

impl Because {
    /// Whether nothing goes on until a person does something.
    #[must_use]
    pub const fn needs_a_person(self) -> bool {
        match self {
            Self::FoundersLost | Self::ForeignCluster | Self::ForeignMember => true,
            Self::Paused
            | Self::Founding
            | Self::Forming
            | Self::QuorumLost
            | Self::Leaving
            | Self::LeavingBlocked
            | Self::Joining
            | Self::JoinFailed
            | Self::MemberLost
            | Self::MemberLostBlocked
            | Self::TooFew
            | Self::TooMany
            | Self::MemberUnwell
            | Self::Well => false,
        }
    }
}
