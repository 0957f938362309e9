//! All that one pass knows about a cluster, as plain data.
//! Comes in: nothing. Goes out: `Seen`. May touch: nothing; pure.
//! What could not be read is `Unknown`, and is never left out: a list of members that failed must not
//! look like an empty one.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub(crate) mod build;
pub(crate) mod db_file;
pub mod defragmentation;
pub(crate) mod health;
mod intent;
pub(crate) mod pod;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::transport::Scheme;
use defragmentation::{Defragmentation, Quota};

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
pub struct MemberName(pub String);

impl fmt::Display for MemberName {
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
pub struct ObservedState {
    /// What the user wants.
    pub desired: DesiredState,
    /// What was written down about the cluster when it became so.
    pub bootstrap: BootstrapRecord,
    /// The members that there are objects of, in the order in which they were made.
    pub members: Vec<Member>,
    /// Volumes of members whose EtcdMember is gone though nobody retired it.
    pub orphaned_volumes: Vec<MemberName>,
    /// Volumes of another cluster that had this one's name.
    pub retained_volumes: Vec<MemberName>,
    /// Members and pods of another cluster that had this one's name, and are not gone yet.
    pub previous_cluster_objects: Vec<MemberName>,
    /// What etcd says, asked in a way that needs a quorum.
    pub etcd: Reading<EtcdState>,
    /// Names that no member has, and that nothing is left of; as many as there can be members.
    pub candidate_names: Vec<MemberName>,
    /// How the members' files are looked after.
    #[serde(default)]
    pub defragmentation: Defragmentation,
}

/// What the user wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DesiredState {
    /// How many members; with none the cluster sleeps.
    pub replicas: usize,
    /// Whether to leave everything alone.
    pub paused: bool,
    /// Whether data survives the end of a pod.
    pub persistent: bool,
    /// How far it is to the release that is asked for.
    pub version: VersionProgress,
    /// Whether there is a way back from what the spec asks for.
    #[serde(default)]
    pub rollback: Rollback,
    /// How members shall call each other.
    #[serde(default)]
    pub peer_scheme: Scheme,
    /// Whether clients shall call in another way, or were told so a short while ago and have time to follow.
    #[serde(default)]
    pub client_tls_transition: bool,
}

/// Whether there is a way back from what the spec asks for, to what worked before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Rollback {
    /// Nobody knows what worked before, or it is the same.
    #[default]
    Unavailable,
    /// It is known what worked before.
    Available,
    /// It was taken: members are made of what worked before.
    Active,
}

/// How far it is to the release that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum VersionProgress {
    /// It is what is brought in now.
    AtTarget,
    /// It comes after what is brought in now.
    MoreSteps,
    /// It is of the minor version before what runs, and data must be brought down before members of it come in.
    Downgrading,
    /// There is no way from what runs.
    NoPath,
}

/// What is never decided twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BootstrapRecord {
    /// Those who found the cluster.
    pub members: Vec<MemberName>,
    /// Whether any of them may have run.
    pub started: bool,
    /// Whether they are given up, and others found the cluster.
    pub aborted: bool,
    /// The cluster that they founded.
    pub cluster_id: Option<ClusterId>,
}

/// A member as its EtcdMember and its objects show it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Member {
    /// Its name.
    pub name: MemberName,
    /// What it is there for.
    pub intent: Intent,
    /// Whether its first pod was written down. Only then may that pod run.
    pub started: bool,
    /// Its pod.
    pub pod: Reading<PodState>,
    /// Its volume.
    pub volume: Reading<VolumeState>,
    /// Whether its pod is as it would be made now.
    pub template: TemplateState,
    /// Whether it has been unwell for longer than the user puts up with.
    pub replacement_due: bool,
    /// Whether its pod has failed to start so often, or for so long, that it is of no use to wait.
    #[serde(default)]
    pub failing: bool,
    /// How the others shall call it, as it was written down.
    #[serde(default)]
    pub peer_scheme: Scheme,
}

/// What a member's pod was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TemplateState {
    /// The spec that there is now; or there is none.
    UpToDate,
    /// Another spec, and etcd does not run in it.
    StaleNotRunning,
    /// Another spec, which others run with; and etcd does not run in it, or not yet.
    PreviousNotRunning,
    /// Another spec, and etcd runs in it.
    Outdated,
}

/// A member's pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PodState {
    /// There is none.
    Missing,
    /// It waits to be let go; nothing in it has run.
    Gated,
    /// It may run.
    Active,
    /// It does not start etcd, because the member's data is gone.
    DataMissing,
    /// It is on its way out. On a node that is lost it stays so.
    Terminating,
    /// It has ended, and nothing in it runs ever again: the node has turned it away.
    Terminated,
}

/// A member's volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum VolumeState {
    /// There is none.
    Missing,
    /// It is there, or comes with the pod.
    Present,
    /// It is on its way out.
    Terminating,
}

