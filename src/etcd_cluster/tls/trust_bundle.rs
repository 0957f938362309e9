//! The trust bundle of one side: the managed CAs, external CAs, or both. Pure.
//! Managed CAs are a flag and not a list: rotation replaces them, and the CA set knows the current
//! ones.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::ca_set::CaSet;
use crate::api::names;
use crate::pki::ca::Certificate;

/// The most external CAs of a source. Old, new and managed CAs must fit into one trust bundle.
pub(crate) const MAX_EXTERNAL_CAS: usize = 3;

/// One side of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    /// Connections of clients to members.
    Client,
    /// Connections between members.
    Peer,
}

impl Side {
    pub(crate) const BOTH: [Self; 2] = [Self::Client, Self::Peer];

    /// The field name in the spec.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Peer => "peer",
        }
    }

    /// The port of this side on members.
    pub(crate) const fn port(self) -> u16 {
        match self {
            Self::Client => names::ETCD_CLIENT_PORT,
            Self::Peer => names::ETCD_PEER_PORT,
        }
    }
}

/// The CAs that are trusted on one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrustBundle {
    /// Whether the managed CAs are trusted.
    pub(crate) managed: bool,
    /// The external CAs, sorted.
    pub(crate) external: Vec<Certificate>,
}

impl TrustBundle {
    /// Only the managed CAs.
    pub(crate) const fn managed() -> Self {
        Self { managed: true, external: Vec::new() }
    }

    /// Only these external CAs.
    pub(crate) fn external(cas: Vec<Certificate>) -> Self {
        Self { managed: false, external: sorted(cas) }
    }

    /// The CAs of both bundles.
    pub(crate) fn union(&self, other: &Self) -> Self {
        let external = self.external.iter().chain(&other.external).cloned().collect();
        Self { managed: self.managed || other.managed, external: sorted(external) }
    }

    /// The CA certificates, as written to the members' Secrets.
    pub(crate) fn certificates(&self, ca_set: &CaSet, side: Side) -> Vec<Certificate> {
        let managed = match (self.managed, side) {
            (false, _) => Vec::new(),
            (true, Side::Client) => ca_set.client_bundle(),
            (true, Side::Peer) => ca_set.peer_bundle(),
        };
        if self.external.is_empty() {
            return managed;
        }
        sorted(managed.into_iter().chain(self.external.iter().cloned()).collect())
    }
}

fn sorted(mut all: Vec<Certificate>) -> Vec<Certificate> {
    all.sort_by(|a, b| a.der.cmp(&b.der));
    all.dedup();
    all
}
