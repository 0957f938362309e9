//! Whom a member's pod trusts, as a word on it.
//! Comes in: the ring, the blueprint, a pod. Goes out: the word, and whether a pod has another one.
//! May touch: `pki`, the blueprint, Kubernetes' own types; pure. etcd reads whom it trusts only when it starts: where the
//! word differs, the pod is made anew like for any other change.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::ring::{Ring, Stage};
use crate::api::names;
use crate::etcd_cluster::compose::pod::digest;
use crate::etcd_cluster::render::{Blueprint, is_protected};
use crate::pki::authority::Certificate;

/// Whom a pod trusts that is made now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trust {
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
    /// What is not in this release is not made, so it needs nobody's trust.
    pub(crate) fn of(blueprint: &Blueprint<'_>) -> Self {
        let spec = blueprint.spec;
        Self {
            client: is_protected(&spec.client_tls, "spec.tls.client").unwrap_or(false),
            peer: is_protected(&spec.peer_tls, "spec.tls.peer").unwrap_or(false),
        }
    }

    /// Whether there is anything to protect.
    pub(crate) const fn any(self) -> bool {
        self.client || self.peer
    }
}

impl Trust {
    /// Whom the pods of a cluster trust, as far as anything is protected there.
    pub(crate) fn of(sides: Sides, ring: &Ring) -> Self {
        let text = |is_protected: bool, all: Vec<Certificate>| {
            let all = all.iter().filter(|_| is_protected);
            all.map(Certificate::pem).collect::<String>()
        };
        let client = text(sides.client, ring.for_clients());
        let peer = text(sides.peer, ring.for_peers());
        Self {
            word: digest(&format!("{client}/{peer}")),
            is_turning: ring.stage != Stage::Still,
            lacking: BTreeSet::new(),
        }
    }

    /// Whether a pod trusts others than one that is made now. One that says nothing of it is older than this word, and
    /// trusts those who were the first.
    pub(crate) fn differs(&self, pod: &Pod) -> bool {
        let says_other = match pod.annotations().get(names::TRUST_ANNOTATION) {
            Some(word) => *word != self.word,
            None => self.is_turning,
        };
        says_other || pod.uid().is_some_and(|uid| self.lacking.contains(&uid))
    }
}
