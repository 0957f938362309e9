//! What one member shows on one side.
//! Comes in: what the side rests on, what it is offered, what the member has. Goes out: that, or nothing if there is
//! nothing that everybody would take. May touch: `pki`, the blueprint; pure. An offer counts only if all are known to
//! trust those who signed it; until then a member goes on with what it has.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;

use super::footing::Footing;
use super::leaves::Part;
use super::offer::{Offer, Pairs};
use super::ring::Ring;
use super::roots::Side;
use crate::api::names;
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::seen::Name;
use crate::pki::authority::Certificate;
use crate::pki::leaf::Signed;

/// What is known while a certificate is picked.
pub(super) struct Pick<'a> {
    pub(super) blueprint: &'a Blueprint<'a>,
    pub(super) ring: &'a Ring,
    pub(super) footing: &'a Footing,
    pub(super) offer: &'a Offer,
    pub(super) side: Side,
    /// Our own that signs for this side.
    pub(super) authority: &'a Certificate,
    pub(super) now: Timestamp,
}

impl Pick<'_> {
    /// What a member shows that has this.
    pub(super) fn member(&self, name: &Name, held: Option<&Signed>) -> Option<Part> {
        let show = |pair: &Signed| Some(Part::Show(Box::new(pair.clone())));
        let ours = self.footing.proven.ours.then_some(Part::Sign);
        let offered = match &self.offer.pairs {
            Pairs::Ours => ours.clone(),
            Pairs::Same(pair) => Some(&**pair).filter(|it| self.is_taken(name, it)).and_then(show),
            Pairs::Each(all) => all.get(name).filter(|it| self.is_taken(name, it)).and_then(show),
            Pairs::Kept => None,
        };
        let is_ours = |it: &&Signed| it.certificate.is_taken_by(self.authority, self.now);
        let kept = || {
            let kept = held.filter(|it| !(ours.is_some() && is_ours(it)));
            kept.filter(|it| self.is_taken(name, it)).and_then(show)
        };
        // What was given to all is good for one that comes, too.
        let common =
            || self.footing.pair.as_ref().filter(|it| self.is_taken(name, it)).and_then(show);
        let last = || held.and_then(show);
        offered.or_else(kept).or_else(common).or_else(|| ours.clone()).or_else(last)
    }

    /// Whether everybody takes this from a member, whoever of the two calls.
    fn is_taken(&self, name: &Name, pair: &Signed) -> bool {
        let proven = self.footing.proven.list(self.ring, self.side);
        let host = names::member_host(&name.0, self.blueprint.namespace);
        pair.serves(&proven, &host, self.now).is_ok() && pair.calls(&proven, self.now).is_ok()
    }
}
