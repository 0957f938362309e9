//! Keys of the cluster's Secrets, and how their values are parsed and written. Pure.
//! Guarantees: an error names the Secret and the key, and never contains a value.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use crate::pki::ca::{Certificate, CertificateAuthority, ParseError, bundle};
use crate::pki::leaf::CertifiedKey;

/// The Secret keys of a certificate and its private key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyPairKeys {
    pub(crate) certificate: &'static str,
    pub(crate) key: &'static str,
}

/// The client CA that issues certificates.
pub(crate) const CURRENT_CLIENT: KeyPairKeys =
    KeyPairKeys { certificate: "client.crt", key: "client.key" };
/// The peer CA that issues certificates.
pub(crate) const CURRENT_PEER: KeyPairKeys =
    KeyPairKeys { certificate: "peer.crt", key: "peer.key" };
/// The new client CA, which is trusted before it issues certificates.
pub(crate) const NEXT_CLIENT: KeyPairKeys =
    KeyPairKeys { certificate: "next-client.crt", key: "next-client.key" };
/// The new peer CA.
pub(crate) const NEXT_PEER: KeyPairKeys =
    KeyPairKeys { certificate: "next-peer.crt", key: "next-peer.key" };
/// The previous client CA, which is still trusted.
pub(crate) const PREVIOUS_CLIENT: &str = "previous-client.crt";
/// The previous peer CA.
pub(crate) const PREVIOUS_PEER: &str = "previous-peer.crt";
/// The removed client CA, which no member may trust.
pub(crate) const REMOVED_CLIENT: &str = "removed-client.crt";
/// The removed peer CA.
pub(crate) const REMOVED_PEER: &str = "removed-peer.crt";
/// Since when all Secrets contain the result of the last rotation step.
pub(crate) const OVERLAP_START: &str = "overlap-start";
/// The last rotation request that was started.
pub(crate) const ROTATION_REQUEST: &str = "rotation-request";
/// The server certificate of a member.
pub(crate) const SERVER: KeyPairKeys = KeyPairKeys { certificate: "server.crt", key: "server.key" };
/// The peer certificate of a member.
pub(crate) const PEER: KeyPairKeys = KeyPairKeys { certificate: "peer.crt", key: "peer.key" };
/// The client certificate of an application.
pub(crate) const APPLICATION: KeyPairKeys = KeyPairKeys { certificate: "tls.crt", key: "tls.key" };
/// The trust bundle of a member for clients.
pub(crate) const CLIENT_CA: &str = "client-ca.crt";
/// The trust bundle of a member for peers.
pub(crate) const PEER_CA: &str = "peer-ca.crt";
/// The trust bundle of an application.
pub(crate) const CA: &str = "ca.crt";

/// Which key of which Secret is invalid. Contains nothing of the value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Secret {secret}: {key} cannot be used: {error}")]
pub(crate) struct InvalidSecret {
    pub(crate) secret: String,
    pub(crate) key: &'static str,
    pub(crate) error: ParseError,
}

impl KeyPairKeys {
    /// Parses the CA under these keys.
    pub(crate) fn read_ca(self, secret: &Secret) -> Result<CertificateAuthority, InvalidSecret> {
        let (certificate, key) = self.bytes(secret)?;
        CertificateAuthority::from_pem(certificate, key).map_err(|error| {
            // The certificate is at fault if it cannot be parsed without the key.
            let is_certificate_valid = Certificate::parse_ca_pem(certificate).is_ok();
            invalid(secret, if is_certificate_valid { self.key } else { self.certificate }, error)
        })
    }

    /// Parses the certificate and private key under these keys.
    pub(crate) fn read_key_pair(self, secret: &Secret) -> Result<CertifiedKey, InvalidSecret> {
        let (certificate, key) = self.bytes(secret)?;
        CertifiedKey::from_pem(certificate, key).map_err(|error| {
            let is_key = matches!(error, ParseError::NotAKey | ParseError::KeyMismatch);
            invalid(secret, if is_key { self.key } else { self.certificate }, error)
        })
    }

    fn bytes(self, secret: &Secret) -> Result<(&[u8], &[u8]), InvalidSecret> {
        Ok((bytes(secret, self.certificate)?, bytes(secret, self.key)?))
    }

    /// Whether the Secret has either key.
    pub(crate) fn exists_in(self, secret: &Secret) -> bool {
        has(secret, self.certificate) || has(secret, self.key)
    }

    /// The Secret entries of a certificate and its private key.
    pub(crate) fn entries(self, key_pair: &CertifiedKey) -> [(String, ByteString); 2] {
        [entry(self.certificate, key_pair.pem()), entry(self.key, key_pair.key.pem())]
    }
}

/// Parses the CA certificate under a key.
pub(crate) fn read_certificate(
    secret: &Secret,
    key: &'static str,
) -> Result<Certificate, InvalidSecret> {
    Certificate::parse_ca_pem(bytes(secret, key)?).map_err(|error| invalid(secret, key, error))
}

/// Parses the trust bundle under a key, in its order.
pub(crate) fn read_bundle(
    secret: &Secret,
    key: &'static str,
) -> Result<Vec<Certificate>, InvalidSecret> {
    let certificates = Certificate::parse_ca_bundle(bytes(secret, key)?);
    if certificates.is_empty() {
        Err(invalid(secret, key, ParseError::NotPem))
    } else {
        Ok(certificates)
    }
}

/// Whether the Secret has a key.
pub(crate) fn has(secret: &Secret, key: &str) -> bool {
    secret.data.as_ref().is_some_and(|data| data.contains_key(key))
}

/// The string under a key, if there is one.
pub(crate) fn text(secret: &Secret, key: &str) -> Option<String> {
    let bytes = &secret.data.as_ref()?.get(key)?.0;
    str::from_utf8(bytes).ok().map(str::to_owned)
}

/// The Secret entry of a trust bundle.
pub(crate) fn bundle_entry(key: &str, certificates: &[Certificate]) -> (String, ByteString) {
    (key.to_owned(), ByteString(bundle(certificates)))
}

/// A Secret entry.
pub(crate) fn entry(key: &str, value: impl Into<String>) -> (String, ByteString) {
    (key.to_owned(), ByteString(value.into().into_bytes()))
}

fn bytes<'a>(secret: &'a Secret, key: &'static str) -> Result<&'a [u8], InvalidSecret> {
    let value = secret.data.as_ref().and_then(|data| data.get(key));
    value.map(|bytes| bytes.0.as_slice()).ok_or_else(|| invalid(secret, key, ParseError::Missing))
}

fn invalid(secret: &Secret, key: &'static str, error: ParseError) -> InvalidSecret {
    InvalidSecret { secret: secret.metadata.name.clone().unwrap_or_default(), key, error }
}
