//! Certificates that are shown: with their keys, and what they are good for.
//! Comes in: PEM, from anyone. Goes out: what it says, or why it cannot be used. May touch: nothing
//! outside; pure. A key is never shown.
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

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CertifiedKey {
    pub(crate) certificate: Certificate,
    /// Who signed it, and who signed that one, and so on; without the last, whom others trust. Our own authorities sign
    /// themselves.
    pub(crate) chain: Vec<Certificate>,
    pub(crate) key: PrivateKey,
}

/// Why somebody does not take a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum VerifyError {
    /// Its time is over.
    #[error("it has expired")]
    Expired,
    /// Its time has not come.
    #[error("it is not valid yet")]
    NotYet,
    /// None of those who are trusted has signed it.
    #[error("none of the authorities has signed it")]
    OtherAuthority,
    /// It may not be shown by whoever shows it.
    #[error("it lacks the usage for that")]
    OtherPurpose,
    /// It is good for other hosts.
    #[error("it is not good for that host")]
    OtherHost,
    /// Something else is wrong with it.
    #[error("it is not made as certificates are")]
    Odd,
}

impl CertifiedKey {
    /// Reads a certificate, with those who signed it, and a key that belongs to it.
    pub(crate) fn read(certificate: &[u8], key: &[u8]) -> Result<Self, ParseError> {
        if certificate.len() > MAX_PEM_BYTES {
            return Err(ParseError::TooLong);
        }
        // What the readers say might tell of what they read.
        let mut found = CertificateDer::pem_slice_iter(certificate);
        let der = found.next().ok_or(ParseError::NotPem)?.or(Err(ParseError::NotPem))?;
        let certificate = Certificate::of(&der)?;
        let mut chain = Vec::new();
        for signer in found {
            chain.push(Certificate::of_authority(&signer.or(Err(ParseError::NotPem))?)?);
            if chain.len() > MAX_CERTIFICATES {
                return Err(ParseError::TooLong);
            }
        }
        let key = PrivateKey::read(key)?;
        let (_, read) = X509Certificate::from_der(&der).or(Err(ParseError::NotACertificate))?;
        if key.signer()?.subject_public_key_info() != read.public_key().raw {
            return Err(ParseError::KeyOfAnother);
        }
        Ok(Self { certificate, chain, key })
    }

    /// The certificate and those who signed it, as PEM.
    pub(crate) fn pem(&self) -> String {
        [&self.certificate].into_iter().chain(&self.chain).map(Certificate::pem).collect()
    }

    /// Whether whoever trusts these takes it from somebody who calls.
    pub(crate) fn calls(&self, trusted: &[Certificate], now: Timestamp) -> Result<(), VerifyError> {
        let (roots, time) = (roots(trusted)?, unix(now)?);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
        let verifier = verifier.or(Err(VerifyError::Odd))?;
        let verdict = verifier.verify_client_cert(&lent(&self.certificate), &self.lent(), time);
        verdict.map(drop).map_err(|error| untaken(&error))
    }

    /// Whether whoever trusts these takes it from somebody whom they called by this host.
    pub(crate) fn serves(
        &self,
        trusted: &[Certificate],
        host: &str,
        now: Timestamp,
    ) -> Result<(), VerifyError> {
        let (roots, time) = (roots(trusted)?, unix(now)?);
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider()).build();
        let verifier = verifier.or(Err(VerifyError::Odd))?;
        let host = ServerName::try_from(host.to_owned()).or(Err(VerifyError::OtherHost))?;
        let (leaf, chain) = (lent(&self.certificate), self.lent());
        let verdict = verifier.verify_server_cert(&leaf, &chain, &host, &[], time);
        verdict.map(drop).map_err(|error| untaken(&error))
    }

    fn lent(&self) -> Vec<CertificateDer<'_>> {
        self.chain.iter().map(lent).collect()
    }
}

fn lent(certificate: &Certificate) -> CertificateDer<'_> {
    CertificateDer::from(certificate.der.as_slice())
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(default_provider())
}

