//! Makes authorities and signs certificates.
//! Comes in: how long, for whom, and who signs. Goes out: new keys with their certificates.
//! May touch: the system's source of randomness, which is why it is no pure room.

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
/// The attribute `serialNumber` of a name.
const SERIAL_NUMBER: [u64; 4] = [2, 5, 4, 5];

/// Why nothing was made. It tells nothing of any key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IssueError {
    /// The library could not make it.
    #[error("failed to make a certificate")]
    Certificate(#[source] rcgen::Error),
    /// There is no randomness to be had.
    #[error("failed to get random numbers")]
    Random,
    /// A date is beyond what can be written down.
    #[error("failed to write down a date of a certificate")]
    Date(#[source] time::error::ComponentRange),
    /// What shall sign cannot.
    #[error("failed to use the authority")]
    Authority(#[source] ParseError),
    /// The library that shows the certificate does not take it.
    #[error("failed to take a certificate into use")]
    Unusable(#[source] rustls::Error),
}

/// From when until when something is valid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Validity {
    pub(crate) from: Timestamp,
    pub(crate) until: Timestamp,
}

/// What a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It is shown by whoever is called.
    Server,
    /// It is shown by whoever calls.
    Client,
    /// Both: who shows it is called by some, and calls others.
    Both,
}

/// A certificate that is wanted.
#[derive(Clone, Debug)]
pub(crate) struct CertificateRequest<'a> {
    /// Its common name. For a server it is for people, a client is known by it.
    pub(crate) name: &'a str,
    /// The hosts it is good for: names, and addresses. A client needs none.
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

/// A new authority, with a name for people, and a number in it: two of the same name can be told apart by whoever is
/// asked for one of them.
pub(crate) fn self_signed_ca(
    name: &str,
    validity: Validity,
) -> Result<CertificateAuthority, IssueError> {
    let key = new_key()?;
    let mut params = params(name, validity)?;
    let number = u128::from_be_bytes(serial()?);
    let kind = DnType::CustomDnType(SERIAL_NUMBER.to_vec());
    params.distinguished_name.push(kind, format!("{number:032x}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let made = params.self_signed(&key).map_err(IssueError::Certificate)?;
    let certificate = Certificate::of_authority(made.der()).map_err(IssueError::Authority)?;
    Ok(CertificateAuthority { certificate, key: PrivateKey::new(key.serialize_der()) })
}

/// A new certificate with a new key, signed by `authority`.
pub(crate) fn sign(
    authority: &CertificateAuthority,
    wanted: &CertificateRequest<'_>,
) -> Result<CertifiedKey, IssueError> {
    let CertificateRequest { name, hosts, purpose, validity } = wanted;
    let mut params = params(name, *validity)?;
    params.subject_alt_names =
        CertificateParams::new(hosts.clone()).map_err(IssueError::Certificate)?.subject_alt_names;
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = purpose.usages();
    params.use_authority_key_identifier_extension = true;
    let signer = authority.key.signer().map_err(IssueError::Authority)?;
    let signed_by = CertificateDer::from(authority.certificate.der.as_slice());
    let issuer = Issuer::from_ca_cert_der(&signed_by, signer).map_err(IssueError::Certificate)?;
    let key = new_key()?;
    let made = params.signed_by(&key, &issuer).map_err(IssueError::Certificate)?;
    // What was written down is what counts: whole seconds.
    let certificate = Certificate::of(made.der()).map_err(IssueError::Authority)?;
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
    params.distinguished_name.push(DnType::CommonName, short(name));
    Ok(params)
}

/// A common name has 64 characters at most. Nobody looks at it: the other names count.
fn short(name: &str) -> String {
    name.chars().take(64).collect()
}

fn new_key() -> Result<KeyPair, IssueError> {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(IssueError::Certificate)
}

/// Random, so that two authorities of the same name can be told apart, and positive.
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
