//! Issues self-signed CAs and leaf certificates, each with a new key. Not pure: keys and serial
//! numbers come from the system's random source.

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SerialNumber,
};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use time::OffsetDateTime;

use super::ca::{Certificate, CertificateAuthority, ParseError, PrivateKey};

pub(crate) use super::leaf::CertifiedKey;

const SERIAL_BYTES: usize = 16;
/// OID of the attribute `serialNumber` of a distinguished name.
const SERIAL_NUMBER: [u64; 4] = [2, 5, 4, 5];

/// Why nothing was issued. Contains no key material.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IssueError {
    /// `rcgen` could not create a key or a certificate.
    #[error("failed to issue a certificate")]
    Certificate(#[source] rcgen::Error),
    /// The random source failed.
    #[error("failed to read random bytes")]
    Random,
    /// A date is out of range.
    #[error("failed to encode a date of a certificate")]
    Date(#[source] time::error::ComponentRange),
    /// A certificate or a key could not be parsed.
    #[error("failed to parse a certificate or a key")]
    Parse(#[source] ParseError),
    /// `rustls` rejected the certificate or its key.
    #[error("failed to load an issued certificate into the TLS server")]
    Load(#[source] rustls::Error),
}

/// The validity period of a certificate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Validity {
    pub(crate) from: Timestamp,
    pub(crate) until: Timestamp,
}

/// The extended key usage of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Server authentication.
    Server,
    /// Client authentication.
    Client,
    /// Both, for an etcd peer: it accepts connections and dials others.
    Both,
}

/// A leaf certificate to issue.
#[derive(Clone, Debug)]
pub(crate) struct CertificateRequest<'a> {
    /// The common name. It identifies a client; for a server it is only informational.
    pub(crate) name: &'a str,
    /// Subject alternative names: DNS names and IP addresses. A client needs none.
    pub(crate) hosts: Vec<String>,
    pub(crate) purpose: Purpose,
    pub(crate) validity: Validity,
}

impl Purpose {
    fn usages(self) -> Vec<ExtendedKeyUsagePurpose> {
        let (server, client) =
            (ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth);
        match self {
            Self::Server => vec![server],
            Self::Client => vec![client],
            Self::Both => vec![server, client],
        }
    }
}

/// A new CA. Its subject contains a random number: a server that lists acceptable CAs names them
/// by subject, and two CAs with the same common name must differ there.
pub(crate) fn self_signed_ca(
    name: &str,
    validity: Validity,
) -> Result<CertificateAuthority, IssueError> {
    let key = new_key()?;
    let mut params = params(name, validity)?;
    let number = u128::from_be_bytes(serial()?);
    let attribute = DnType::CustomDnType(SERIAL_NUMBER.to_vec());
    params.distinguished_name.push(attribute, format!("{number:032x}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let issued = params.self_signed(&key).map_err(IssueError::Certificate)?;
    let certificate = Certificate::parse_ca_der(issued.der()).map_err(IssueError::Parse)?;
    Ok(CertificateAuthority { certificate, key: PrivateKey::new(key.serialize_der()) })
}

/// A new leaf certificate with a new key, signed by `ca`.
pub(crate) fn sign(
    ca: &CertificateAuthority,
    request: &CertificateRequest<'_>,
) -> Result<CertifiedKey, IssueError> {
    let CertificateRequest { name, hosts, purpose, validity } = request;
    let mut params = params(name, *validity)?;
    params.subject_alt_names =
        CertificateParams::new(hosts.clone()).map_err(IssueError::Certificate)?.subject_alt_names;
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = purpose.usages();
    params.use_authority_key_identifier_extension = true;
    let signer = ca.key.signer().map_err(IssueError::Parse)?;
    let ca_der = CertificateDer::from(ca.certificate.der.as_slice());
    let issuer = Issuer::from_ca_cert_der(&ca_der, signer).map_err(IssueError::Certificate)?;
    let key = new_key()?;
    let leaf = params.signed_by(&key, &issuer).map_err(IssueError::Certificate)?;
    // Parsed back, because the encoded dates count, and those have whole seconds.
    let certificate = Certificate::parse_der(leaf.der()).map_err(IssueError::Parse)?;
    let key = PrivateKey::new(key.serialize_der());
    Ok(CertifiedKey { certificate, chain: Vec::new(), key })
}

fn params(name: &str, validity: Validity) -> Result<CertificateParams, IssueError> {
    let Validity { from, until } = validity;
    let mut params = CertificateParams::default();
    params.not_before = date(from)?;
    params.not_after = date(until)?;
    params.serial_number = Some(SerialNumber::from_slice(&serial()?));
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, truncate(name));
    Ok(params)
}

/// A common name has at most 64 characters. Truncation is harmless for a server: clients check the
/// subject alternative names.
fn truncate(name: &str) -> String {
    name.chars().take(64).collect()
}

fn new_key() -> Result<KeyPair, IssueError> {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(IssueError::Certificate)
}

/// A serial number: random, so that two CAs with the same common name differ, and positive.
fn serial() -> Result<[u8; SERIAL_BYTES], IssueError> {
    let mut bytes = [0; SERIAL_BYTES];
    let random = default_provider().secure_random;
    random.fill(&mut bytes).or(Err(IssueError::Random))?;
    if let Some(first) = bytes.first_mut() {
        *first = *first & 0x7f | 0x40;
    }
    Ok(bytes)
}

fn date(time: Timestamp) -> Result<OffsetDateTime, IssueError> {
    OffsetDateTime::from_unix_timestamp(time.as_second()).map_err(IssueError::Date)
}
