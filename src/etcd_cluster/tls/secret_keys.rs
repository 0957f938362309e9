//! What the keys of the Secrets are called, and how they are read and written.
//! Comes in: a Secret that anyone may have written to. Goes out: bytes, or which key of which Secret is
//! broken, and never what is in it. May touch: `pki`, Kubernetes' own types; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use crate::pki::ca::{Certificate, CertificateAuthority, ParseError, bundle};
use crate::pki::leaf::CertifiedKey;

/// The two keys of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyPairKeys {
    pub(crate) certificate: &'static str,
    pub(crate) key: &'static str,
}

/// What signs what clients show, and what is shown to them.
pub(crate) const CLIENT_AUTHORITY: KeyPairKeys =
    KeyPairKeys { certificate: "client.crt", key: "client.key" };
/// What signs what members show each other.
pub(crate) const PEER_AUTHORITY: KeyPairKeys =
    KeyPairKeys { certificate: "peer.crt", key: "peer.key" };
/// What will sign for clients, and is trusted before it does.
pub(crate) const NEXT_CLIENT: KeyPairKeys =
    KeyPairKeys { certificate: "next-client.crt", key: "next-client.key" };
/// What will sign for members.
pub(crate) const NEXT_PEER: KeyPairKeys =
    KeyPairKeys { certificate: "next-peer.crt", key: "next-peer.key" };
/// What signed for clients before, and is still trusted.
pub(crate) const PREVIOUS_CLIENT: &str = "previous-client.crt";
/// What signed for members before.
pub(crate) const PREVIOUS_PEER: &str = "previous-peer.crt";
/// What signed for clients once, and is not to be trusted any more by anybody.
pub(crate) const REMOVED_CLIENT: &str = "removed-client.crt";
/// What signed for members once.
pub(crate) const REMOVED_PEER: &str = "removed-peer.crt";
/// Since when everybody can read what came of the last turn.
pub(crate) const OVERLAP_START: &str = "overlap-start";
/// What was asked for last that has been begun.
pub(crate) const ROTATION_REQUEST: &str = "rotation-request";
/// What a member shows to clients.
pub(crate) const SERVER: KeyPairKeys = KeyPairKeys { certificate: "server.crt", key: "server.key" };
/// What it shows to other members.
pub(crate) const PEER: KeyPairKeys = KeyPairKeys { certificate: "peer.crt", key: "peer.key" };
/// What an application shows.
pub(crate) const APPLICATION: KeyPairKeys = KeyPairKeys { certificate: "tls.crt", key: "tls.key" };
/// Whom a member trusts among clients.
pub(crate) const CLIENT_CA: &str = "client-ca.crt";
/// Whom a member trusts among members.
pub(crate) const PEER_CA: &str = "peer-ca.crt";
/// Whom an application trusts.
pub(crate) const CA: &str = "ca.crt";

/// What of a Secret cannot be used. It tells nothing of what is in there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Secret {secret}: {key} cannot be used: {why}")]
pub(crate) struct InvalidSecret {
    pub(crate) secret: String,
    pub(crate) key: &'static str,
    pub(crate) why: ParseError,
}

impl KeyPairKeys {
    /// The authority that is there under this pair of keys.
    pub(crate) fn authority(self, secret: &Secret) -> Result<CertificateAuthority, InvalidSecret> {
        let (certificate, key) = self.bytes(secret)?;
        CertificateAuthority::from_pem(certificate, key).map_err(|why| {
            // The certificate is at fault if it cannot be read even by itself.
            let alone = Certificate::parse_ca_pem(certificate).is_ok();
            broken(secret, if alone { self.key } else { self.certificate }, why)
        })
    }

    /// The certificate with its key that is there under this pair of keys.
    pub(crate) fn signed(self, secret: &Secret) -> Result<CertifiedKey, InvalidSecret> {
        let (certificate, key) = self.bytes(secret)?;
        CertifiedKey::from_pem(certificate, key).map_err(|why| {
            let of_key = matches!(why, ParseError::NotAKey | ParseError::KeyMismatch);
            broken(secret, if of_key { self.key } else { self.certificate }, why)
        })
    }

    fn bytes(self, secret: &Secret) -> Result<(&[u8], &[u8]), InvalidSecret> {
        Ok((bytes(secret, self.certificate)?, bytes(secret, self.key)?))
    }

    /// Whether there is anything of it.
    pub(crate) fn is_there(self, secret: &Secret) -> bool {
        has(secret, self.certificate) || has(secret, self.key)
    }

    /// Both as they are written.
    pub(crate) fn written(self, signed: &CertifiedKey) -> [(String, ByteString); 2] {
        [entry(self.certificate, signed.pem()), entry(self.key, signed.key.pem())]
    }
}

/// The certificate of an authority that is there under a key.
pub(crate) fn one(secret: &Secret, key: &'static str) -> Result<Certificate, InvalidSecret> {
    Certificate::parse_ca_pem(bytes(secret, key)?).map_err(|why| broken(secret, key, why))
}

/// The certificates of authorities that are there under a key, in the order in which they are there.
pub(crate) fn trusted(
    secret: &Secret,
    key: &'static str,
) -> Result<Vec<Certificate>, InvalidSecret> {
    let found = Certificate::parse_ca_bundle(bytes(secret, key)?);
    if found.is_empty() { Err(broken(secret, key, ParseError::NotPem)) } else { Ok(found) }
}

/// Whether there is anything under a key.
pub(crate) fn has(secret: &Secret, key: &str) -> bool {
    secret.data.as_ref().is_some_and(|data| data.contains_key(key))
}

/// The text under a key, if there is one.
pub(crate) fn text(secret: &Secret, key: &str) -> Option<String> {
    let bytes = &secret.data.as_ref()?.get(key)?.0;
    str::from_utf8(bytes).ok().map(str::to_owned)
}

/// Certificates as they are written.
pub(crate) fn bundled(key: &str, certificates: &[Certificate]) -> (String, ByteString) {
    (key.to_owned(), ByteString(bundle(certificates)))
}

/// A key with its value, as it is written.
pub(crate) fn entry(key: &str, value: impl Into<String>) -> (String, ByteString) {
    (key.to_owned(), ByteString(value.into().into_bytes()))
}

fn bytes<'a>(secret: &'a Secret, key: &'static str) -> Result<&'a [u8], InvalidSecret> {
    let found = secret.data.as_ref().and_then(|data| data.get(key));
    found.map(|it| it.0.as_slice()).ok_or_else(|| broken(secret, key, ParseError::Missing))
}

fn broken(secret: &Secret, key: &'static str, why: ParseError) -> InvalidSecret {
    InvalidSecret { secret: secret.metadata.name.clone().unwrap_or_default(), key, why }
}
