//! Makes the authorities of a cluster, and signs with them.
//! Comes in: who signs, for how long, and for whom. Goes out: new keys with their certificates.
//! May touch: `pki`, which asks for randomness.

use jiff::Timestamp;

use super::authorities::Authorities;
use super::binding::Identity;
use super::leaves::{Leaves, peer_hosts, server_hosts};
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
    ) -> Result<Leaves, Unmade> {
        let Authorities { client, peer } = &self.ring.now;
        let (for_clients, for_peers) =
            (server_hosts(blueprint, member), peer_hosts(blueprint, member));
        Ok(Leaves {
            server: self.sign(client, &member.0, for_clients, Purpose::Both)?,
            peer: self.sign(peer, &member.0, for_peers, Purpose::Both)?,
            client_ca: self.ring.for_clients(),
            peer_ca: self.ring.for_peers(),
        })
    }

    /// What the applications of a cluster show, and whom they trust.
    pub(crate) fn application(&self, blueprint: &Blueprint<'_>) -> Result<Identity, Unmade> {
        self.client(&format!("{}-client", blueprint.name))
    }

    /// What the operator itself shows. It is made anew when it is needed, and stored nowhere.
    pub(crate) fn operator(&self) -> Result<Identity, Unmade> {
        self.client(names::OPERATOR)
    }

    fn client(&self, name: &str) -> Result<Identity, Unmade> {
        let pair = self.sign(&self.ring.now.client, name, Vec::new(), Purpose::Client)?;
        Ok(Identity { pair, ca: self.ring.for_clients() })
    }

    /// What the operator shows to see whether a member takes what an authority signs.
    pub(crate) fn caller(&self, authority: &Authority) -> Result<Signed, Unmade> {
        self.sign(authority, names::OPERATOR, Vec::new(), Purpose::Client)
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
