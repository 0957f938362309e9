//! The schemes of client and peer connections, and the order in which they are switched. Pure
//! functions, which the model tests use, too.
//!
//! Guarantees: etcd accepts both schemes on one client port, so no client is cut off: first all
//! members accept both, then the new scheme is advertised, then clients have time to follow, then
//! the old scheme is closed. A peer URL has one scheme, which is in etcd's member list.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub(crate) mod observed;

use serde::{Deserialize, Serialize};

/// The scheme of a URL.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub enum Scheme {
    /// Plaintext.
    Http,
    /// TLS with client certificates.
    #[default]
    Https,
}

impl Scheme {
    /// The scheme as it appears in a URL.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The scheme of a URL, or a scheme without a URL.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.split("://").next() {
            Some("http") => Some(Self::Http),
            Some("https") => Some(Self::Https),
            Some(_) | None => None,
        }
    }

    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Http => Self::Https,
            Self::Https => Self::Http,
        }
    }
}

/// The schemes that a member accepts from clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientListeners {
    /// This one only.
    Only(Scheme),
    /// Both.
    Both,
}

impl ClientListeners {
    /// Whether clients with this scheme are accepted.
    #[must_use]
    pub fn accepts(self, scheme: Scheme) -> bool {
        match self {
            Self::Only(only) => only == scheme,
            Self::Both => true,
        }
    }

    /// The schemes that are accepted.
    pub fn schemes(self) -> impl Iterator<Item = Scheme> {
        [Scheme::Http, Scheme::Https].into_iter().filter(move |scheme| self.accepts(*scheme))
    }
}

/// The scheme to advertise if none is recorded: what all pods accept, preferably the desired one.
#[must_use]
pub fn initial_scheme(desired: Scheme, pods: &[ClientListeners]) -> Scheme {
    let all_accept = |scheme| pods.iter().all(|pod| pod.accepts(scheme));
    if !all_accept(desired) && all_accept(desired.other()) { desired.other() } else { desired }
}

/// The schemes that new pods accept. `is_recent`: the advertised scheme changed a short time ago.
#[must_use]
pub fn listeners(
    desired: Scheme,
    advertised: Scheme,
    is_recent: bool,
    pods: &[ClientListeners],
) -> ClientListeners {
    let is_used = is_recent && pods.iter().any(|pod| pod.accepts(advertised.other()));
    if advertised != desired || is_used {
        ClientListeners::Both
    } else {
        ClientListeners::Only(desired)
    }
}

/// The scheme to advertise next: the desired one once all pods accept it and all members are
/// healthy.
#[must_use]
pub fn next_scheme(
    desired: Scheme,
    advertised: Scheme,
    all_healthy: bool,
    pods: &[ClientListeners],
) -> Scheme {
    let can_follow = pods.is_empty() || all_healthy && pods.iter().all(|pod| pod.accepts(desired));
    if can_follow { desired } else { advertised }
}

/// Whether members need peer certificates: a member has an `https` peer URL, or listens with TLS,
/// or should. `in_use` are the schemes of the peer URLs and of the peer listeners.
#[must_use]
pub fn needs_peer_certs(desired: Scheme, in_use: impl IntoIterator<Item = Scheme>) -> bool {
    desired == Scheme::Https || in_use.into_iter().any(|scheme| scheme == Scheme::Https)
}

/// The peer scheme of a new member. Members without peer certificates can only dial `http`.
#[must_use]
pub const fn new_member_scheme(desired: Scheme, all_have_certs: bool) -> Scheme {
    if all_have_certs { desired } else { Scheme::Http }
}

#[cfg(test)]
mod tests;
