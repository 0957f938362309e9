//! The hash of the trust bundle in a pod's annotation. Pure.
//! etcd reads its trusted CA files only at start: a pod with another hash is recreated like for any
//! other template change.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::ca_set::{CaSet, RotationPhase};
use super::trust_bundle::Side;
use super::trust_state::TrustStates;
use crate::api::names;
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::render::metadata::scheme;
use crate::etcd_cluster::state::pod::fnv1a_hex;
use crate::etcd_cluster::transport::Scheme;
use crate::pki::ca::Certificate;

/// The trust bundle of a pod that is created now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrustHash {
    pub(crate) hash: String,
    /// Whether the trusted CAs differ, or may differ, from those of a cluster that never rotated.
    pub(crate) in_rotation: bool,
    /// UIDs of pods whose probe contradicts their annotation.
    pub(crate) stale_pods: BTreeSet<String>,
}

/// The sides of a cluster that use TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sides {
    pub(crate) client: bool,
    pub(crate) peer: bool,
}

impl Sides {
    /// The sides with TLS according to the spec.
    pub(crate) fn with_tls(blueprint: &Blueprint<'_>) -> Self {
        let is_tls = |side| scheme(side) == Scheme::Https;
        let spec = blueprint.spec;
        Self { client: is_tls(&spec.client_tls), peer: is_tls(&spec.peer_tls) }
    }

    /// Those of them that trust the managed CAs.
    pub(crate) const fn with_managed_ca(self, trust_states: &TrustStates) -> Self {
        Self {
            client: self.client && trust_states.client.published.managed,
            peer: self.peer && trust_states.peer.published.managed,
        }
    }

    /// Whether any side is among them.
    pub(crate) const fn any(self) -> bool {
        self.client || self.peer
    }
}

impl TrustHash {
    /// The hash over the published trust bundles of the sides that use TLS.
    pub(crate) fn new(sides: Sides, ca_set: &CaSet, trust_states: &TrustStates) -> Self {
        let pem = |is_tls: bool, side: Side| {
            let all = trust_states.get(side).published.certificates(ca_set, side);
            all.iter().filter(|_| is_tls).map(Certificate::pem).collect::<String>()
        };
        let (client, peer) = (pem(sides.client, Side::Client), pem(sides.peer, Side::Peer));
        Self {
            hash: fnv1a_hex(&format!("{client}/{peer}")),
            in_rotation: ca_set.phase != RotationPhase::Idle
                || *trust_states != TrustStates::managed(),
            stale_pods: BTreeSet::new(),
        }
    }

    /// The hash of a cluster without external CAs.
    #[cfg(test)]
    pub(crate) fn managed(sides: Sides, ca_set: &CaSet) -> Self {
        Self::new(sides, ca_set, &TrustStates::managed())
    }

    /// Whether a pod has another trust bundle than a pod that is created now. A pod without the
    /// annotation was created before the annotation existed and trusts the first CAs.
    pub(crate) fn differs(&self, pod: &Pod) -> bool {
        let has_other_hash = match pod.annotations().get(names::TRUST_BUNDLE_HASH_ANNOTATION) {
            Some(hash) => *hash != self.hash,
            None => self.in_rotation,
        };
        has_other_hash || pod.uid().is_some_and(|uid| self.stale_pods.contains(&uid))
    }
}