fn roots(trusted: &[Certificate]) -> Result<Arc<RootCertStore>, VerifyError> {
    let mut roots = RootCertStore::empty();
    for certificate in trusted {
        roots.add(lent(certificate)).or(Err(VerifyError::Odd))?;
    }
    // Who trusts nobody takes nothing; a verifier without roots cannot even be made.
    if roots.is_empty() { Err(VerifyError::OtherAuthority) } else { Ok(Arc::new(roots)) }
}

fn unix(now: Timestamp) -> Result<UnixTime, VerifyError> {
    let seconds = u64::try_from(now.as_second()).or(Err(VerifyError::NotYet))?;
    Ok(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
}

/// The kind of a failure is read from its type, never from its words.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "rustls knows many more, which say less to a user"
)]
fn untaken(error: &rustls::Error) -> VerifyError {
    let rustls::Error::InvalidCertificate(why) = error else { return VerifyError::Odd };
    match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => VerifyError::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            VerifyError::NotYet
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            VerifyError::OtherAuthority
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            VerifyError::OtherPurpose
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            VerifyError::OtherHost
        }
        _ => VerifyError::Odd,
    }
}

impl Certificate {
    /// The hosts it is good for: names and addresses.
    pub(crate) fn hosts(&self) -> BTreeSet<String> {
        let Ok((_, read)) = X509Certificate::from_der(&self.der) else {
            return BTreeSet::new();
        };
        let Ok(Some(names)) = read.subject_alternative_name() else {
            return BTreeSet::new();
        };
        names.value.general_names.iter().map(host).collect()
    }

    /// The name of whoever shows it, if it has one.
    pub(crate) fn common_name(&self) -> Option<String> {
        let (_, read) = X509Certificate::from_der(&self.der).ok()?;
        let name = read.subject().iter_common_name().next()?;
        name.as_str().ok().map(str::to_owned)
    }

    /// Whether `authority` signed it, and whoever trusts that one takes it from somebody who calls.
    pub(crate) fn is_taken_by(&self, authority: &Self, now: Timestamp) -> bool {
        let (Ok(roots), Ok(time)) = (roots(std::slice::from_ref(authority)), unix(now)) else {
            return false;
        };
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
        verifier.is_ok_and(|it| it.verify_client_cert(&lent(self), &[], time).is_ok())
    }
}

