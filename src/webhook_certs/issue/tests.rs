//! Issued certificates, checked by a real verifier as the API server does.
#![expect(clippy::arithmetic_side_effects, reason = "the numbers of a test are small")]

use super::*;
use crate::pki::ca::bundle;
use crate::webhook_certs::ca_set::CaSet;
use crate::webhook_certs::lifetimes::earlier;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{ServerName, UnixTime};
use std::sync::Arc;
use std::time::Duration;
use x509_parser::prelude::{FromDer, X509Certificate};

const HOST: &str = "quorate-webhook.space.svc";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn lifetimes() -> Lifetimes {
    Lifetimes::default()
}

/// Whether a client with this bundle accepts the certificate for `host` at `time`.
fn verifies(bundle: &[u8], leaf: &CertifiedKey, host: &str, time: Timestamp) -> bool {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
    let name = ServerName::try_from(host.to_owned()).unwrap();
    let time =
        UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(time.as_second()).unwrap()));
    let leaf = leaf.end_entity_cert().unwrap();
    verifier.build().unwrap().verify_server_cert(leaf, &[], &name, &[], time).is_ok()
}

#[test]
fn leaf_is_valid_for_the_names_of_the_service_and_for_no_other() {
    let ca = new_ca(&lifetimes(), at(0)).unwrap();
    let (_, key) = new_leaf(&lifetimes(), &ca, "space", at(0)).unwrap();
    let bundle = bundle([&ca.certificate]);
    for host in [HOST, "quorate-webhook.space.svc.cluster.local", "quorate-webhook.space"] {
        assert!(verifies(&bundle, &key, host, at(1)), "{host}");
    }
    for host in ["quorate-webhook.other.svc", "quorate-webhook", "localhost"] {
        assert!(!verifies(&bundle, &key, host, at(1)), "{host}");
    }
}

#[test]
fn leaf_is_valid_from_shortly_before_its_issue_until_it_expires() {
    let ca = new_ca(&lifetimes(), at(0)).unwrap();
    let (leaf, key) = new_leaf(&lifetimes(), &ca, "space", at(0)).unwrap();
    let bundle = bundle([&ca.certificate]);
    assert_eq!(leaf.from, earlier(at(0), Duration::from_mins(5)));
    assert_eq!(leaf.until, later(at(0), lifetimes().leaf));
    let second = Duration::from_secs(1);
    for (time, valid) in [
        (earlier(leaf.from, second), false),
        (leaf.from, true),
        (earlier(leaf.until, second), true),
        (later(leaf.until, second), false),
    ] {
        assert_eq!(verifies(&bundle, &key, HOST, time), valid, "{time}");
    }
}

#[test]
fn leaf_does_not_outlive_its_ca() {
    let ca = new_ca(&lifetimes(), at(0)).unwrap();
    let late = earlier(ca.certificate.until, Duration::from_mins(1));
    let (leaf, _) = new_leaf(&lifetimes(), &ca, "space", late).unwrap();
    assert_eq!(leaf.until, ca.certificate.until);
    assert!(leaf.from >= ca.certificate.from);
}

#[test]
fn leaf_verifies_with_the_bundles_of_a_rotation_that_contain_its_ca() {
    let [old, new] = [0, 10].map(|second| new_ca(&lifetimes(), at(second)).unwrap());
    let (_, of_old) = new_leaf(&lifetimes(), &old, "space", at(20)).unwrap();
    let (_, of_new) = new_leaf(&lifetimes(), &new, "space", at(20)).unwrap();
    let before = CaSet::new(old, &[]);
    let staged = before.clone().with_next(new);
    let rotated = staged.clone().activate_next(at(20));
    let after = rotated.clone().without_previous();
    let trusts = |ca_set: &CaSet, leaf| verifies(&ca_set.bundle(), leaf, HOST, at(30));
    assert!(trusts(&before, &of_old) && !trusts(&before, &of_new));
    // Both CAs have the same common name, so a verifier must compare more than that.
    for ca_set in [&staged, &rotated] {
        assert!(trusts(ca_set, &of_old) && trusts(ca_set, &of_new));
    }
    assert!(!trusts(&after, &of_old) && trusts(&after, &of_new));
}

fn common_name<'a>(parsed: &'a X509Certificate<'_>) -> Option<&'a str> {
    parsed.subject().iter_common_name().next()?.as_str().ok()
}

#[test]
fn ca_may_sign_certificates_and_nothing_else() {
    let own = new_ca(&lifetimes(), at(0)).unwrap();
    let (_, parsed) = X509Certificate::from_der(&own.certificate.der).unwrap();
    let constraints = parsed.basic_constraints().unwrap().unwrap();
    assert!(constraints.value.ca && constraints.critical);
    assert_eq!(constraints.value.path_len_constraint, Some(0));
    let usage = parsed.key_usage().unwrap().unwrap().value;
    assert!(usage.key_cert_sign() && !usage.digital_signature() && !usage.crl_sign());
    assert_eq!(common_name(&parsed), Some("quorate webhook CA"));
    let other = new_ca(&lifetimes(), at(0)).unwrap().certificate;
    assert_ne!(other.subject(), own.certificate.subject(), "the subjects of two CAs differ");
    assert!(parsed.verify_signature(None).is_ok());
}

#[test]
fn leaf_has_server_auth_and_no_other_usage() {
    let ca = new_ca(&lifetimes(), at(0)).unwrap();
    let (_, key) = new_leaf(&lifetimes(), &ca, "space", at(0)).unwrap();
    let (_, parsed) = X509Certificate::from_der(key.end_entity_cert().unwrap()).unwrap();
    let usage = parsed.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.server_auth && !usage.client_auth && !usage.any && !usage.code_signing);
    assert!(!parsed.is_ca());
}

#[test]
fn two_cas_differ_in_certificate_and_serial_number() {
    let [one, other] = [0, 0].map(|second| new_ca(&lifetimes(), at(second)).unwrap());
    assert_ne!(one.certificate, other.certificate);
    let serial = |ca: &CertificateAuthority| {
        let (_, parsed) = X509Certificate::from_der(&ca.certificate.der).unwrap();
        parsed.raw_serial().to_vec()
    };
    assert_ne!(serial(&one), serial(&other));
    assert_eq!(serial(&one).len(), 16);
}

#[test]
fn longest_namespace_name_has_a_valid_leaf() {
    let ca = new_ca(&lifetimes(), at(0)).unwrap();
    let namespace = "n".repeat(63);
    let (_, key) = new_leaf(&lifetimes(), &ca, &namespace, at(0)).unwrap();
    let host = format!("quorate-webhook.{namespace}.svc");
    assert!(verifies(&bundle([&ca.certificate]), &key, &host, at(1)));
}

#[test]
fn clock_at_the_epoch_or_far_ahead_gets_valid_certificates() {
    for wall in [Timestamp::UNIX_EPOCH, later(at(0), Duration::from_hours(24 * 366 * 100))] {
        let ca = new_ca(&lifetimes(), wall).unwrap();
        let (_, key) = new_leaf(&lifetimes(), &ca, "space", wall).unwrap();
        assert!(verifies(&bundle([&ca.certificate]), &key, HOST, wall), "{wall}");
    }
    // Beyond the range of dates it may return an error, but not panic.
    new_ca(&lifetimes(), Timestamp::MAX).map(|_| ()).unwrap_or_default();
}
