//! What one pass shall do, and why.
//! Comes in: nothing. Goes out: `Plan`. May touch: `seen`, the words of `api`; pure.
//! Chores are safe whenever they are done, in any order, and again. A step is not: there is one at
//! most in a pass, and each says here what must hold before it and why a crash in it does no harm.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod deeds;

use serde::{Deserialize, Serialize};

use super::doors::Scheme;
use super::seen::upkeep::{Alarm, Revision};
use super::seen::{ClusterId, MemberId, Name};
use crate::api::told::Told;

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What can be done at any time.
    pub chores: Vec<Chore>,
    /// What changes who the members are.
    pub step: Step,
    /// Which rule spoke.
    pub because: Because,
}

/// Something that is safe at any time and safe to repeat.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Chore {
    /// Write down who founds the cluster: once, and again only after those before were cleared away.
    RecordFounders(Vec<Name>),
    /// Write down that the founders are given up. There is no way back. Nobody can have written to them:
    /// only a cluster that was written down as formed is given a Secret for clients.
    RecordAbandoned,
    /// Clear away a founder that was given up, with its pod and its volume.
    Scrap(Name),
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
        /// What it is made of.
        #[serde(default)]
        of: MadeOf,
    },
    /// Write down a member's first pod. No etcd runs in a pod that was not: whoever comes after a
    /// crash knows that this member may have been somebody.
    RecordPod(Name),
    /// Let a pod go that was written down.
    LetGo(Name),
    /// Delete a pod in which nothing runs, so that another can be made.
    ClearPod(Name),
    /// Delete the pod of a member that shall sleep. Its volume stays.
    Sleep(Name),
}

/// What a pod is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum MadeOf {
    /// What is wanted.
    #[default]
    Wanted,
    /// What others run with, because nobody has shown yet that what is wanted works.
    Before,
}

/// One change, or none.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// Delete the pod of a member that runs as it was made once; it comes back on its volume, as it is made now.
    /// Before: every other voter is well, or it is down itself. Again it does the same.
    Restart(Name),
    /// Write down that what the spec asks for is taken back, because this member does not start with it, and what members
    /// are made of instead. It holds until the spec changes; again it writes the same. It needs no quorum: it changes nobody,
    /// and may be the only way to one.
    TakeBack(Name),
    /// Write entries to etcd's log that change nothing, until members make snapshots that lie beyond what an older
    /// release wrote. Before: every voter is well. Again it writes more of them.
    FillLog,
    /// Tell etcd to bring its data down to the minor version before, so that members of it can come in. Before: every voter
    /// is well, and all run the same. Again it is refused; members say then that it was told.
    AllowDowngrade,
    /// Tell etcd that it shall not go down any more. Again it changes nothing, or is refused.
    ForbidDowngrade,
    /// Let the others call a member in this way: it is written down, then etcd's list is changed. Before: every voter is well, it
    /// votes itself, and every pod has what it needs to call so. Again it changes nothing.
    Readdress(Name, Scheme),
    /// Make everybody known to etcd who must be: root, the operator, the applications. Before: every voter is well. What is there
    /// is left as it is, but for root's password.
    MakeUsers,
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
    Defragment(Name),
    /// Write down that every file had its turn.
    EndUpkeep,
    /// End an alarm. Before: what it was raised for is over. Again it changes nothing.
    Disarm(Alarm),
    /// Delete the pod of a member that etcd does not know any more.
    DeletePod(Name),
    /// Delete what is left of a member that has no pod any more: its EtcdMember, and its volume if the
    /// user wants that.
    Forget(Name),
}

/// Which rule spoke. The same word is in logs, metrics, Events and conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Because {
    /// The user wants everything left alone.
    Paused,
    /// The founders are being made.
    Founding,
    /// The founders have yet to find each other.
    Forming,
    /// The founders cannot become a cluster any more, and others take their place.
    FoundersLost,
    /// There are volumes of another cluster that had this name: a person is needed.
    VolumesRetained,
    /// Another cluster that had this name is not gone yet.
    PredecessorThere,
    /// The user wants nothing to run.
    Asleep,
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
    /// Members are made anew, one after the other, because they should be different.
    Rolling,
    /// Members should be made anew, and it would not be safe now.
    RollingBlocked,
    /// Members should be different, and the first that was made so does not start.
    ChangeFails,
    /// What the spec asks for was taken back, because a member did not start with it: a person is needed.
    TakenBack,
    /// How members or clients call members is changed.
    Switching,
    /// Whether etcd asks for users is changed, or whom it knows.
    ChangingAuth,
    /// etcd shall ask for users, and root's password is not there: a person is needed.
    AuthBlocked,
    /// All members run a new release, and their data is not of its form yet.
    Settling,
    /// There is no way from the release that runs to the one that is asked for: a person is needed.
    Unreachable,
    /// There are fewer members than are wanted.
    TooFew,
    /// There are more members than are wanted.
    TooMany,
    /// Files are rewritten, one after the other, to give back what is free in them.
    Defragmenting,
    /// A file has reached its quota, and room is being made.
    NoSpace,
    /// A file has reached its quota, and there is no room to be made: a person is needed.
    NoSpaceStays,
    /// Members have different data; most have the same, and the others are replaced.
    DataDiffers,
    /// Members have different data, and nobody knows which is right: a person is needed.
    DataDiffersBlocked,
    /// A voter is unwell, and has time to come back.
    MemberUnwell,
    /// Everything is as it is wanted.
    Well,
}

