//! All that one pass knows about a cluster, as plain data.
//! Comes in: nothing. Goes out: `Seen`. May touch: nothing; pure.
//! What could not be read is `Unknown`, and is never left out: a list of members that failed must not
//! look like an empty one.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod intent;
pub mod upkeep;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::doors::Scheme;
use upkeep::{Space, Upkeep};

pub use intent::Intent;

/// What was asked for, if there was an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Reading<T> {
    /// The answer.
    Known(T),
    /// There was none.
    Unknown,
}

impl<T> Reading<T> {
    /// The answer, if there is one.
    pub const fn known(&self) -> Option<&T> {
        match self {
            Self::Known(it) => Some(it),
            Self::Unknown => None,
        }
    }
}

/// The name of a member, which is also its pod's, its volume's, and its host's.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Name(pub String);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What etcd calls a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MemberId(pub u64);

/// What etcd calls a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ClusterId(pub u64);

/// One look at a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Seen {
    /// What the user wants.
    pub wanted: Wanted,
    /// What was written down about the cluster when it became so.
    pub record: Record,
    /// The members that there are objects of, in the order in which they were made.
    pub members: Vec<Member>,
    /// Volumes of members whose EtcdMember is gone though nobody retired it.
    pub orphans: Vec<Name>,
    /// Volumes of another cluster that had this one's name.
    pub retained: Vec<Name>,
    /// Members and pods of another cluster that had this one's name, and are not gone yet.
    pub predecessors: Vec<Name>,
    /// What etcd says, asked in a way that needs a quorum.
    pub etcd: Reading<Etcd>,
    /// Names that no member has, and that nothing is left of; as many as there can be members.
    pub free_names: Vec<Name>,
    /// How the members' files are looked after.
    #[serde(default)]
    pub upkeep: Upkeep,
}

/// What the user wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Wanted {
    /// How many members; with none the cluster sleeps.
    pub replicas: usize,
    /// Whether to leave everything alone.
    pub paused: bool,
    /// Whether data survives the end of a pod.
    pub durable: bool,
    /// How far it is to the release that is asked for.
    pub course: Course,
    /// Whether there is a way back from what the spec asks for.
    #[serde(default)]
    pub way_back: WayBack,
    /// How members shall call each other.
    #[serde(default)]
    pub peers: Scheme,
    /// Whether clients shall call in another way, or were told so a short while ago and have time to follow.
    #[serde(default)]
    pub clients_move: bool,
}

/// Whether there is a way back from what the spec asks for, to what worked before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum WayBack {
    /// Nobody knows what worked before, or it is the same.
    #[default]
    Unknown,
    /// It is known what worked before.
    Known,
    /// It was taken: members are made of what worked before.
    Taken,
}

/// How far it is to the release that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Course {
    /// It is what is brought in now.
    Reached,
    /// It comes after what is brought in now.
    Further,
    /// It is of the minor version before what runs, and data must be brought down before members of it come in.
    Down,
    /// There is no way from what runs.
    NoWay,
}

/// What is never decided twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Record {
    /// Those who found the cluster.
    pub founders: Vec<Name>,
    /// Whether any of them may have run.
    pub begun: bool,
    /// Whether they are given up, and others found the cluster.
    pub abandoned: bool,
    /// The cluster that they founded.
    pub formed: Option<ClusterId>,
}

/// A member as its EtcdMember and its objects show it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Member {
    /// Its name.
    pub name: Name,
    /// What it is there for.
    pub intent: Intent,
    /// Whether its first pod was written down. Only then may that pod run.
    pub had_pod: bool,
    /// Its pod.
    pub pod: Reading<Pod>,
    /// Its volume.
    pub volume: Reading<Volume>,
    /// Whether its pod is as it would be made now.
    pub made: Made,
    /// Whether it has been unwell for longer than the user puts up with.
    pub given_up: bool,
    /// Whether its pod has failed to start so often, or for so long, that it is of no use to wait.
    #[serde(default)]
    pub fails: bool,
    /// How the others shall call it, as it was written down.
    #[serde(default)]
    pub address: Scheme,
}

/// What a member's pod was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Made {
    /// The spec that there is now; or there is none.
    AsWanted,
    /// Another spec, and etcd does not run in it.
    Stale,
    /// Another spec, which others run with; and etcd does not run in it, or not yet.
    AsBefore,
    /// Another spec, and etcd runs in it.
    Outdated,
}

/// A member's pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Pod {
    /// There is none.
    None,
    /// It waits to be let go; nothing in it has run.
    Gated,
    /// It may run.
    Started,
    /// It does not start etcd, because the member's data is gone.
    Refuses,
    /// It is on its way out. On a node that is lost it stays so.
    Going,
    /// It has ended, and nothing in it runs ever again: the node has turned it away.
    Ended,
}

/// A member's volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Volume {
    /// There is none.
    None,
    /// It is there, or comes with the pod.
    There,
    /// It is on its way out.
    Going,
}

