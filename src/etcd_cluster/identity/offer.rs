//! What each side of a cluster is offered: where its certificates shall come from, and what is there of them.
//! Comes in: nothing; others fill it in. Goes out: what members, the operator and applications could show.
//! May touch: `pki`; pure. An offer is not yet taken: what is shown depends on whom all are known to trust.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use super::given::Flaw;
use super::roots::{Roots, Side};
use crate::etcd_cluster::seen::Name;
use crate::pki::leaf::Signed;

/// What a side shall rest on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) roots: Roots,
    /// What the operator would show; our own authorities sign that if there is nothing.
    pub(crate) pair: Option<Signed>,
}

/// What members could show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pairs {
    /// What our own authorities sign.
    Ours,
    /// All the same.
    Same(Box<Signed>),
    /// Each its own, as far as it is there.
    Each(BTreeMap<Name, Signed>),
    /// What they have.
    Kept,
}

/// What one side is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Nothing if everything stays as it is.
    pub(crate) wish: Option<Wish>,
    pub(crate) pairs: Pairs,
    /// What applications could be handed.
    pub(crate) application: Option<Signed>,
    /// What is wrong with it.
    pub(crate) flaw: Option<Flaw>,
    /// Whether it comes from elsewhere, and must be looked at again and again.
    pub(crate) is_given: bool,
}

/// Both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offers {
    pub(crate) client: Offer,
    pub(crate) peer: Offer,
}

impl Offer {
    /// What our own authorities sign.
    pub(crate) const fn ours() -> Self {
        let wish = Some(Wish { roots: Roots::ours(), pair: None });
        Self { wish, pairs: Pairs::Ours, application: None, flaw: None, is_given: false }
    }

    /// Everything stays as it is.
    pub(crate) const fn kept(flaw: Option<Flaw>, is_given: bool) -> Self {
        Self { wish: None, pairs: Pairs::Kept, application: None, flaw, is_given }
    }
}

impl Offers {
    /// What our own authorities sign, on both sides.
    #[cfg(test)]
    pub(crate) const fn ours() -> Self {
        Self { client: Offer::ours(), peer: Offer::ours() }
    }

    /// One of the two.
    pub(crate) const fn of(&self, side: Side) -> &Offer {
        match side {
            Side::Client => &self.client,
            Side::Peer => &self.peer,
        }
    }

    /// The worst that is wrong with either.
    pub(crate) fn flaw(&self) -> Option<&Flaw> {
        let all = || [&self.client, &self.peer].into_iter().filter_map(|it| it.flaw.as_ref());
        all().find(|it| it.stops()).or_else(|| all().next())
    }

    /// Whether either comes from elsewhere.
    pub(crate) const fn is_given(&self) -> bool {
        self.client.is_given || self.peer.is_given
    }
}
