//! The observed state of a cluster, as plain data: the only input of a decision.
//!
//! Guarantees: what could not be read is `Unknown` and never omitted; a member list that failed
//! must not be mistaken for an empty one.
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

/// A value that was read, or the fact that it could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Reading<T> {
    /// The value.
    Known(T),
    /// The value could not be read.
    Unknown,
}

impl<T> Reading<T> {
    /// The value, if it could be read.
    pub const fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown => None,
        }
    }
}

/// The name of a member, which is also the name of its pod, its volume and its host.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MemberName(pub String);

impl fmt::Display for MemberName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// etcd's ID of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MemberId(pub u64);

/// etcd's ID of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ClusterId(pub u64);

/// The state of a cluster, as one reconciliation observes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ObservedState {
    /// The desired state.
    pub desired: DesiredState,
    /// What is recorded of the bootstrap.
    pub bootstrap: BootstrapRecord,
    /// The members that have an EtcdMember, oldest first.
    pub members: Vec<Member>,
    /// Volumes of members that have no EtcdMember, although they were not marked for removal.
    pub orphaned_volumes: Vec<MemberName>,
    /// Volumes of a previous cluster of the same name.
    pub retained_volumes: Vec<MemberName>,
    /// Members and pods of a previous cluster of the same name that still exist.
    pub previous_cluster_objects: Vec<MemberName>,
    /// What a quorum of etcd reports.
    pub etcd: Reading<EtcdState>,
    /// Names that no object uses; at least as many as there can be members.
    pub candidate_names: Vec<MemberName>,
    /// The state of defragmentation and compaction.
    #[serde(default)]
    pub defragmentation: Defragmentation,
}

/// The desired state of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DesiredState {
    /// The number of members; the cluster is hibernated with 0.
    pub replicas: usize,
    /// Whether reconciliation is paused.
    pub paused: bool,
    /// Whether data survives the deletion of a pod.
    pub persistent: bool,
    /// How far the cluster is on the path to the version of the spec.
    pub version: VersionProgress,
    /// Whether the spec can be rolled back, or is.
    #[serde(default)]
    pub rollback: Rollback,
    /// The scheme of the peer URLs.
    #[serde(default)]
    pub peer_scheme: Scheme,
    /// Whether the scheme for clients differs from the spec, or changed so recently that clients
    /// may still use the previous one.
    #[serde(default)]
    pub client_tls_transition: bool,
}

/// Whether the spec can be rolled back to a template that is known to work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Rollback {
    /// No such template is known, or it equals the spec.
    #[default]
    Unavailable,
    /// Such a template is known.
    Available,
    /// The spec is rolled back: pods are created from that template.
    Active,
}

/// How far the cluster is on the path to the version of the spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum VersionProgress {
    /// Members run the version of the spec, or are updated to it.
    AtTarget,
    /// At least one more version comes after the one that members are updated to.
    MoreSteps,
    /// The spec has the minor version below the running one; data is downgraded before members are.
    Downgrading,
    /// No upgrade path leads from the running version to the spec.
    NoPath,
}

/// What is recorded of the bootstrap, and never decided again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BootstrapRecord {
    /// The initial members.
    pub members: Vec<MemberName>,
    /// Whether an initial member may have started.
    pub started: bool,
    /// Whether the bootstrap was aborted; it is repeated with other initial members.
    pub aborted: bool,
    /// The ID of the cluster that was formed.
    pub cluster_id: Option<ClusterId>,
}

/// A member, as its EtcdMember, its pod and its volume show.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Member {
    /// The name.
    pub name: MemberName,
    /// The intent recorded in the EtcdMember.
    pub intent: Intent,
    /// Whether the first pod is recorded. No pod runs before that.
    pub started: bool,
    /// The pod.
    pub pod: Reading<PodState>,
    /// The volume.
    pub volume: Reading<VolumeState>,
    /// Whether the pod was created from the current template.
    pub template: TemplateState,
    /// Whether the member has been unhealthy for longer than the spec allows.
    pub replacement_due: bool,
    /// Whether the pod failed to start so often, or for so long, that waiting longer does not help.
    #[serde(default)]
    pub failing: bool,
    /// The scheme of the peer URL that is recorded for the member.
    #[serde(default)]
    pub peer_scheme: Scheme,
}

/// The template that a member's pod was created from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TemplateState {
    /// The current template; or there is no pod.
    UpToDate,
    /// Another template, and etcd does not run.
    StaleNotRunning,
    /// Another template that other members run with, and etcd does not run yet.
    PreviousNotRunning,
    /// Another template, and etcd runs.
    Outdated,
}

/// The state of a member's pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PodState {
    /// No pod exists.
    Missing,
    /// The pod has its scheduling gate; no container of it has run.
    Gated,
    /// The pod may run.
    Active,
    /// The agent does not start etcd, because the member's data is missing.
    DataMissing,
    /// The pod is being deleted. On a lost node that never ends.
    Terminating,
    /// The pod has terminated for good, for example because the kubelet rejected or evicted it.
    Terminated,
}

/// The state of a member's volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum VolumeState {
    /// No volume exists.
    Missing,
    /// The volume exists, or the data lives in the pod.
    Present,
    /// The volume is being deleted.
    Terminating,
}

