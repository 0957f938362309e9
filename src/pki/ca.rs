//! Certificates, keys, and authorities: one of each that belong together.
//! Comes in: PEM, from anyone. Goes out: what it says, or why it cannot be used. May touch: nothing
//! outside; pure. Sizes and counts are bounded before anything is read, and a key is never shown.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rcgen::{KeyPair, PublicKeyData};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use x509_parser::prelude::{FromDer, X509Certificate};

/// The longest PEM that is read.
pub(crate) const MAX_PEM_BYTES: usize = 64 * 1024;
/// The most certificates that the authorities may be, all together.
pub(crate) const MAX_CERTIFICATES: usize = 8;
/// The most certificates that are read of a bundle which may be anyone's.
const MAX_FOREIGN_CERTIFICATES: usize = 64;
const LINE: usize = 64;

/// A certificate, and what of it matters here.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Certificate {
    /// Its bytes. Two certificates are the same if these are.
    pub(crate) der: Vec<u8>,
    /// The first second at which it is valid.
    pub(crate) from: Timestamp,
    /// The second at which it is valid no more.
    pub(crate) until: Timestamp,
}

/// A private key, as PKCS #8. It is shown to nobody.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PrivateKey(Vec<u8>);

/// What signs certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CertificateAuthority {
    /// What others trust.
    pub(crate) certificate: Certificate,
    /// What signs.
    pub(crate) key: PrivateKey,
}

/// Why something cannot be used. It tells nothing of what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParseError {
    /// Half of a pair is not there.
    #[error("it is missing")]
    Missing,
    /// It is longer than anything we would write.
    #[error("it is longer than 64 KiB")]
    TooLong,
    /// There is no PEM in it, or more than the one section that belongs there.
    #[error("it is not one section of PEM")]
    NotPem,
    /// The PEM holds something else than a certificate.
    #[error("it is not a certificate")]
    NotACertificate,
    /// The certificate may not sign others.
    #[error("it is a certificate, but not that of an authority")]
    NotAnAuthority,
    /// The PEM holds something else than a key that we can sign with.
    #[error("it is not a key in PKCS #8 that can sign")]
    NotAKey,
    /// Certificate and key are both fine, and not of the same authority.
    #[error("the key is not that of the certificate")]
    KeyOfAnother,
    /// Somebody has changed what we wrote.
    #[error("it is not what was written there")]
    Garbled,
}

impl Certificate {
    /// Reads the certificate of an authority.
    pub(crate) fn of_authority(der: &[u8]) -> Result<Self, ParseError> {
        let (certificate, is_authority) = read(der)?;
        if is_authority { Ok(certificate) } else { Err(ParseError::NotAnAuthority) }
    }

    /// Reads any certificate.
    pub(crate) fn of(der: &[u8]) -> Result<Self, ParseError> {
        read(der).map(|(certificate, _)| certificate)
    }

    /// Reads the one certificate of an authority that is in `pem`.
    pub(crate) fn one(pem: &[u8]) -> Result<Self, ParseError> {
        let mut found = sections(pem)?;
        let first = found.next().ok_or(ParseError::NotPem)?.map_err(not_pem)?;
        if found.next().is_some() {
            return Err(ParseError::NotPem);
        }
        Self::of_authority(&first)
    }

    /// Reads the certificates of authorities that are in `pem`, and leaves out what is none.
    pub(crate) fn list(pem: &[u8]) -> Vec<Self> {
        let sections = sections(pem).into_iter().flatten().take(MAX_CERTIFICATES);
        let read = sections.filter_map(|der| Self::of_authority(&der.ok()?).ok());
        read.collect()
    }

    /// Whether it is valid at `now`.
    pub(crate) fn valid_at(&self, now: Timestamp) -> bool {
        self.from <= now && now < self.until
    }

    /// Whose it is, in the bytes in which others name it.
    pub(crate) fn subject(&self) -> Vec<u8> {
        let read = X509Certificate::from_der(&self.der);
        read.map(|(_, it)| it.subject().as_raw().to_vec()).unwrap_or_default()
    }

    /// The certificate as PEM.
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
    /// A key from its PKCS #8 bytes.
    pub(crate) const fn new(pkcs8: Vec<u8>) -> Self {
        Self(pkcs8)
    }

    /// The key as PEM.
    pub(crate) fn pem(&self) -> String {
        pem("PRIVATE KEY", &self.0)
    }

    /// Its bytes, for whoever shows its certificate.
    pub(crate) fn pkcs8(&self) -> &[u8] {
        &self.0
    }

    /// The key as something that signs.
    pub(crate) fn signer(&self) -> Result<KeyPair, ParseError> {
        // What the library says is of no use to anyone, and might tell of the key.
        KeyPair::try_from(&PrivatePkcs8KeyDer::from(self.0.as_slice())).or(Err(ParseError::NotAKey))
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(..)")
    }
}

impl CertificateAuthority {
    /// Reads a certificate and a key that belong together.
    pub(crate) fn read(certificate: &[u8], key: &[u8]) -> Result<Self, ParseError> {
        let certificate = Certificate::one(certificate)?;
        if key.len() > MAX_PEM_BYTES {
            return Err(ParseError::TooLong);
        }
        let key = PrivatePkcs8KeyDer::from_pem_slice(key).map_err(not_pem)?;
        let key = PrivateKey::new(key.secret_pkcs8_der().to_vec());
        let (_, read) =
            X509Certificate::from_der(&certificate.der).or(Err(ParseError::NotACertificate))?;
        if key.signer()?.subject_public_key_info() != read.public_key().raw {
            return Err(ParseError::KeyOfAnother);
        }
        Ok(Self { certificate, key })
    }
}

/// Many certificates as one PEM.
pub(crate) fn bundle<'a>(certificates: impl IntoIterator<Item = &'a Certificate>) -> Vec<u8> {
    let pem: String = certificates.into_iter().map(Certificate::pem).collect();
    pem.into_bytes()
}

/// Whether a bundle, which may be anyone's, holds exactly these bytes as one of its certificates.
pub(crate) fn holds(bundle: &[u8], der: &[u8]) -> bool {
    let sections = sections(bundle).into_iter().flatten().take(MAX_FOREIGN_CERTIFICATES);
    sections.filter_map(Result::ok).any(|section| section.as_ref() == der)
}

fn read(der: &[u8]) -> Result<(Certificate, bool), ParseError> {
    let (rest, read) = X509Certificate::from_der(der).or(Err(ParseError::NotACertificate))?;
    if !rest.is_empty() {
        return Err(ParseError::NotACertificate);
    }
    let time = |second| Timestamp::from_second(second).or(Err(ParseError::NotACertificate));
    let from = time(read.validity().not_before.timestamp())?;
    let until = time(read.validity().not_after.timestamp())?;
    let may_sign = match read.key_usage() {
        Ok(Some(usage)) => usage.value.key_cert_sign(),
        Ok(None) => true,
        Err(_) => false,
    };
    Ok((Certificate { der: der.to_vec(), from, until }, read.is_ca() && may_sign))
}

type Section = Result<CertificateDer<'static>, rustls::pki_types::pem::Error>;

fn sections(pem: &[u8]) -> Result<impl Iterator<Item = Section>, ParseError> {
    if pem.len() > MAX_PEM_BYTES {
        return Err(ParseError::TooLong);
    }
    Ok(CertificateDer::pem_slice_iter(pem))
}

/// What the reader says might tell of what it read.
fn not_pem(_: rustls::pki_types::pem::Error) -> ParseError {
    ParseError::NotPem
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines = text.as_bytes().chunks(LINE).map(String::from_utf8_lossy);
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
