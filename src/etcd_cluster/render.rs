//! The objects of a cluster, as they should be.
//!
//! ```text
//!   Blueprint --+--> metadata   labels, owners, names and URLs
//!               +--> around     Services, the disruption budget
//!               +--> member     the EtcdMember and its volume
//!               +--> pod        the pod: volumes, containers <-- flags <-- tune
//! ```
//!
//! Comes in: a cluster that passed the checks, and who its members are. Goes out: whole objects.
//! May touch: `api`, and Kubernetes' own types. Pure: the same words make the same object, so that
//! whoever applies it again changes nothing.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod around;
mod container;
mod flags;
mod member;
pub(crate) mod metadata;
mod place;
mod pod;
mod quantity;
pub(crate) mod tune;
mod volumes;

#[cfg(test)]
pub(crate) mod tests;

use crate::api::etcd_cluster::checked::EtcdCluster;
use crate::api::etcd_version::Minor;
use crate::etcd_cluster::doors::found::Doors;
use tune::Found;

pub(crate) use flags::Peer;

/// What everything of a cluster is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blueprint<'a> {
    /// The cluster's name.
    pub(crate) name: &'a str,
    /// Where it is.
    pub(crate) namespace: &'a str,
    /// The uid of its EtcdCluster.
    pub(crate) uid: &'a str,
    /// What it should be.
    pub(crate) spec: &'a EtcdCluster,
    /// How its members are reached, where that is not yet or no longer what the spec says.
    pub(crate) doors: Option<&'a Doors>,
    /// What was found where members run, and is chosen by.
    pub(crate) found: Found,
    /// Whether members ask each other for the name of the cluster: others than its own authority sign for them.
    pub(crate) named: bool,
    /// The image that has this very program.
    pub(crate) agent_image: &'a str,
    /// When that image is pulled; Kubernetes' own rule if nothing is said.
    pub(crate) agent_pull_policy: Option<&'a str>,
}

/// What this release cannot make. Admission refuses it, too; but an object may be older than that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotInThisRelease {
    /// A minor version whose flags nobody has looked at.
    #[error("spec.version: etcd {0} is not in this release")]
    Version(Minor),
}
