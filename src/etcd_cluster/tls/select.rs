//! Selects the certificate that a member presents on one side. Pure.
//! A certificate of the source is used only if all members are confirmed to trust its CA; until
//! then the member keeps its current one.
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

/// All that the selection depends on.
pub(super) struct LeafSelector<'a> {
    pub(super) blueprint: &'a Blueprint<'a>,
    pub(super) ca_set: &'a CaSet,
    pub(super) trust_state: &'a TrustState,
    pub(super) source: &'a SourceState,
    pub(super) side: Side,
    /// The managed CA of this side.
    pub(super) ca: &'a Certificate,
    pub(super) now: Timestamp,
}

impl LeafSelector<'_> {
    /// The certificate of a member whose current one is `existing`; `None` if no certificate would
    /// be accepted by all members.
    pub(super) fn select(
        &self,
        name: &MemberName,
        existing: Option<&CertifiedKey>,
    ) -> Option<LeafSource> {
        let accepted = |key_pair: &&CertifiedKey| self.is_accepted(name, key_pair);
        let reuse = |key_pair: &CertifiedKey| Some(LeafSource::Use(Box::new(key_pair.clone())));
        let managed = self.trust_state.confirmed.managed.then_some(LeafSource::Issue);
        let from_source = match &self.source.leaves {
            Leaves::Managed => managed.clone(),
            Leaves::Shared(key_pair) => Some(&**key_pair).filter(accepted).and_then(reuse),
            Leaves::PerMember(all) => all.get(name).filter(accepted).and_then(reuse),
            Leaves::Unchanged => None,
        };
        let is_managed =
            |key_pair: &&CertifiedKey| key_pair.certificate.is_signed_by(self.ca, self.now);
        let kept = || {
            let kept = existing.filter(|key_pair| !(managed.is_some() && is_managed(key_pair)));
            kept.filter(accepted).and_then(reuse)
        };
        // An external certificate for all members is valid for a new member, too.
        let shared = || self.trust_state.operator_cert.as_ref().filter(accepted).and_then(reuse);
        let last = || existing.and_then(reuse);
        from_source.or_else(kept).or_else(shared).or_else(|| managed.clone()).or_else(last)
    }

    /// Whether all members accept this certificate from a member, as server and as client.
    fn is_accepted(&self, name: &MemberName, key_pair: &CertifiedKey) -> bool {
        let confirmed = self.trust_state.confirmed.certificates(self.ca_set, self.side);
        let host = names::member_host(&name.0, self.blueprint.namespace);
        key_pair.verify_as_server(&confirmed, &host, self.now).is_ok()
            && key_pair.verify_as_client(&confirmed, self.now).is_ok()
    }
}
