//! Leaf certificates with their keys: parsing from untrusted PEM, and verification against a trust
//! bundle. Pure. Debug output contains no key material.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rcgen::PublicKeyData;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{CertificateError, RootCertStore};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use super::ca::{Certificate, MAX_CERTIFICATES, MAX_PEM_BYTES, ParseError, PrivateKey};

/// A leaf certificate, its chain and its private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CertifiedKey {
    pub(crate) certificate: Certificate,
    /// Intermediate CAs, from the issuer upwards, without the root. Empty for certificates that the
    /// operator issues: its CAs are self-signed.
    pub(crate) chain: Vec<Certificate>,
    pub(crate) key: PrivateKey,
}

/// Why a certificate fails verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum VerifyError {
    /// After `notAfter`.
    #[error("the certificate has expired")]
    Expired,
    /// Before `notBefore`.
    #[error("the certificate is not valid yet")]
    NotYetValid,
    /// No CA of the trust bundle signed the certificate.
    #[error("no CA of the trust bundle signed the certificate")]
    UnknownIssuer,
    /// The certificate lacks the extended key usage.
    #[error("the certificate lacks the required extended key usage")]
    WrongUsage,
    /// No subject alternative name matches the host.
    #[error("the certificate does not name this host")]
    HostMismatch,
    /// Any other failure.
    #[error("the certificate is malformed")]
    Malformed,
}

impl CertifiedKey {
    /// Parses a certificate with its chain, and the private key that belongs to it.
    pub(crate) fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Self, ParseError> {
        if certificate.len() > MAX_PEM_BYTES {
            return Err(ParseError::TooLarge);
        }
        // The parsers' own errors are dropped: they might contain parts of the input.
        let mut blocks = CertificateDer::pem_slice_iter(certificate);
        let der = blocks.next().ok_or(ParseError::NotPem)?.or(Err(ParseError::NotPem))?;
        let certificate = Certificate::parse_der(&der)?;
        let mut chain = Vec::new();
        for issuer in blocks {
            chain.push(Certificate::parse_ca_der(&issuer.or(Err(ParseError::NotPem))?)?);
            if chain.len() > MAX_CERTIFICATES {
                return Err(ParseError::TooLarge);
            }
        }
        let key = PrivateKey::from_pem(key)?;
        let (_, parsed) = X509Certificate::from_der(&der).or(Err(ParseError::NotACertificate))?;
        if key.signer()?.subject_public_key_info() != parsed.public_key().raw {
            return Err(ParseError::KeyMismatch);
        }
        Ok(Self { certificate, chain, key })
    }

    /// The certificate and its chain in PEM.
    pub(crate) fn pem(&self) -> String {
        [&self.certificate].into_iter().chain(&self.chain).map(Certificate::pem).collect()
    }

    /// Verifies the client certificate as a server with this trust bundle does.
    pub(crate) fn verify_as_client(
        &self,
        trusted: &[Certificate],
        now: Timestamp,
    ) -> Result<(), VerifyError> {
        let (roots, time) = (roots(trusted)?, unix(now)?);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
        let verifier = verifier.or(Err(VerifyError::Malformed))?;
        let result = verifier.verify_client_cert(&der(&self.certificate), &self.chain_der(), time);
        result.map(drop).map_err(|error| verify_error(&error))
    }

    /// Verifies the server certificate as a client with this trust bundle does, which dials `host`.
    pub(crate) fn verify_as_server(
        &self,
        trusted: &[Certificate],
        host: &str,
        now: Timestamp,
    ) -> Result<(), VerifyError> {
        let (roots, time) = (roots(trusted)?, unix(now)?);
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider()).build();
        let verifier = verifier.or(Err(VerifyError::Malformed))?;
        let host = ServerName::try_from(host.to_owned()).or(Err(VerifyError::HostMismatch))?;
        let (leaf, chain) = (der(&self.certificate), self.chain_der());
        let result = verifier.verify_server_cert(&leaf, &chain, &host, &[], time);
        result.map(drop).map_err(|error| verify_error(&error))
    }

    fn chain_der(&self) -> Vec<CertificateDer<'_>> {
        self.chain.iter().map(der).collect()
    }
}

fn der(certificate: &Certificate) -> CertificateDer<'_> {
    CertificateDer::from(certificate.der.as_slice())
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(default_provider())
}

