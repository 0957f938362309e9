//! Issues the CAs of a cluster and leaf certificates. Uses randomness by way of `pki`.

use jiff::Timestamp;

use super::ca_pair::CaPair;
use super::ca_set::CaSet;
use super::lifetimes::Lifetimes;
use super::member_certs::{
    LeafSource, MemberCertPlan, MemberCertificates, peer_hosts, server_hosts,
};
use crate::api::names;
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::state::MemberName;
use crate::pki::ca::CertificateAuthority;
use crate::pki::issue::{self, CertificateRequest, IssueError, Purpose};
use crate::pki::leaf::CertifiedKey;

/// Issues new CAs for a cluster.
pub(crate) fn ca_pair(
    blueprint: &Blueprint<'_>,
    lifetimes: Lifetimes,
    now: Timestamp,
) -> Result<CaPair, IssueError> {
    let Blueprint { name, namespace, .. } = *blueprint;
    let validity = lifetimes.ca_validity(now);
    // The side stands first, because a long common name is truncated.
    let ca =
        |side: &str| issue::self_signed_ca(&format!("etcd {side} CA {namespace}/{name}"), validity);
    Ok(CaPair { client: ca("client")?, peer: ca("peer")? })
}

/// Issues leaf certificates from the current CAs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Issuer<'a> {
    pub(crate) ca_set: &'a CaSet,
    pub(crate) lifetimes: Lifetimes,
    pub(crate) now: Timestamp,
}

impl Issuer<'_> {
    /// The certificates and trust bundles of a member.
    pub(crate) fn member(
        &self,
        blueprint: &Blueprint<'_>,
        member: &MemberName,
        plan: &MemberCertPlan,
    ) -> Result<MemberCertificates, IssueError> {
        let MemberCertPlan { server, peer, client_ca, peer_ca } = plan.clone();
        let CaPair { client: clients, peer: peers } = &self.ca_set.current;
        let leaf = |source, ca, hosts| match source {
            LeafSource::Issue => self.issue(ca, &member.0, hosts, Purpose::Both),
            LeafSource::Use(key_pair) => Ok(*key_pair),
        };
        Ok(MemberCertificates {
            server: leaf(server, clients, server_hosts(blueprint, member))?,
            peer: leaf(peer, peers, peer_hosts(blueprint, member))?,
            client_ca,
            peer_ca,
        })
    }

    /// The client certificate for applications.
    pub(crate) fn application(
        &self,
        blueprint: &Blueprint<'_>,
    ) -> Result<CertifiedKey, IssueError> {
        self.client_named(&self.ca_set.current.client, &format!("{}-client", blueprint.name))
    }

    /// The operator's client certificate. It is issued on demand and stored nowhere.
    pub(crate) fn operator(&self) -> Result<CertifiedKey, IssueError> {
        self.client(&self.ca_set.current.client)
    }

    /// A client certificate of the operator from another CA, to probe whether members trust the CA.
    pub(crate) fn client(&self, ca: &CertificateAuthority) -> Result<CertifiedKey, IssueError> {
        self.client_named(ca, names::OPERATOR)
    }

    fn client_named(
        &self,
        ca: &CertificateAuthority,
        name: &str,
    ) -> Result<CertifiedKey, IssueError> {
        self.issue(ca, name, Vec::new(), Purpose::Client)
    }

    fn issue(
        &self,
        ca: &CertificateAuthority,
        name: &str,
        hosts: Vec<String>,
        purpose: Purpose,
    ) -> Result<CertifiedKey, IssueError> {
        let validity = self.lifetimes.leaf_validity(&ca.certificate, self.now);
        issue::sign(ca, &CertificateRequest { name, hosts, purpose, validity })
    }
}
