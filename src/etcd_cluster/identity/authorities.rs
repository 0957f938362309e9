//! The two authorities of a cluster: a pair of them, in a Secret and out of it.
//! Comes in: a Secret that anyone may have written to, or authorities. Goes out: the other one.
//! May touch: `pki`, Kubernetes' own types; pure. Which pairs there are, and what each is for, the ring knows.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use super::keys::{Broken, CLIENT_AUTHORITY, NEXT_CLIENT, NEXT_PEER, PEER_AUTHORITY, Pair};
use crate::pki::authority::{Authority, Certificate};
use crate::pki::leaf::Signed;

/// What signs in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Authorities {
    /// For clients, and for what members show them.
    pub(crate) client: Authority,
    /// For what members show each other.
    pub(crate) peer: Authority,
}

/// Under which keys a pair of authorities is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Those who sign.
    Now,
    /// Those who will.
    Next,
}

impl Place {
    /// The keys: for clients, and for members.
    pub(crate) const fn keys(self) -> [Pair; 2] {
        match self {
            Self::Now => [CLIENT_AUTHORITY, PEER_AUTHORITY],
            Self::Next => [NEXT_CLIENT, NEXT_PEER],
        }
    }
}

impl Authorities {
    /// What a Secret says. It is never made good by making new ones: what the old ones signed is in
    /// use, and members that run trust nothing else.
    pub(crate) fn read(secret: &Secret, place: Place) -> Result<Self, Broken> {
        let [client, peer] = place.keys();
        Ok(Self { client: client.authority(secret)?, peer: peer.authority(secret)? })
    }

    /// These as they are written.
    pub(crate) fn written(&self, place: Place) -> Vec<(String, ByteString)> {
        let pairs = place.keys().into_iter().zip([&self.client, &self.peer]);
        let written = pairs.flat_map(|(pair, authority)| {
            let Authority { certificate, key } = authority.clone();
            pair.written(&Signed { certificate, chain: Vec::new(), key })
        });
        written.collect()
    }

    /// What others trust of them: for clients, and for members.
    pub(crate) const fn certificates(&self) -> [&Certificate; 2] {
        [&self.client.certificate, &self.peer.certificate]
    }
}