/// What etcd says.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Etcd {
    /// Which cluster answered.
    pub cluster: ClusterId,
    /// Who leads.
    pub leader: Option<MemberId>,
    /// Its list of members.
    pub list: Vec<Registered>,
    /// Whether any member has raised an alarm that forbids to disturb anybody.
    pub alarmed: bool,
    /// Whether there is room in the members' files.
    #[serde(default)]
    pub space: Space,
    /// Whether members are known to have different data.
    #[serde(default)]
    pub corrupt: bool,
    /// How many entries must be written to its log before the next release can start on it.
    #[serde(default)]
    pub log_lacks: u64,
    /// Whether it was told to go down a minor version.
    #[serde(default)]
    pub lowering: Lowering,
    /// Whether it asks for users, and shall.
    #[serde(default)]
    pub auth: Auth,
}

/// Whether etcd asks for users, beside what is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Auth {
    /// As it is wanted.
    #[default]
    AsWanted,
    /// Nobody could find out.
    Unknown,
    /// It shall, and does not know yet whom it must know.
    Unprepared,
    /// It shall, and knows everybody whom it must know.
    Prepared,
    /// It does, and root's password is another than the Secret has.
    OtherPassword,
    /// It shall, and there is no password for root.
    NoPassword,
    /// It shall, and the operator shows a certificate by which it would not be known.
    Unnamed,
    /// It does, and shall not.
    Unwanted,
}

/// Whether etcd was told to go down a minor version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Lowering {
    /// It was not, or nobody can say.
    #[default]
    No,
    /// It was, and that is what is wanted.
    AsWanted,
    /// It was, and that is not wanted any more.
    Unwanted,
}

/// A member as etcd lists it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Registered {
    /// What etcd calls it.
    pub id: MemberId,
    /// The name in its peer URL, which is there before it has started.
    pub name: Name,
    /// Whether it only listens.
    pub learner: bool,
    /// Whether it answers as it should: a voter with a read that needs a quorum, a learner with one
    /// that does not, and near enough to the leader.
    pub healthy: Reading<bool>,
    /// How the others call it.
    #[serde(default)]
    pub peer: Scheme,
    /// Whether so much is free in its file that it is worth rewriting.
    #[serde(default)]
    pub worth: bool,
    /// Which data it has: the same for all that have the same. It is asked for while members are known to differ.
    #[serde(default)]
    pub copy: Option<u64>,
}

impl Member {
    /// Whether its pod was made from another spec than there is now, and etcd does not run in it.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.made == Made::Stale
    }

    /// Whether its pod was made from another spec than there is now, and etcd runs in it, or in others that were made so.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        match self.made {
            Made::Outdated | Made::AsBefore => true,
            Made::AsWanted | Made::Stale => false,
        }
    }

    /// Whether its data is gone for good. What is on its way out is not gone yet, and what is not known
    /// is not gone at all.
    #[must_use]
    pub fn has_lost_its_data(&self, wanted: &Wanted) -> bool {
        match (self.pod, self.volume) {
            (Reading::Known(Pod::Refuses), _) => true,
            (Reading::Known(Pod::None), Reading::Known(Volume::None)) => self.had_pod,
            (Reading::Known(Pod::None | Pod::Ended), _) => self.had_pod && !wanted.durable,
            (Reading::Known(Pod::Gated | Pod::Started | Pod::Going) | Reading::Unknown, _) => false,
        }
    }
}

impl Seen {
    /// A member, by its name.
    #[must_use]
    pub fn member(&self, name: &Name) -> Option<&Member> {
        self.members.iter().find(|it| it.name == *name)
    }

    /// Those who shall stay.
    pub fn staying(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|it| !it.intent.goes())
    }
}

impl Etcd {
    /// The entry of a member.
    #[must_use]
    pub fn entry(&self, name: &Name) -> Option<&Registered> {
        self.list.iter().find(|it| it.name == *name)
    }

    /// Those who vote.
    pub fn voters(&self) -> impl Iterator<Item = &Registered> {
        self.list.iter().filter(|it| !it.learner)
    }

    /// Those who only listen.
    pub fn learners(&self) -> impl Iterator<Item = &Registered> {
        self.list.iter().filter(|it| it.learner)
    }

    /// Whether this one leads.
    #[must_use]
    pub fn leads(&self, id: MemberId) -> bool {
        self.leader == Some(id)
    }

    /// Whether every voter is known to be well.
    #[must_use]
    pub fn all_voters_are_well(&self) -> bool {
        self.voters().all(Registered::is_well)
    }

    /// Whether those who vote can still agree when this one is no longer of them. What is not known to
    /// be well is not counted on.
    #[must_use]
    pub fn survives_losing(&self, id: MemberId) -> bool {
        let rest = || self.voters().filter(|it| it.id != id);
        let well = rest().filter(|it| it.is_well()).count();
        well >= quorum(rest().count())
    }
}

impl Registered {
    /// Whether it is known to be well.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.healthy == Reading::Known(true)
    }
}

/// How many of so many voters must agree. Nobody never agrees.
#[must_use]
pub const fn quorum(voters: usize) -> usize {
    voters.div_euclid(2).saturating_add(1)
}