fn roots(trusted: &[Certificate]) -> Result<Arc<RootCertStore>, VerifyError> {
    let mut roots = RootCertStore::empty();
    for certificate in trusted {
        roots.add(der(certificate)).or(Err(VerifyError::Malformed))?;
    }
    // An empty trust bundle accepts nothing, and rustls builds no verifier without roots.
    if roots.is_empty() { Err(VerifyError::UnknownIssuer) } else { Ok(Arc::new(roots)) }
}

fn unix(now: Timestamp) -> Result<UnixTime, VerifyError> {
    let seconds = u64::try_from(now.as_second()).or(Err(VerifyError::NotYetValid))?;
    Ok(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
}

/// Classified by the error's type, never by its text.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "rustls has many more kinds, which mean less to a user"
)]
fn verify_error(error: &rustls::Error) -> VerifyError {
    let rustls::Error::InvalidCertificate(error) = error else { return VerifyError::Malformed };
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => VerifyError::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            VerifyError::NotYetValid
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            VerifyError::UnknownIssuer
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            VerifyError::WrongUsage
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            VerifyError::HostMismatch
        }
        _ => VerifyError::Malformed,
    }
}

impl Certificate {
    /// Subject alternative names: DNS names and IP addresses.
    pub(crate) fn hosts(&self) -> BTreeSet<String> {
        let Ok((_, parsed)) = X509Certificate::from_der(&self.der) else {
            return BTreeSet::new();
        };
        let Ok(Some(names)) = parsed.subject_alternative_name() else {
            return BTreeSet::new();
        };
        names.value.general_names.iter().map(host_name).collect()
    }

    /// The common name, if the subject has one.
    pub(crate) fn common_name(&self) -> Option<String> {
        let (_, parsed) = X509Certificate::from_der(&self.der).ok()?;
        let name = parsed.subject().iter_common_name().next()?;
        name.as_str().ok().map(str::to_owned)
    }

    /// Whether `ca` signed the certificate, and a server that trusts `ca` accepts it from a client.
    pub(crate) fn is_signed_by(&self, ca: &Self, now: Timestamp) -> bool {
        let (Ok(roots), Ok(time)) = (roots(std::slice::from_ref(ca)), unix(now)) else {
            return false;
        };
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
        verifier.is_ok_and(|verifier| verifier.verify_client_cert(&der(self), &[], time).is_ok())
    }
}