impl Because {
    /// The one word for it in logs, metrics, Events and conditions.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Paused => "Paused",
            Self::Founding => "Founding",
            Self::Forming => "Forming",
            Self::FoundersLost => "FoundersLost",
            Self::VolumesRetained => "VolumesRetained",
            Self::PredecessorThere => "PredecessorThere",
            Self::Asleep => "Asleep",
            Self::QuorumLost => "QuorumLost",
            Self::ForeignCluster => "ForeignCluster",
            Self::ForeignMember => "ForeignMember",
            Self::Leaving => "Leaving",
            Self::LeavingBlocked => "LeavingBlocked",
            Self::Joining => "Joining",
            Self::JoinFailed => "JoinFailed",
            Self::MemberLost => "MemberLost",
            Self::MemberLostBlocked => "MemberLostBlocked",
            Self::Rolling => "Rolling",
            Self::RollingBlocked => "RollingBlocked",
            Self::ChangeFails => "ChangeFails",
            Self::TakenBack => "TakenBack",
            Self::Switching => "SwitchingTLS",
            Self::ChangingAuth => "ChangingAuth",
            Self::AuthBlocked => "AuthBlocked",
            Self::Settling => "Settling",
            Self::Unreachable => "VersionUnreachable",
            Self::TooFew => "TooFew",
            Self::TooMany => "TooMany",
            Self::Defragmenting => "Defragmenting",
            Self::NoSpace => "NoSpace",
            Self::NoSpaceStays => "NoSpaceStays",
            Self::DataDiffers => "DataDiffers",
            Self::DataDiffersBlocked => "DataDiffersBlocked",
            Self::MemberUnwell => "MemberUnwell",
            Self::Well => "Well",
        }
    }

    /// Whether it is nothing that anybody hoped for.
    #[must_use]
    pub const fn is_trouble(self) -> bool {
        match self {
            Self::FoundersLost
            | Self::VolumesRetained
            | Self::QuorumLost
            | Self::ForeignCluster
            | Self::ForeignMember
            | Self::LeavingBlocked
            | Self::JoinFailed
            | Self::MemberLost
            | Self::MemberLostBlocked
            | Self::RollingBlocked
            | Self::ChangeFails
            | Self::TakenBack
            | Self::Unreachable
            | Self::AuthBlocked
            | Self::NoSpace
            | Self::NoSpaceStays
            | Self::DataDiffers
            | Self::DataDiffersBlocked
            | Self::MemberUnwell => true,
            Self::Paused
            | Self::PredecessorThere
            | Self::Asleep
            | Self::Founding
            | Self::Forming
            | Self::Leaving
            | Self::Joining
            | Self::Rolling
            | Self::Switching
            | Self::ChangingAuth
            | Self::Settling
            | Self::Defragmenting
            | Self::TooFew
            | Self::TooMany
            | Self::Well => false,
        }
    }

    /// Whether nothing goes on until a person does something.
    #[must_use]
    pub const fn needs_a_person(self) -> bool {
        match self {
            Self::VolumesRetained
            | Self::ForeignCluster
            | Self::ForeignMember
            | Self::TakenBack
            | Self::AuthBlocked
            | Self::NoSpaceStays
            | Self::DataDiffersBlocked
            | Self::Unreachable => true,
            Self::Paused
            | Self::PredecessorThere
            | Self::Asleep
            | Self::FoundersLost
            | Self::Founding
            | Self::Forming
            | Self::QuorumLost
            | Self::Leaving
            | Self::LeavingBlocked
            | Self::Joining
            | Self::JoinFailed
            | Self::MemberLost
            | Self::MemberLostBlocked
            | Self::Rolling
            | Self::RollingBlocked
            | Self::ChangeFails
            | Self::Switching
            | Self::ChangingAuth
            | Self::Settling
            | Self::Defragmenting
            | Self::NoSpace
            | Self::DataDiffers
            | Self::TooFew
            | Self::TooMany
            | Self::MemberUnwell
            | Self::Well => false,
        }
    }
}
