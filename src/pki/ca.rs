//! Parses certificates, private keys and CAs from untrusted PEM. Pure.
//! Guarantees: sizes and counts are bounded before parsing; no error and no debug output contains
//! key material.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rcgen::{KeyPair, PublicKeyData};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Larger PEM is rejected.
pub(crate) const MAX_PEM_BYTES: usize = 64 * 1024;
/// Maximum number of certificates in a CA set.
pub(crate) const MAX_CERTIFICATES: usize = 8;
/// Maximum number of certificates read from a bundle that other writers may have changed.
const MAX_FOREIGN_CERTIFICATES: usize = 64;
const PEM_LINE_LENGTH: usize = 64;

/// A certificate and its validity period.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Certificate {
    /// The DER encoding. Certificates are compared by it.
    pub(crate) der: Vec<u8>,
    /// `notBefore`.
    pub(crate) from: Timestamp,
    /// `notAfter`.
    pub(crate) until: Timestamp,
}

/// A private key in PKCS #8. Its debug output is redacted.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PrivateKey(Vec<u8>);

/// A CA: a certificate and the private key that belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CertificateAuthority {
    /// The CA certificate, which trust bundles contain.
    pub(crate) certificate: Certificate,
    /// The key that signs.
    pub(crate) key: PrivateKey,
}

/// Why PEM could not be parsed. Contains nothing of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParseError {
    /// The certificate or the key of a pair is missing.
    #[error("missing")]
    Missing,
    /// The PEM exceeds [`MAX_PEM_BYTES`].
    #[error("larger than 64 KiB")]
    TooLarge,
    /// No PEM block, or more than one.
    #[error("not a single PEM block")]
    NotPem,
    /// The PEM block is not a certificate.
    #[error("not an X.509 certificate")]
    NotACertificate,
    /// The certificate must not sign others.
    #[error("not a CA certificate")]
    NotACa,
    /// The PEM block is not a private key of a supported algorithm.
    #[error("not a supported private key")]
    NotAKey,
    /// Certificate and key are valid, but do not belong together.
    #[error("does not match the certificate")]
    KeyMismatch,
    /// The content was not written by the operator.
    #[error("changed by another writer")]
    Modified,
}

impl Certificate {
    /// Parses a CA certificate.
    pub(crate) fn parse_ca_der(der: &[u8]) -> Result<Self, ParseError> {
        let (certificate, is_ca) = parse(der)?;
        if is_ca { Ok(certificate) } else { Err(ParseError::NotACa) }
    }

    /// Parses any certificate.
    pub(crate) fn parse_der(der: &[u8]) -> Result<Self, ParseError> {
        parse(der).map(|(certificate, _)| certificate)
    }

    /// Parses the only certificate in `pem`, a CA certificate.
    pub(crate) fn parse_ca_pem(pem: &[u8]) -> Result<Self, ParseError> {
        let mut blocks = pem_blocks(pem)?;
        let first = blocks.next().ok_or(ParseError::NotPem)?.map_err(not_pem)?;
        if blocks.next().is_some() {
            return Err(ParseError::NotPem);
        }
        Self::parse_ca_der(&first)
    }

    /// Parses the CA certificates in `pem` and skips everything else.
    pub(crate) fn parse_ca_bundle(pem: &[u8]) -> Vec<Self> {
        let blocks = pem_blocks(pem).into_iter().flatten().take(MAX_CERTIFICATES);
        blocks.filter_map(|der| Self::parse_ca_der(&der.ok()?).ok()).collect()
    }

    /// Whether `now` is within the validity period.
    pub(crate) fn valid_at(&self, now: Timestamp) -> bool {
        self.from <= now && now < self.until
    }

    /// The DER encoding of the subject.
    pub(crate) fn subject(&self) -> Vec<u8> {
        let parsed = X509Certificate::from_der(&self.der);
        parsed.map(|(_, certificate)| certificate.subject().as_raw().to_vec()).unwrap_or_default()
    }

    /// The certificate in PEM.
    pub(crate) fn pem(&self) -> String {
        pem("CERTIFICATE", &self.der)
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { der, from, until } = self;
        write!(f, "Certificate({} bytes, {from} to {until})", der.len())
    }
}

