//! Whom one side of a cluster trusts: the cluster's own authorities, others, or both.
//! Comes in: certificates of authorities. Goes out: sets of them, and the list that members are given.
//! May touch: `pki`; pure. Our own are not written out: they change by themselves, and the ring knows which they are.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::ca_set::CaSet;
use crate::api::names;
use crate::pki::ca::Certificate;

/// The most authorities that a side may be given. Those that go, those that come and our own must fit into one bundle.
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

    /// What it is called in the spec.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Peer => "peer",
        }
    }

    /// Where members listen for it.
    pub(crate) const fn port(self) -> u16 {
        match self {
            Self::Client => names::ETCD_CLIENT_PORT,
            Self::Peer => names::ETCD_PEER_PORT,
        }
    }
}

/// Whom somebody trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrustBundle {
    /// Whether the cluster's own authorities are among them.
    pub(crate) ours: bool,
    /// The others, always in the same order.
    pub(crate) others: Vec<Certificate>,
}

impl TrustBundle {
    /// Nobody but our own.
    pub(crate) const fn managed() -> Self {
        Self { ours: true, others: Vec::new() }
    }

    /// These, and not our own.
    pub(crate) fn external(others: Vec<Certificate>) -> Self {
        Self { ours: false, others: sorted(others) }
    }

    /// All of both.
    pub(crate) fn and(&self, more: &Self) -> Self {
        let others = self.others.iter().chain(&more.others).cloned().collect();
        Self { ours: self.ours || more.ours, others: sorted(others) }
    }

    /// All of them, as members are given them.
    pub(crate) fn list(&self, ring: &CaSet, side: Side) -> Vec<Certificate> {
        let ours = match (self.ours, side) {
            (false, _) => Vec::new(),
            (true, Side::Client) => ring.for_clients(),
            (true, Side::Peer) => ring.for_peers(),
        };
        if self.others.is_empty() {
            return ours;
        }
        sorted(ours.into_iter().chain(self.others.iter().cloned()).collect())
    }
}

fn sorted(mut all: Vec<Certificate>) -> Vec<Certificate> {
    all.sort_by(|a, b| a.der.cmp(&b.der));
    all.dedup();
    all
}
