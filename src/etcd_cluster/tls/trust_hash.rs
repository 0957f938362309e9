//! Whom a member's pod trusts, as a word on it.
//! Comes in: the ring, the blueprint, a pod. Goes out: the word, and whether a pod has another one.
//! May touch: `pki`, the blueprint, Kubernetes' own types; pure. etcd reads whom it trusts only when it starts: where the
//! word differs, the pod is made anew like for any other change.
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

/// Whom a pod trusts that is made now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrustHash {
    /// The word for them.
    pub(crate) word: String,
    /// Whether others are taking the place of those who signed before.
    pub(crate) is_turning: bool,
    /// The uids of pods that have shown to trust somebody else than their word says.
    pub(crate) lacking: BTreeSet<String>,
}

/// Which sides of a cluster are protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sides {
    pub(crate) client: bool,
    pub(crate) peer: bool,
}

impl Sides {
    /// The sides that shall be.
    pub(crate) fn of(blueprint: &Blueprint<'_>) -> Self {
        let is_protected = |side| scheme(side) == Scheme::Https;
        let spec = blueprint.spec;
        Self { client: is_protected(&spec.client_tls), peer: is_protected(&spec.peer_tls) }
    }

    /// Those of them on which the cluster's own authorities are trusted.
    pub(crate) const fn with_ours(self, footings: &TrustStates) -> Self {
        Self {
            client: self.client && footings.client.told.ours,
            peer: self.peer && footings.peer.told.ours,
        }
    }

    /// Whether there is anything to protect.
    pub(crate) const fn any(self) -> bool {
        self.client || self.peer
    }
}

impl TrustHash {
    /// Whom the pods of a cluster trust, as far as anything is protected there.
    pub(crate) fn on(sides: Sides, ring: &CaSet, footings: &TrustStates) -> Self {
        let text = |is_protected: bool, side: Side| {
            let all = footings.of(side).told.list(ring, side);
            all.iter().filter(|_| is_protected).map(Certificate::pem).collect::<String>()
        };
        let (client, peer) = (text(sides.client, Side::Client), text(sides.peer, Side::Peer));
        Self {
            word: fnv1a_hex(&format!("{client}/{peer}")),
            is_turning: ring.stage != RotationPhase::Idle || *footings != TrustStates::managed(),
            lacking: BTreeSet::new(),
        }
    }

    /// The same where there are no other authorities than the cluster's own.
    #[cfg(test)]
    pub(crate) fn of(sides: Sides, ring: &CaSet) -> Self {
        Self::on(sides, ring, &TrustStates::managed())
    }

    /// Whether a pod trusts others than one that is made now. One that says nothing of it is older than this word, and
    /// trusts those who were the first.
    pub(crate) fn differs(&self, pod: &Pod) -> bool {
        let says_other = match pod.annotations().get(names::TRUST_BUNDLE_HASH_ANNOTATION) {
            Some(word) => *word != self.word,
            None => self.is_turning,
        };
        says_other || pod.uid().is_some_and(|uid| self.lacking.contains(&uid))
    }
}
