//! The client CA and the peer CA of a cluster, parsed from and written to a Secret. Pure.
//! The CA set knows which pairs exist and what each is for.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use super::secret_keys::{
    CURRENT_CLIENT, CURRENT_PEER, InvalidSecret, KeyPairKeys, NEXT_CLIENT, NEXT_PEER,
};
use crate::pki::ca::{Certificate, CertificateAuthority};
use crate::pki::leaf::CertifiedKey;

/// A client CA and a peer CA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CaPair {
    /// Issues client certificates and the server certificates of members.
    pub(crate) client: CertificateAuthority,
    /// Issues the peer certificates of members.
    pub(crate) peer: CertificateAuthority,
}

/// The Secret keys under which a pair is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaSlot {
    /// The CAs that issue certificates.
    Current,
    /// The CAs that will issue certificates after the switch.
    Next,
}

impl CaSlot {
    /// The keys of the client CA and the peer CA.
    pub(crate) const fn keys(self) -> [KeyPairKeys; 2] {
        match self {
            Self::Current => [CURRENT_CLIENT, CURRENT_PEER],
            Self::Next => [NEXT_CLIENT, NEXT_PEER],
        }
    }
}

impl CaPair {
    /// Parses a pair. An invalid pair is never replaced with a new one: certificates of the old CAs
    /// are in use, and running members trust nothing else.
    pub(crate) fn read(secret: &Secret, slot: CaSlot) -> Result<Self, InvalidSecret> {
        let [client, peer] = slot.keys();
        Ok(Self { client: client.read_ca(secret)?, peer: peer.read_ca(secret)? })
    }

    /// The Secret entries of the pair.
    pub(crate) fn entries(&self, slot: CaSlot) -> Vec<(String, ByteString)> {
        let cas = slot.keys().into_iter().zip([&self.client, &self.peer]);
        let entries = cas.flat_map(|(keys, ca)| {
            let CertificateAuthority { certificate, key } = ca.clone();
            keys.entries(&CertifiedKey { certificate, chain: Vec::new(), key })
        });
        entries.collect()
    }

    /// The certificates of the client CA and the peer CA.
    pub(crate) const fn certificates(&self) -> [&Certificate; 2] {
        [&self.client.certificate, &self.peer.certificate]
    }
}
