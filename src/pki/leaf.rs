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
use rustls::RootCertStore;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use super::authority::{Certificate, MOST_PEM, PrivateKey, Unfit};

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signed {
    pub(crate) certificate: Certificate,
    pub(crate) key: PrivateKey,
}

impl Signed {
    /// Reads one certificate and a key that belong together.
    pub(crate) fn read(certificate: &[u8], key: &[u8]) -> Result<Self, Unfit> {
        if certificate.len() > MOST_PEM || key.len() > MOST_PEM {
            return Err(Unfit::TooLong);
        }
        // What the readers say might tell of what they read.
        let mut found = CertificateDer::pem_slice_iter(certificate);
        let der = found.next().ok_or(Unfit::NotPem)?.or(Err(Unfit::NotPem))?;
        if found.next().is_some() {
            return Err(Unfit::NotPem);
        }
        let certificate = Certificate::of(&der)?;
        let key = PrivatePkcs8KeyDer::from_pem_slice(key).or(Err(Unfit::NotAKey))?;
        let key = PrivateKey::new(key.secret_pkcs8_der().to_vec());
        let (_, read) = X509Certificate::from_der(&der).or(Err(Unfit::NotACertificate))?;
        if key.signer()?.subject_public_key_info() != read.public_key().raw {
            return Err(Unfit::KeyOfAnother);
        }
        Ok(Self { certificate, key })
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

    /// Whether `authority` signed it, and whoever trusts that one takes it from somebody who calls.
    pub(crate) fn is_taken_by(&self, authority: &Self, now: Timestamp) -> bool {
        let Ok(seconds) = u64::try_from(now.as_second()) else {
            return false;
        };
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let mut roots = RootCertStore::empty();
        if roots.add(CertificateDer::from(authority.der.as_slice())).is_err() {
            return false;
        }
        let provider = Arc::new(default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
        let shown = CertificateDer::from(self.der.as_slice());
        verifier.is_ok_and(|it| it.verify_client_cert(&shown, &[], now).is_ok())
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
    use crate::pki::authority::Authority;
    use crate::pki::mint::{self, Life, Purpose, Wanted};
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier;
    use rustls::pki_types::ServerName;

    const START: i64 = 1_800_000_000;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(START.saturating_add(second)).unwrap()
    }

    fn life() -> Life {
        Life { from: at(0), until: at(1000) }
    }

    fn authority() -> Authority {
        mint::authority("test CA", life()).unwrap()
    }

    fn signed(authority: &Authority, purpose: Purpose, hosts: &[&str]) -> Signed {
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        let wanted = Wanted { name: "someone", hosts, purpose, life: life() };
        mint::sign(authority, &wanted).unwrap()
    }

    fn serves(shown: &Signed, authority: &Authority, host: &str) -> bool {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(authority.certificate.der.as_slice())).unwrap();
        let provider = Arc::new(default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let name = ServerName::try_from(host.to_owned()).unwrap();
        let time = UnixTime::since_unix_epoch(Duration::from_secs(1_800_000_001));
        let leaf = CertificateDer::from(shown.certificate.der.as_slice());
        verifier.build().unwrap().verify_server_cert(&leaf, &[], &name, &[], time).is_ok()
    }

    #[test]
    fn a_certificate_is_good_for_its_purpose_and_for_no_other() {
        let authority = authority();
        let calls = |it: &Signed| it.certificate.is_taken_by(&authority.certificate, at(1));
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
        let read =
            |certificate: &str, key: &str| Signed::read(certificate.as_bytes(), key.as_bytes());
        assert_eq!(read(&certificate, &key), Ok(one.clone()));
        assert_eq!(read(&certificate, &two.key.pem()), Err(Unfit::KeyOfAnother));
        assert_eq!(read("", &key), Err(Unfit::NotPem));
        assert_eq!(read(&certificate, ""), Err(Unfit::NotAKey));
        assert_eq!(read(&certificate.repeat(2), &key), Err(Unfit::NotPem));
        assert_eq!(read(&"x".repeat(MOST_PEM.saturating_add(1)), &key), Err(Unfit::TooLong));
        assert!(
            !format!("{one:?}").contains("BEGIN") && format!("{one:?}").contains("PrivateKey(..)")
        );
    }
}
