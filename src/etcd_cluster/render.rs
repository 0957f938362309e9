//! Renders the objects of a cluster as they should be. Pure: the same input gives the same object,
//! so that applying it again changes nothing.
//!
//! ```text
//!   Blueprint --+--> metadata   labels, owners, names and URLs
//!               +--> service    Services
//!               +--> pdb        the PodDisruptionBudget
//!               +--> member     the EtcdMember and its PVC
//!               +--> pod        the pod: volumes, containers <-- flags <-- options
//! ```
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod affinity;
mod container;
mod flags;
mod member;
pub(crate) mod metadata;
pub(crate) mod options;
mod pdb;
mod pod;
mod quantity;
mod service;
mod volumes;

#[cfg(test)]
pub(crate) mod tests;

use crate::api::etcd_cluster::validated::EtcdCluster;
use crate::api::etcd_version::Minor;
use crate::etcd_cluster::transport::observed::Transport;
use options::Measured;

pub(crate) use flags::Peer;

/// What all objects of a cluster are rendered from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blueprint<'a> {
    /// The cluster's name.
    pub(crate) name: &'a str,
    /// The cluster's namespace.
    pub(crate) namespace: &'a str,
    /// The uid of its EtcdCluster.
    pub(crate) uid: &'a str,
    /// The validated spec.
    pub(crate) spec: &'a EtcdCluster,
    /// The schemes in use while they differ from the spec.
    pub(crate) transport: Option<&'a Transport>,
    /// What was measured where members run; options are derived from it.
    pub(crate) measured: Measured,
    /// Whether peer certificates must carry the cluster's name, because an external CA issues them.
    pub(crate) requires_cluster_name: bool,
    /// The image that contains this binary.
    pub(crate) agent_image: &'a str,
    /// The pull policy of that image; Kubernetes' default if unset.
    pub(crate) agent_pull_policy: Option<&'a str>,
}

/// What this release cannot render. Admission denies it, too; but an object may be older than that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RenderError {
    /// A minor version whose flags are not known to this release.
    #[error("spec.version: etcd {0} is not supported in this release")]
    UnsupportedVersion(Minor),
}
