//! How members are reached: in the clear, protected, or both while that is changed.
//! Comes in: what is wanted, what applications are told, and what pods take. Goes out: what pods are made to take.
//! May touch: nothing; pure, and the model world of the tests asks it, too. Clients can be taken in both ways at one port, so
//! nobody is cut off: first all members take both, then applications are told, then they have time to follow, then the old way
//! ends. Members reach each other in one way each, and which it is stands in etcd's own list.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub(crate) mod observed;

use serde::{Deserialize, Serialize};

/// How somebody is called.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// With certificates.
    #[default]
    Https,
}

impl Scheme {
    /// The word in a URL.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// What a word or a URL begins with, if it is one of the two.
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

/// Whom a member takes as clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientListeners {
    /// Those who call in this way.
    Only(Scheme),
    /// Everybody.
    Both,
}

impl ClientListeners {
    /// Whether whoever calls so is taken.
    #[must_use]
    pub fn accepts(self, scheme: Scheme) -> bool {
        match self {
            Self::Only(it) => it == scheme,
            Self::Both => true,
        }
    }

    /// All that are taken.
    pub fn schemes(self) -> impl Iterator<Item = Scheme> {
        [Scheme::Http, Scheme::Https].into_iter().filter(move |it| self.accepts(*it))
    }
}

/// What applications are told of a cluster for which nothing was written down: what its pods take, or what is wanted.
#[must_use]
pub fn initial_scheme(wanted: Scheme, pods: &[ClientListeners]) -> Scheme {
    let all_take = |scheme| pods.iter().all(|it| it.accepts(scheme));
    if !all_take(wanted) && all_take(wanted.other()) { wanted.other() } else { wanted }
}

/// Whom pods that are made now take. `is_recent` says that applications were told something else a short while ago.
#[must_use]
pub fn listeners(
    wanted: Scheme,
    told: Scheme,
    is_recent: bool,
    pods: &[ClientListeners],
) -> ClientListeners {
    let is_used = is_recent && pods.iter().any(|it| it.accepts(told.other()));
    if told != wanted || is_used { ClientListeners::Both } else { ClientListeners::Only(wanted) }
}

/// What applications are told from now on: what is wanted, as soon as all who run take it and are well.
#[must_use]
pub fn next_scheme(
    wanted: Scheme,
    told: Scheme,
    all_are_well: bool,
    pods: &[ClientListeners],
) -> Scheme {
    let can_follow = pods.is_empty() || all_are_well && pods.iter().all(|it| it.accepts(wanted));
    if can_follow { wanted } else { told }
}

/// Whether members must be able to show each other certificates: one of them is called so, or listens so, or shall be. `others` are
/// how members are called, and how their pods listen.
#[must_use]
pub fn needs_peer_certs(wanted: Scheme, others: impl IntoIterator<Item = Scheme>) -> bool {
    wanted == Scheme::Https || others.into_iter().any(|it| it == Scheme::Https)
}

/// How the others call somebody who comes. Those who have no certificates yet could not call otherwise.
#[must_use]
pub const fn new_member_scheme(wanted: Scheme, all_have_certs: bool) -> Scheme {
    if all_have_certs { wanted } else { Scheme::Http }
}

#[cfg(test)]
mod tests;