impl PrivateKey {
    /// A key from its PKCS #8 encoding.
    pub(crate) const fn new(pkcs8: Vec<u8>) -> Self {
        Self(pkcs8)
    }

    /// The key in PEM.
    pub(crate) fn pem(&self) -> String {
        pem("PRIVATE KEY", &self.0)
    }

    /// The PKCS #8 encoding.
    pub(crate) fn pkcs8(&self) -> &[u8] {
        &self.0
    }

    /// The key as a signer.
    pub(crate) fn signer(&self) -> Result<KeyPair, ParseError> {
        // The library's own error is dropped: it might contain parts of the key.
        KeyPair::try_from(&PrivatePkcs8KeyDer::from(self.0.as_slice())).or(Err(ParseError::NotAKey))
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(..)")
    }
}

impl CertificateAuthority {
    /// Parses a CA certificate and the private key that belongs to it.
    pub(crate) fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Self, ParseError> {
        let certificate = Certificate::parse_ca_pem(certificate)?;
        if key.len() > MAX_PEM_BYTES {
            return Err(ParseError::TooLarge);
        }
        let key = PrivatePkcs8KeyDer::from_pem_slice(key).map_err(not_pem)?;
        let key = PrivateKey::new(key.secret_pkcs8_der().to_vec());
        let (_, parsed) =
            X509Certificate::from_der(&certificate.der).or(Err(ParseError::NotACertificate))?;
        if key.signer()?.subject_public_key_info() != parsed.public_key().raw {
            return Err(ParseError::KeyMismatch);
        }
        Ok(Self { certificate, key })
    }
}

/// A bundle of certificates in PEM.
pub(crate) fn bundle<'a>(certificates: impl IntoIterator<Item = &'a Certificate>) -> Vec<u8> {
    let pem: String = certificates.into_iter().map(Certificate::pem).collect();
    pem.into_bytes()
}

/// Whether an untrusted bundle contains a certificate with exactly these bytes.
pub(crate) fn bundle_contains(bundle: &[u8], der: &[u8]) -> bool {
    let blocks = pem_blocks(bundle).into_iter().flatten().take(MAX_FOREIGN_CERTIFICATES);
    blocks.filter_map(Result::ok).any(|block| block.as_ref() == der)
}

/// The certificate, and whether it is a CA that may sign certificates.
fn parse(der: &[u8]) -> Result<(Certificate, bool), ParseError> {
    let (rest, parsed) = X509Certificate::from_der(der).or(Err(ParseError::NotACertificate))?;
    if !rest.is_empty() {
        return Err(ParseError::NotACertificate);
    }
    let time = |second| Timestamp::from_second(second).or(Err(ParseError::NotACertificate));
    let from = time(parsed.validity().not_before.timestamp())?;
    let until = time(parsed.validity().not_after.timestamp())?;
    let may_sign = match parsed.key_usage() {
        Ok(Some(usage)) => usage.value.key_cert_sign(),
        Ok(None) => true,
        Err(_) => false,
    };
    Ok((Certificate { der: der.to_vec(), from, until }, parsed.is_ca() && may_sign))
}

type PemBlock = Result<CertificateDer<'static>, rustls::pki_types::pem::Error>;

fn pem_blocks(pem: &[u8]) -> Result<impl Iterator<Item = PemBlock>, ParseError> {
    if pem.len() > MAX_PEM_BYTES {
        return Err(ParseError::TooLarge);
    }
    Ok(CertificateDer::pem_slice_iter(pem))
}

/// Drops the parser's own error, which might contain parts of the input.
fn not_pem(_: rustls::pki_types::pem::Error) -> ParseError {
    ParseError::NotPem
}

fn pem(label: &str, der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let lines = encoded.as_bytes().chunks(PEM_LINE_LENGTH).map(String::from_utf8_lossy);
    let mut pem = format!("-----BEGIN {label}-----\n");
    for line in lines {
        pem.push_str(&line);
        pem.push('\n');
    }
    pem.push_str("-----END ");
    pem.push_str(label);
    pem.push_str("-----\n");
    pem
}

#[cfg(test)]
mod tests;
