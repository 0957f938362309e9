//! The two authorities of a cluster: a pair of them, in a Secret and out of it.
//! Comes in: a Secret that anyone may have written to, or authorities. Goes out: the other one.
//! May touch: `pki`, Kubernetes' own types; pure. Which pairs there are, and what each is for, the ring knows.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use super::secret_keys::{
    CLIENT_AUTHORITY, InvalidSecret, KeyPairKeys, NEXT_CLIENT, NEXT_PEER, PEER_AUTHORITY,
};
use crate::pki::ca::{Certificate, CertificateAuthority};
use crate::pki::leaf::CertifiedKey;

/// What signs in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CaPair {
    /// For clients, and for what members show them.
    pub(crate) client: CertificateAuthority,
    /// For what members show each other.
    pub(crate) peer: CertificateAuthority,
}

/// Under which keys a pair of authorities is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaSlot {
    /// Those who sign.
    Current,
    /// Those who will.
    Next,
}

impl CaSlot {
    /// The keys: for clients, and for members.
    pub(crate) const fn keys(self) -> [KeyPairKeys; 2] {
        match self {
            Self::Current => [CLIENT_AUTHORITY, PEER_AUTHORITY],
            Self::Next => [NEXT_CLIENT, NEXT_PEER],
        }
    }
}

impl CaPair {
    /// What a Secret says. It is never made good by making new ones: what the old ones signed is in
    /// use, and members that run trust nothing else.
    pub(crate) fn read(secret: &Secret, place: CaSlot) -> Result<Self, InvalidSecret> {
        let [client, peer] = place.keys();
        Ok(Self { client: client.authority(secret)?, peer: peer.authority(secret)? })
    }

    /// These as they are written.
    pub(crate) fn written(&self, place: CaSlot) -> Vec<(String, ByteString)> {
        let pairs = place.keys().into_iter().zip([&self.client, &self.peer]);
        let written = pairs.flat_map(|(pair, authority)| {
            let CertificateAuthority { certificate, key } = authority.clone();
            pair.written(&CertifiedKey { certificate, chain: Vec::new(), key })
        });
        written.collect()
    }

    /// What others trust of them: for clients, and for members.
    pub(crate) const fn certificates(&self) -> [&Certificate; 2] {
        [&self.client.certificate, &self.peer.certificate]
    }
}