/// What a quorum of etcd reports.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EtcdState {
    /// The ID of the cluster that responded.
    pub cluster: ClusterId,
    /// The leader.
    pub leader: Option<MemberId>,
    /// The member list.
    pub members: Vec<ListedMember>,
    /// Whether an alarm is active that forbids disruption of members.
    pub blocking_alarm: bool,
    /// Whether the database files are within their quota.
    #[serde(default)]
    pub quota: Quota,
    /// Whether the CORRUPT alarm is active.
    #[serde(default)]
    pub corrupt: bool,
    /// How many raft log entries must be written before the next version can start.
    #[serde(default)]
    pub raft_log_missing: u64,
    /// Whether a downgrade is enabled in etcd.
    #[serde(default)]
    pub downgrade: Downgrade,
    /// Whether authentication is as desired.
    #[serde(default)]
    pub auth: AuthState,
}

/// The state of etcd's authentication, compared with the desired one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AuthState {
    /// As desired.
    #[default]
    InSync,
    /// Could not be read.
    Unknown,
    /// To be enabled; required users or roles do not exist yet.
    UsersMissing,
    /// To be enabled; all required users and roles exist.
    UsersReady,
    /// Enabled; the Secret has another password for root.
    RootPasswordMismatch,
    /// To be enabled; the Secret with root's password does not exist.
    RootPasswordMissing,
    /// To be enabled; etcd would not accept the operator's certificate as its user.
    OperatorNotRecognized,
    /// Enabled, although the spec disables it.
    EnabledUnexpectedly,
}

/// Whether a downgrade is enabled in etcd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Downgrade {
    /// Not enabled, or not known.
    #[default]
    None,
    /// Enabled, and desired.
    Requested,
    /// Enabled, and not desired any more.
    Unwanted,
}

/// An entry of etcd's member list.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ListedMember {
    /// etcd's ID of the member.
    pub id: MemberId,
    /// The name in the peer URL, which is set before the member starts.
    pub name: MemberName,
    /// Whether the member is a learner.
    pub is_learner: bool,
    /// Whether the member is healthy: a voter serves linearizable reads; a learner serves
    /// serializable reads and is close enough to the leader.
    pub healthy: Reading<bool>,
    /// The scheme of the peer URL in the member list.
    #[serde(default)]
    pub peer_scheme: Scheme,
    /// Whether enough of the database file is free to defragment it.
    #[serde(default)]
    pub should_defragment: bool,
    /// The hash of the member's data; read only while the CORRUPT alarm is active.
    #[serde(default)]
    pub data_hash: Option<u64>,
}

impl Member {
    /// Whether the pod was created from another template and etcd does not run in it.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.template == TemplateState::StaleNotRunning
    }

    /// Whether the pod was created from another template with which it, or another member, runs.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        match self.template {
            TemplateState::Outdated | TemplateState::PreviousNotRunning => true,
            TemplateState::UpToDate | TemplateState::StaleNotRunning => false,
        }
    }

    /// Whether the data is lost for good. An object that is being deleted still exists, and an
    /// unknown one may exist.
    #[must_use]
    pub fn has_lost_data(&self, desired: &DesiredState) -> bool {
        match (self.pod, self.volume) {
            (Reading::Known(PodState::DataMissing), _) => true,
            (Reading::Known(PodState::Missing), Reading::Known(VolumeState::Missing)) => {
                self.started
            }
            (Reading::Known(PodState::Missing | PodState::Terminated), _) => {
                self.started && !desired.persistent
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
    /// The member of this name.
    #[must_use]
    pub fn member(&self, name: &MemberName) -> Option<&Member> {
        self.members.iter().find(|member| member.name == *name)
    }

    /// The members that are not marked for removal.
    pub fn remaining(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.intent.is_leaving())
    }
}

impl EtcdState {
    /// The entry of the member of this name.
    #[must_use]
    pub fn entry(&self, name: &MemberName) -> Option<&ListedMember> {
        self.members.iter().find(|entry| entry.name == *name)
    }

    /// The voters.
    pub fn voters(&self) -> impl Iterator<Item = &ListedMember> {
        self.members.iter().filter(|entry| !entry.is_learner)
    }

    /// The learners.
    pub fn learners(&self) -> impl Iterator<Item = &ListedMember> {
        self.members.iter().filter(|entry| entry.is_learner)
    }

    /// Whether this member is the leader.
    #[must_use]
    pub fn leads(&self, id: MemberId) -> bool {
        self.leader == Some(id)
    }

    /// Whether every voter is known to be healthy.
    #[must_use]
    pub fn all_voters_healthy(&self) -> bool {
        self.voters().all(ListedMember::is_healthy)
    }

    /// Whether the remaining voters have quorum after this member is removed. Only voters that are
    /// known to be healthy count.
    #[must_use]
    pub fn survives_losing(&self, id: MemberId) -> bool {
        let others = || self.voters().filter(|entry| entry.id != id);
        let healthy = others().filter(|entry| entry.is_healthy()).count();
        healthy >= quorum(others().count())
    }
}

impl ListedMember {
    /// Whether the member is known to be healthy.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.healthy == Reading::Known(true)
    }
}

/// The quorum of this many voters; never reached with no voters.
#[must_use]
pub const fn quorum(voters: usize) -> usize {
    voters.div_euclid(2).saturating_add(1)
}
