//! What one member shows on one side.
//! Comes in: what the side rests on, what it is offered, what the member has. Goes out: that, or nothing if there is
//! nothing that everybody would take. May touch: `pki`, the blueprint; pure. An offer counts only if all are known to
//! trust those who signed it; until then a member goes on with what it has.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;

use super::ca_set::CaSet;
use super::member_certs::LeafSource;
use super::source::{Leaves, SourceState};
use super::trust_bundle::Side;
use super::trust_state::TrustState;
use crate::api::names;
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::state::MemberName;
use crate::pki::ca::Certificate;
use crate::pki::leaf::CertifiedKey;

/// What is known while a certificate is picked.
pub(super) struct LeafSelector<'a> {
    pub(super) blueprint: &'a Blueprint<'a>,
    pub(super) ring: &'a CaSet,
    pub(super) footing: &'a TrustState,
    pub(super) offer: &'a SourceState,
    pub(super) side: Side,
    /// Our own that signs for this side.
    pub(super) authority: &'a Certificate,
    pub(super) now: Timestamp,
}

impl LeafSelector<'_> {
    /// What a member shows that has this.
    pub(super) fn member(
        &self,
        name: &MemberName,
        held: Option<&CertifiedKey>,
    ) -> Option<LeafSource> {
        let show = |pair: &CertifiedKey| Some(LeafSource::Use(Box::new(pair.clone())));
        let ours = self.footing.proven.ours.then_some(LeafSource::Issue);
        let offered = match &self.offer.pairs {
            Leaves::Managed => ours.clone(),
            Leaves::Shared(pair) => {
                Some(&**pair).filter(|it| self.is_taken(name, it)).and_then(show)
            }
            Leaves::PerMember(all) => {
                all.get(name).filter(|it| self.is_taken(name, it)).and_then(show)
            }
            Leaves::Unchanged => None,
        };
        let is_ours = |it: &&CertifiedKey| it.certificate.is_signed_by(self.authority, self.now);
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
    fn is_taken(&self, name: &MemberName, pair: &CertifiedKey) -> bool {
        let proven = self.footing.proven.list(self.ring, self.side);
        let host = names::member_host(&name.0, self.blueprint.namespace);
        pair.verify_as_server(&proven, &host, self.now).is_ok()
            && pair.verify_as_client(&proven, self.now).is_ok()
    }
}
