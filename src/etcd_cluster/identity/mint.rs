//! Makes the authorities of a cluster, and signs with them.
//! Comes in: who signs, for how long, and for whom. Goes out: new keys with their certificates.
//! May touch: `pki`, which asks for randomness.

use jiff::Timestamp;

use super::authorities::Authorities;
use super::leaves::{Draft, Leaves, Part, peer_hosts, server_hosts};
use super::lifetimes::Lifetimes;
use super::ring::Ring;
use crate::api::names;
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::seen::Name;
use crate::pki::authority::Authority;
use crate::pki::leaf::Signed;
use crate::pki::mint::{self, Purpose, Unmade, Wanted};

/// New authorities for a cluster.
pub(crate) fn authorities(
    blueprint: &Blueprint<'_>,
    lifetimes: Lifetimes,
    now: Timestamp,
) -> Result<Authorities, Unmade> {
    let Blueprint { name, namespace, .. } = *blueprint;
    let life = lifetimes.of_authority(now);
    // What they are for stands first: a long name is cut.
    let made = |side: &str| mint::authority(&format!("etcd {side} CA {namespace}/{name}"), life);
    Ok(Authorities { client: made("client")?, peer: made("peer")? })
}

/// Who signs, how long it is good for, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signing<'a> {
    pub(crate) ring: &'a Ring,
    pub(crate) lifetimes: Lifetimes,
    pub(crate) now: Timestamp,
}

impl Signing<'_> {
    /// What a member shows, and whom it trusts.
    pub(crate) fn member(
        &self,
        blueprint: &Blueprint<'_>,
        member: &Name,
        draft: &Draft,
    ) -> Result<Leaves, Unmade> {
        let Draft { server, peer, client_ca, peer_ca } = draft.clone();
        let Authorities { client: clients, peer: peers } = &self.ring.now;
        let part = |part, authority, hosts| match part {
            Part::Sign => self.sign(authority, &member.0, hosts, Purpose::Both),
            Part::Show(pair) => Ok(*pair),
        };
        Ok(Leaves {
            server: part(server, clients, server_hosts(blueprint, member))?,
            peer: part(peer, peers, peer_hosts(blueprint, member))?,
            client_ca,
            peer_ca,
        })
    }

    /// What the applications of a cluster show.
    pub(crate) fn application(&self, blueprint: &Blueprint<'_>) -> Result<Signed, Unmade> {
        self.caller_as(&self.ring.now.client, &format!("{}-client", blueprint.name))
    }

    /// What the operator itself shows. It is made anew when it is needed, and stored nowhere.
    pub(crate) fn operator(&self) -> Result<Signed, Unmade> {
        self.caller(&self.ring.now.client)
    }

    /// What the operator shows to see whether a member takes what an authority signs.
    pub(crate) fn caller(&self, authority: &Authority) -> Result<Signed, Unmade> {
        self.caller_as(authority, names::OPERATOR)
    }

    fn caller_as(&self, authority: &Authority, name: &str) -> Result<Signed, Unmade> {
        self.sign(authority, name, Vec::new(), Purpose::Client)
    }

    fn sign(
        &self,
        authority: &Authority,
        name: &str,
        hosts: Vec<String>,
        purpose: Purpose,
    ) -> Result<Signed, Unmade> {
        let life = self.lifetimes.of_leaf(&authority.certificate, self.now);
        mint::sign(authority, &Wanted { name, hosts, purpose, life })
    }
}
