//! The two authorities of a cluster, in a Secret and out of it.
//! Comes in: a Secret that anyone may have written to, or authorities. Goes out: the other one.
//! May touch: `pki`, the blueprint, Kubernetes' own types; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::Secret;

use super::keys::{Broken, CLIENT_AUTHORITY, PEER_AUTHORITY};
use crate::api::names;
use crate::etcd_cluster::render::Blueprint;
use crate::pki::authority::Authority;
use crate::pki::leaf::Signed;

/// What signs in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Authorities {
    /// For clients, and for what members show them.
    pub(crate) client: Authority,
    /// For what members show each other.
    pub(crate) peer: Authority,
}

impl Authorities {
    /// What a Secret says. It is never made good by making new ones: what the old ones signed is in
    /// use, and members that run trust nothing else.
    pub(crate) fn read(secret: &Secret) -> Result<Self, Broken> {
        Ok(Self {
            client: CLIENT_AUTHORITY.authority(secret)?,
            peer: PEER_AUTHORITY.authority(secret)?,
        })
    }

    /// The Secret with these.
    pub(crate) fn secret(&self, blueprint: &Blueprint<'_>) -> Secret {
        let pairs = [(CLIENT_AUTHORITY, &self.client), (PEER_AUTHORITY, &self.peer)];
        let data = pairs.into_iter().flat_map(|(pair, authority)| {
            let Authority { certificate, key } = authority.clone();
            pair.written(&Signed { certificate, key })
        });
        Secret {
            metadata: blueprint.metadata(names::authority_secret(blueprint.name)),
            type_: Some("Opaque".to_owned()),
            data: Some(data.collect()),
            ..Secret::default()
        }
    }
}