/// A name as it is written. One that is neither a host's nor an address is told apart from all of them.
fn host(name: &GeneralName<'_>) -> String {
    if let GeneralName::DNSName(name) = name {
        return (*name).to_owned();
    }
    if let GeneralName::IPAddress(bytes) = name {
        let four = <[u8; 4]>::try_from(*bytes).map(|it| Ipv4Addr::from(it).to_string());
        let six = <[u8; 16]>::try_from(*bytes).map(|it| Ipv6Addr::from(it).to_string());
        return four.or(six).unwrap_or_else(|_| "an address of odd length".to_owned());
    }
    "neither a name nor an address".to_owned()
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

    fn life() -> Validity {
        Validity { from: at(0), until: at(1000) }
    }

    fn authority() -> CertificateAuthority {
        issue::self_signed_ca("test CA", life()).unwrap()
    }

    fn signed(authority: &CertificateAuthority, purpose: Purpose, hosts: &[&str]) -> CertifiedKey {
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        let wanted = CertificateRequest { name: "someone", hosts, purpose, validity: life() };
        issue::sign(authority, &wanted).unwrap()
    }

    fn serves(shown: &CertifiedKey, authority: &CertificateAuthority, host: &str) -> bool {
        shown.serves(std::slice::from_ref(&authority.certificate), host, at(1)).is_ok()
    }

    #[test]
    fn why_a_certificate_is_not_taken_is_told_apart() {
        let (own, other) = (authority(), authority());
        let (own_root, other_root) = ([own.certificate.clone()], [other.certificate]);
        let both = signed(&own, Purpose::Both, &["*.space.svc"]);
        assert_eq!(both.serves(&own_root, "main-a.space.svc", at(1)), Ok(()));
        assert_eq!(both.calls(&own_root, at(1)), Ok(()));
        let here = "main-a.space.svc";
        for (why, found) in [
            (VerifyError::OtherHost, both.serves(&own_root, "main-a.other.svc", at(1))),
            (VerifyError::OtherHost, both.serves(&own_root, "a.main-a.space.svc", at(1))),
            (VerifyError::OtherAuthority, both.serves(&other_root, here, at(1))),
            (VerifyError::OtherAuthority, both.calls(&other_root, at(1))),
            (VerifyError::OtherAuthority, both.calls(&[], at(1))),
            (VerifyError::Expired, both.calls(&own_root, at(2000))),
            (VerifyError::NotYet, both.serves(&own_root, here, at(-1))),
            (VerifyError::OtherPurpose, signed(&own, Purpose::Server, &[]).calls(&own_root, at(1))),
            (
                VerifyError::OtherPurpose,
                signed(&own, Purpose::Client, &[here]).serves(&own_root, here, at(1)),
            ),
        ] {
            assert_eq!(found, Err(why));
        }
    }

    #[test]
    fn a_certificate_is_good_for_its_purpose_and_for_no_other() {
        let authority = authority();
        let calls = |it: &CertifiedKey| it.certificate.is_taken_by(&authority.certificate, at(1));
        for (purpose, serves_it, calls_it) in [
            (Purpose::Server, true, false),
            (Purpose::Client, false, true),
            (Purpose::Both, true, true),
        ] {
            let shown = signed(&authority, purpose, &["here.svc"]);
            assert_eq!(serves(&shown, &authority, "here.svc"), serves_it, "{purpose:?}");
            assert_eq!(calls(&shown), calls_it, "{purpose:?}");
        }
    }

    #[test]
    fn a_client_needs_a_name_and_no_host() {
        let shown = signed(&authority(), Purpose::Client, &[]);
        assert_eq!(shown.certificate.hosts(), BTreeSet::new());
        let (_, read) = X509Certificate::from_der(&shown.certificate.der).unwrap();
        assert_eq!(read.subject().to_string(), "CN=someone");
    }

    #[test]
    fn a_certificate_is_taken_only_from_its_own_authority_and_in_its_time() {
        let (own, other) = (authority(), authority());
        let shown = signed(&own, Purpose::Client, &[]).certificate;
        assert!(shown.is_taken_by(&own.certificate, at(1)));
        assert!(!shown.is_taken_by(&other.certificate, at(1)));
        assert!(!shown.is_taken_by(&own.certificate, at(2000)));
        assert!(!shown.is_taken_by(&own.certificate, at(-1)));
        assert!(!shown.is_taken_by(&own.certificate, Timestamp::MIN));
    }

    #[test]
    fn hosts_are_read_as_they_were_written() {
        let hosts = ["a.b.svc", "localhost", "127.0.0.1", "::1"];
        let shown = signed(&authority(), Purpose::Both, &hosts);
        assert_eq!(shown.certificate.hosts(), hosts.map(str::to_owned).into());
    }

    #[test]
    fn a_pair_is_read_as_it_was_written_and_only_as_a_pair() {
        let authority = authority();
        let (one, two) =
            (signed(&authority, Purpose::Client, &[]), signed(&authority, Purpose::Client, &[]));
        let (certificate, key) = (one.certificate.pem(), one.key.pem());
        let read = |certificate: &str, key: &str| {
            CertifiedKey::read(certificate.as_bytes(), key.as_bytes())
        };
        assert_eq!(read(&certificate, &key), Ok(one.clone()));
        assert_eq!(read(&certificate, &two.key.pem()), Err(ParseError::KeyOfAnother));
        assert_eq!(read("", &key), Err(ParseError::NotPem));
        assert_eq!(read(&certificate, ""), Err(ParseError::NotAKey));
        assert_eq!(read(&certificate.repeat(2), &key), Err(ParseError::NotAnAuthority));
        let with_chain = format!("{certificate}{}", authority.certificate.pem());
        let chained = read(&with_chain, &key).unwrap();
        assert_eq!(chained.chain, std::slice::from_ref(&authority.certificate));
        assert_eq!(chained.pem(), with_chain);
        assert_eq!(
            read(&"x".repeat(MAX_PEM_BYTES.saturating_add(1)), &key),
            Err(ParseError::TooLong)
        );
        assert!(
            !format!("{one:?}").contains("BEGIN") && format!("{one:?}").contains("PrivateKey(..)")
        );
    }
}