/// What etcd says.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EtcdState {
    /// Which cluster answered.
    pub cluster: ClusterId,
    /// Who leads.
    pub leader: Option<MemberId>,
    /// Its list of members.
    pub members: Vec<ListedMember>,
    /// Whether any member has raised an alarm that forbids to disturb anybody.
    pub blocking_alarm: bool,
    /// Whether there is room in the members' files.
    #[serde(default)]
    pub quota: Quota,
    /// Whether members are known to have different data.
    #[serde(default)]
    pub corrupt: bool,
    /// How many entries must be written to its log before the next release can start on it.
    #[serde(default)]
    pub raft_log_missing: u64,
    /// Whether it was told to go down a minor version.
    #[serde(default)]
    pub downgrade: Downgrade,
    /// Whether it asks for users, and shall.
    #[serde(default)]
    pub auth: AuthState,
}

/// Whether etcd asks for users, beside what is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AuthState {
    /// As it is wanted.
    #[default]
    InSync,
    /// Nobody could find out.
    Unknown,
    /// It shall, and does not know yet whom it must know.
    UsersMissing,
    /// It shall, and knows everybody whom it must know.
    UsersReady,
    /// It does, and root's password is another than the Secret has.
    RootPasswordMismatch,
    /// It shall, and there is no password for root.
    RootPasswordMissing,
    /// It shall, and the operator shows a certificate by which it would not be known.
    OperatorNotRecognized,
    /// It does, and shall not.
    EnabledUnexpectedly,
}

/// Whether etcd was told to go down a minor version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Downgrade {
    /// It was not, or nobody can say.
    #[default]
    None,
    /// It was, and that is what is wanted.
    Requested,
    /// It was, and that is not wanted any more.
    Unwanted,
}

/// A member as etcd lists it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ListedMember {
    /// What etcd calls it.
    pub id: MemberId,
    /// The name in its peer URL, which is there before it has started.
    pub name: MemberName,
    /// Whether it only listens.
    pub is_learner: bool,
    /// Whether it answers as it should: a voter with a read that needs a quorum, a learner with one
    /// that does not, and near enough to the leader.
    pub healthy: Reading<bool>,
    /// How the others call it.
    #[serde(default)]
    pub peer_scheme: Scheme,
    /// Whether so much is free in its file that it is worth rewriting.
    #[serde(default)]
    pub should_defragment: bool,
    /// Which data it has: the same for all that have the same. It is asked for while members are known to differ.
    #[serde(default)]
    pub data_hash: Option<u64>,
}

impl Member {
    /// Whether its pod was made from another spec than there is now, and etcd does not run in it.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.template == TemplateState::StaleNotRunning
    }

    /// Whether its pod was made from another spec than there is now, and etcd runs in it, or in others that were made so.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        match self.template {
            TemplateState::Outdated | TemplateState::PreviousNotRunning => true,
            TemplateState::UpToDate | TemplateState::StaleNotRunning => false,
        }
    }

    /// Whether its data is gone for good. What is on its way out is not gone yet, and what is not known
    /// is not gone at all.
    #[must_use]
    pub fn has_lost_data(&self, wanted: &DesiredState) -> bool {
        match (self.pod, self.volume) {
            (Reading::Known(PodState::DataMissing), _) => true,
            (Reading::Known(PodState::Missing), Reading::Known(VolumeState::Missing)) => {
                self.started
            }
            (Reading::Known(PodState::Missing | PodState::Terminated), _) => {
                self.started && !wanted.persistent
            }
            (
                Reading::Known(PodState::Gated | PodState::Active | PodState::Terminating)
                | Reading::Unknown,
                _,
            ) => false,
        }
    }
}

impl ObservedState {
    /// A member, by its name.
    #[must_use]
    pub fn member(&self, name: &MemberName) -> Option<&Member> {
        self.members.iter().find(|it| it.name == *name)
    }

    /// Those who shall stay.
    pub fn remaining(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|it| !it.intent.is_leaving())
    }
}

impl EtcdState {
    /// The entry of a member.
    #[must_use]
    pub fn entry(&self, name: &MemberName) -> Option<&ListedMember> {
        self.members.iter().find(|it| it.name == *name)
    }

    /// Those who vote.
    pub fn voters(&self) -> impl Iterator<Item = &ListedMember> {
        self.members.iter().filter(|it| !it.is_learner)
    }

    /// Those who only listen.
    pub fn learners(&self) -> impl Iterator<Item = &ListedMember> {
        self.members.iter().filter(|it| it.is_learner)
    }

    /// Whether this one leads.
    #[must_use]
    pub fn leads(&self, id: MemberId) -> bool {
        self.leader == Some(id)
    }

    /// Whether every voter is known to be well.
    #[must_use]
    pub fn all_voters_healthy(&self) -> bool {
        self.voters().all(ListedMember::is_healthy)
    }

    /// Whether those who vote can still agree when this one is no longer of them. What is not known to
    /// be well is not counted on.
    #[must_use]
    pub fn survives_losing(&self, id: MemberId) -> bool {
        let rest = || self.voters().filter(|it| it.id != id);
        let well = rest().filter(|it| it.is_healthy()).count();
        well >= quorum(rest().count())
    }
}

impl ListedMember {
    /// Whether it is known to be well.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.healthy == Reading::Known(true)
    }
}

/// How many of so many voters must agree. Nobody never agrees.
#[must_use]
pub const fn quorum(voters: usize) -> usize {
    voters.div_euclid(2).saturating_add(1)
}