/// The text of a subject alternative name. One that is neither a DNS name nor an IP address differs
/// from every host.
fn host_name(name: &GeneralName<'_>) -> String {
    if let GeneralName::DNSName(name) = name {
        return (*name).to_owned();
    }
    if let GeneralName::IPAddress(bytes) = name {
        let ipv4 = <[u8; 4]>::try_from(*bytes).map(|octets| Ipv4Addr::from(octets).to_string());
        let ipv6 = <[u8; 16]>::try_from(*bytes).map(|octets| Ipv6Addr::from(octets).to_string());
        return ipv4.or(ipv6).unwrap_or_else(|_| "an IP address of invalid length".to_owned());
    }
    "neither a DNS name nor an IP address".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::ca::CertificateAuthority;
    use crate::pki::issue::{self, CertificateRequest, Purpose, Validity};

    const START: i64 = 1_800_000_000;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(START.saturating_add(second)).unwrap()
    }

    fn validity() -> Validity {
        Validity { from: at(0), until: at(1000) }
    }

    fn ca() -> CertificateAuthority {
        issue::self_signed_ca("test CA", validity()).unwrap()
    }

    fn issued(ca: &CertificateAuthority, purpose: Purpose, hosts: &[&str]) -> CertifiedKey {
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        let request = CertificateRequest { name: "client", hosts, purpose, validity: validity() };
        issue::sign(ca, &request).unwrap()
    }

    fn serves(leaf: &CertifiedKey, ca: &CertificateAuthority, host: &str) -> bool {
        leaf.verify_as_server(std::slice::from_ref(&ca.certificate), host, at(1)).is_ok()
    }

    #[test]
    fn each_failed_verification_has_its_own_error() {
        let (own, other) = (ca(), ca());
        let (own_root, other_root) = ([own.certificate.clone()], [other.certificate]);
        let both = issued(&own, Purpose::Both, &["*.space.svc"]);
        assert_eq!(both.verify_as_server(&own_root, "main-a.space.svc", at(1)), Ok(()));
        assert_eq!(both.verify_as_client(&own_root, at(1)), Ok(()));
        let here = "main-a.space.svc";
        for (error, result) in [
            (
                VerifyError::HostMismatch,
                both.verify_as_server(&own_root, "main-a.other.svc", at(1)),
            ),
            (
                VerifyError::HostMismatch,
                both.verify_as_server(&own_root, "a.main-a.space.svc", at(1)),
            ),
            (VerifyError::UnknownIssuer, both.verify_as_server(&other_root, here, at(1))),
            (VerifyError::UnknownIssuer, both.verify_as_client(&other_root, at(1))),
            (VerifyError::UnknownIssuer, both.verify_as_client(&[], at(1))),
            (VerifyError::Expired, both.verify_as_client(&own_root, at(2000))),
            (VerifyError::NotYetValid, both.verify_as_server(&own_root, here, at(-1))),
            (
                VerifyError::WrongUsage,
                issued(&own, Purpose::Server, &[]).verify_as_client(&own_root, at(1)),
            ),
            (
                VerifyError::WrongUsage,
                issued(&own, Purpose::Client, &[here]).verify_as_server(&own_root, here, at(1)),
            ),
        ] {
            assert_eq!(result, Err(error));
        }
    }

    #[test]
    fn certificate_is_accepted_only_for_its_usage() {
        let ca = ca();
        let dials = |leaf: &CertifiedKey| leaf.certificate.is_signed_by(&ca.certificate, at(1));
        for (purpose, as_server, as_client) in [
            (Purpose::Server, true, false),
            (Purpose::Client, false, true),
            (Purpose::Both, true, true),
        ] {
            let leaf = issued(&ca, purpose, &["here.svc"]);
            assert_eq!(serves(&leaf, &ca, "here.svc"), as_server, "{purpose:?}");
            assert_eq!(dials(&leaf), as_client, "{purpose:?}");
        }
    }

    #[test]
    fn client_certificate_has_a_common_name_and_no_hosts() {
        let leaf = issued(&ca(), Purpose::Client, &[]);
        assert_eq!(leaf.certificate.hosts(), BTreeSet::new());
        let (_, parsed) = X509Certificate::from_der(&leaf.certificate.der).unwrap();
        assert_eq!(parsed.subject().to_string(), "CN=client");
    }

    #[test]
    fn certificate_is_signed_by_its_own_ca_only_within_its_validity() {
        let (own, other) = (ca(), ca());
        let leaf = issued(&own, Purpose::Client, &[]).certificate;
        assert!(leaf.is_signed_by(&own.certificate, at(1)));
        assert!(!leaf.is_signed_by(&other.certificate, at(1)));
        assert!(!leaf.is_signed_by(&own.certificate, at(2000)));
        assert!(!leaf.is_signed_by(&own.certificate, at(-1)));
        assert!(!leaf.is_signed_by(&own.certificate, Timestamp::MIN));
    }

    #[test]
    fn hosts_are_parsed_as_issued() {
        let hosts = ["a.b.svc", "localhost", "127.0.0.1", "::1"];
        let leaf = issued(&ca(), Purpose::Both, &hosts);
        assert_eq!(leaf.certificate.hosts(), hosts.map(str::to_owned).into());
    }

    #[test]
    fn key_pair_is_parsed_from_its_own_pem_and_only_if_both_match() {
        let ca = ca();
        let (one, two) = (issued(&ca, Purpose::Client, &[]), issued(&ca, Purpose::Client, &[]));
        let (certificate, key) = (one.certificate.pem(), one.key.pem());
        let parse = |certificate: &str, key: &str| {
            CertifiedKey::from_pem(certificate.as_bytes(), key.as_bytes())
        };
        assert_eq!(parse(&certificate, &key), Ok(one.clone()));
        assert_eq!(parse(&certificate, &two.key.pem()), Err(ParseError::KeyMismatch));
        assert_eq!(parse("", &key), Err(ParseError::NotPem));
        assert_eq!(parse(&certificate, ""), Err(ParseError::NotAKey));
        assert_eq!(parse(&certificate.repeat(2), &key), Err(ParseError::NotACa));
        let with_chain = format!("{certificate}{}", ca.certificate.pem());
        let chained = parse(&with_chain, &key).unwrap();
        assert_eq!(chained.chain, std::slice::from_ref(&ca.certificate));
        assert_eq!(chained.pem(), with_chain);
        assert_eq!(
            parse(&"x".repeat(MAX_PEM_BYTES.saturating_add(1)), &key),
            Err(ParseError::TooLarge)
        );
        assert!(
            !format!("{one:?}").contains("BEGIN") && format!("{one:?}").contains("PrivateKey(..)")
        );
    }
}
