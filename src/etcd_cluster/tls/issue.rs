//! Makes the authorities of a cluster, and signs with them.
//! Comes in: who signs, for how long, and for whom. Goes out: new keys with their certificates.
//! May touch: `pki`, which asks for randomness.

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

/// New authorities for a cluster.
pub(crate) fn ca_pair(
    blueprint: &Blueprint<'_>,
    lifetimes: Lifetimes,
    now: Timestamp,
) -> Result<CaPair, IssueError> {
    let Blueprint { name, namespace, .. } = *blueprint;
    let life = lifetimes.of_authority(now);
    // What they are for stands first: a long name is cut.
    let made =
        |side: &str| issue::self_signed_ca(&format!("etcd {side} CA {namespace}/{name}"), life);
    Ok(CaPair { client: made("client")?, peer: made("peer")? })
}

/// Who signs, how long it is good for, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Issuer<'a> {
    pub(crate) ring: &'a CaSet,
    pub(crate) lifetimes: Lifetimes,
    pub(crate) now: Timestamp,
}

impl Issuer<'_> {
    /// What a member shows, and whom it trusts.
    pub(crate) fn member(
        &self,
        blueprint: &Blueprint<'_>,
        member: &MemberName,
        draft: &MemberCertPlan,
    ) -> Result<MemberCertificates, IssueError> {
        let MemberCertPlan { server, peer, client_ca, peer_ca } = draft.clone();
        let CaPair { client: clients, peer: peers } = &self.ring.now;
        let part = |part, authority, hosts| match part {
            LeafSource::Issue => self.sign(authority, &member.0, hosts, Purpose::Both),
            LeafSource::Use(pair) => Ok(*pair),
        };
        Ok(MemberCertificates {
            server: part(server, clients, server_hosts(blueprint, member))?,
            peer: part(peer, peers, peer_hosts(blueprint, member))?,
            client_ca,
            peer_ca,
        })
    }

    /// What the applications of a cluster show.
    pub(crate) fn application(
        &self,
        blueprint: &Blueprint<'_>,
    ) -> Result<CertifiedKey, IssueError> {
        self.caller_as(&self.ring.now.client, &format!("{}-client", blueprint.name))
    }

    /// What the operator itself shows. It is made anew when it is needed, and stored nowhere.
    pub(crate) fn operator(&self) -> Result<CertifiedKey, IssueError> {
        self.caller(&self.ring.now.client)
    }

    /// What the operator shows to see whether a member takes what an authority signs.
    pub(crate) fn caller(
        &self,
        authority: &CertificateAuthority,
    ) -> Result<CertifiedKey, IssueError> {
        self.caller_as(authority, names::OPERATOR)
    }

    fn caller_as(
        &self,
        authority: &CertificateAuthority,
        name: &str,
    ) -> Result<CertifiedKey, IssueError> {
        self.sign(authority, name, Vec::new(), Purpose::Client)
    }

    fn sign(
        &self,
        authority: &CertificateAuthority,
        name: &str,
        hosts: Vec<String>,
        purpose: Purpose,
    ) -> Result<CertifiedKey, IssueError> {
        let life = self.lifetimes.of_leaf(&authority.certificate, self.now);
        issue::sign(authority, &CertificateRequest { name, hosts, purpose, validity: life })
    }
}
