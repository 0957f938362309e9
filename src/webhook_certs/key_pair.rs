//! A certificate with its key, as someone else puts them into two files.
//! Comes in: the contents of the files. Goes out: what can be shown in handshakes, and from when until
//! when it is valid; or why it cannot. May touch: nothing outside; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::pki::ca::{Certificate, MAX_CERTIFICATES, ParseError};

/// A pair that belongs together.
#[derive(Debug)]
pub(crate) struct ServingKeyPair {
    /// What handshakes show.
    pub(crate) key: CertifiedKey,
    /// The certificate itself, without those that signed it.
    pub(crate) certificate: Certificate,
}

/// Why a pair cannot be used. It tells nothing of what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyPairError {
    /// The file with the certificate.
    #[error("tls.crt cannot be used: {0}")]
    Certificate(ParseError),
    /// There are more certificates than anybody needs.
    #[error("tls.crt cannot be used: it holds more than {MAX_CERTIFICATES} certificates")]
    TooMany,
    /// The file with the key.
    #[error("tls.key cannot be used: it is not a private key in PEM")]
    Key,
    /// Both are fine and do not belong together.
    #[error("tls.key is not the key of the certificate in tls.crt")]
    Mismatch,
}

const NOT_PEM: KeyPairError = KeyPairError::Certificate(ParseError::NotPem);

/// Reads a pair.
pub(crate) fn read(certificate: &[u8], key: &[u8]) -> Result<ServingKeyPair, KeyPairError> {
    // What the readers say might tell of what they read.
    let chain =
        CertificateDer::pem_slice_iter(certificate).take(MAX_CERTIFICATES.saturating_add(1));
    let chain: Vec<CertificateDer<'static>> = chain.collect::<Result<_, _>>().or(Err(NOT_PEM))?;
    if chain.len() > MAX_CERTIFICATES {
        return Err(KeyPairError::TooMany);
    }
    let first = chain.first().ok_or(NOT_PEM)?;
    let certificate = Certificate::of(first).map_err(KeyPairError::Certificate)?;
    let key = PrivateKeyDer::from_pem_slice(key).or(Err(KeyPairError::Key))?;
    let provider = default_provider();
    let key = provider.key_provider.load_private_key(key).or(Err(KeyPairError::Key))?;
    let shown = CertifiedKey::new(chain, key);
    shown.keys_match().or(Err(KeyPairError::Mismatch))?;
    Ok(ServingKeyPair { key: shown, certificate })
}

/// Whether a pair that was found shall take the place of the one that is shown: if it can be used, or
/// if the other one cannot either.
pub(crate) fn is_better(found: &Certificate, shown: Option<&Certificate>, now: Timestamp) -> bool {
    match shown {
        None => true,
        Some(shown) => found.valid_at(now) || !shown.valid_at(now),
    }
}

#[cfg(test)]
mod tests;
