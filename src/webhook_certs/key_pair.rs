//! Parses a serving certificate and its key from the contents of two files. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::pki::ca::{Certificate, MAX_CERTIFICATES, ParseError};

/// A certificate and its key for the TLS server.
#[derive(Debug)]
pub(crate) struct ServingKeyPair {
    /// The chain and the key for handshakes.
    pub(crate) key: CertifiedKey,
    /// The leaf certificate, without its chain.
    pub(crate) certificate: Certificate,
}

/// Why a key pair is invalid. Contains nothing of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyPairError {
    /// The certificate file is invalid.
    #[error("tls.crt is invalid: {0}")]
    Certificate(ParseError),
    /// The chain is too long.
    #[error("tls.crt is invalid: more than {MAX_CERTIFICATES} certificates")]
    TooMany,
    /// The key file is invalid.
    #[error("tls.key is invalid: not a private key in PEM")]
    Key,
    /// Both are valid, but do not belong together.
    #[error("the private key in tls.key does not match the certificate in tls.crt")]
    Mismatch,
}

const NOT_PEM: KeyPairError = KeyPairError::Certificate(ParseError::NotPem);

/// Parses a key pair.
pub(crate) fn parse(certificate: &[u8], key: &[u8]) -> Result<ServingKeyPair, KeyPairError> {
    // The parsers' own errors are dropped: they might contain parts of the input.
    let chain =
        CertificateDer::pem_slice_iter(certificate).take(MAX_CERTIFICATES.saturating_add(1));
    let chain: Vec<CertificateDer<'static>> = chain.collect::<Result<_, _>>().or(Err(NOT_PEM))?;
    if chain.len() > MAX_CERTIFICATES {
        return Err(KeyPairError::TooMany);
    }
    let first = chain.first().ok_or(NOT_PEM)?;
    let certificate = Certificate::parse_der(first).map_err(KeyPairError::Certificate)?;
    let key = PrivateKeyDer::from_pem_slice(key).or(Err(KeyPairError::Key))?;
    let provider = default_provider();
    let key = provider.key_provider.load_private_key(key).or(Err(KeyPairError::Key))?;
    let certified_key = CertifiedKey::new(chain, key);
    certified_key.keys_match().or(Err(KeyPairError::Mismatch))?;
    Ok(ServingKeyPair { key: certified_key, certificate })
}

/// Whether a new certificate replaces the serving one: if it is valid now, or the serving one is
/// not valid either.
pub(crate) fn replaces(new: &Certificate, serving: Option<&Certificate>, now: Timestamp) -> bool {
    match serving {
        None => true,
        Some(serving) => new.valid_at(now) || !serving.valid_at(now),
    }
}

#[cfg(test)]
mod tests;
