//! Real certificates, judged by a real verifier: what an API server would say.
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

fn times() -> Lifetimes {
    Lifetimes::default()
}

/// Whether someone who trusts this bundle takes the certificate for `host` at `time`.
fn verifies(bundle: &[u8], shown: &CertifiedKey, host: &str, time: Timestamp) -> bool {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
    let name = ServerName::try_from(host.to_owned()).unwrap();
    let time =
        UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(time.as_second()).unwrap()));
    let leaf = shown.end_entity_cert().unwrap();
    verifier.build().unwrap().verify_server_cert(leaf, &[], &name, &[], time).is_ok()
}

#[test]
fn a_certificate_is_good_for_the_names_of_the_service_and_for_no_other() {
    let authority = authority(&times(), at(0)).unwrap();
    let (_, shown) = leaf(&times(), &authority, "space", at(0)).unwrap();
    let bundle = bundle([&authority.certificate]);
    for host in [HOST, "quorate-webhook.space.svc.cluster.local", "quorate-webhook.space"] {
        assert!(verifies(&bundle, &shown, host, at(1)), "{host}");
    }
    for host in ["quorate-webhook.other.svc", "quorate-webhook", "localhost"] {
        assert!(!verifies(&bundle, &shown, host, at(1)), "{host}");
    }
}

#[test]
fn a_certificate_is_good_from_a_little_before_it_was_made_until_it_ends() {
    let authority = authority(&times(), at(0)).unwrap();
    let (log_state, shown) = leaf(&times(), &authority, "space", at(0)).unwrap();
    let bundle = bundle([&authority.certificate]);
    assert_eq!(log_state.from, earlier(at(0), Duration::from_mins(5)));
    assert_eq!(log_state.until, later(at(0), times().leaf));
    let second = Duration::from_secs(1);
    for (time, good) in [
        (earlier(log_state.from, second), false),
        (log_state.from, true),
        (earlier(log_state.until, second), true),
        (later(log_state.until, second), false),
    ] {
        assert_eq!(verifies(&bundle, &shown, HOST, time), good, "{time}");
    }
}

#[test]
fn a_certificate_does_not_outlive_its_authority() {
    let authority = authority(&times(), at(0)).unwrap();
    let late = earlier(authority.certificate.until, Duration::from_mins(1));
    let (log_state, _) = leaf(&times(), &authority, "space", late).unwrap();
    assert_eq!(log_state.until, authority.certificate.until);
    assert!(log_state.from >= authority.certificate.from);
}

#[test]
fn a_certificate_is_good_with_every_bundle_of_a_rotation_and_with_none_of_another_authority() {
    let [old, new] = [0, 10].map(|second| authority(&times(), at(second)).unwrap());
    let (_, of_old) = leaf(&times(), &old, "space", at(20)).unwrap();
    let (_, of_new) = leaf(&times(), &new, "space", at(20)).unwrap();
    let before = CaSet::new(old, &[]);
    let published = before.clone().with_next(new);
    let promoted = published.clone().promote(at(20));
    let after = promoted.clone().without_previous();
    let good = |ca_set: &CaSet, shown| verifies(&ca_set.bundle(), shown, HOST, at(30));
    assert!(good(&before, &of_old) && !good(&before, &of_new));
    // Both have the same name, so a verifier must look at more than that.
    for ca_set in [&published, &promoted] {
        assert!(good(ca_set, &of_old) && good(ca_set, &of_new));
    }
    assert!(!good(&after, &of_old) && good(&after, &of_new));
}

fn common_name<'a>(read: &'a X509Certificate<'_>) -> Option<&'a str> {
    read.subject().iter_common_name().next()?.as_str().ok()
}

#[test]
fn an_authority_may_sign_certificates_and_nothing_else() {
    let made = authority(&times(), at(0)).unwrap();
    let (_, read) = X509Certificate::from_der(&made.certificate.der).unwrap();
    let constraints = read.basic_constraints().unwrap().unwrap();
    assert!(constraints.value.ca && constraints.critical);
    assert_eq!(constraints.value.path_len_constraint, Some(0));
    let usage = read.key_usage().unwrap().unwrap().value;
    assert!(usage.key_cert_sign() && !usage.digital_signature() && !usage.crl_sign());
    assert_eq!(common_name(&read), Some("quorate webhook CA"));
    let other = authority(&times(), at(0)).unwrap().certificate;
    assert_ne!(other.subject(), made.certificate.subject(), "two can be log_state apart");
    assert!(read.verify_signature(None).is_ok());
}

#[test]
fn a_certificate_may_serve_and_nothing_else() {
    let authority = authority(&times(), at(0)).unwrap();
    let (_, shown) = leaf(&times(), &authority, "space", at(0)).unwrap();
    let (_, read) = X509Certificate::from_der(shown.end_entity_cert().unwrap()).unwrap();
    let usage = read.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.server_auth && !usage.client_auth && !usage.any && !usage.code_signing);
    assert!(!read.is_ca());
}

#[test]
fn no_two_authorities_are_alike() {
    let [one, other] = [0, 0].map(|second| authority(&times(), at(second)).unwrap());
    assert_ne!(one.certificate, other.certificate);
    let serial = |authority: &CertificateAuthority| {
        let (_, read) = X509Certificate::from_der(&authority.certificate.der).unwrap();
        read.raw_serial().to_vec()
    };
    assert_ne!(serial(&one), serial(&other));
    assert_eq!(serial(&one).len(), 16);
}

#[test]
fn a_namespace_of_any_length_has_its_certificate() {
    let authority = authority(&times(), at(0)).unwrap();
    let space = "n".repeat(63);
    let (_, shown) = leaf(&times(), &authority, &space, at(0)).unwrap();
    let host = format!("quorate-webhook.{space}.svc");
    assert!(verifies(&bundle([&authority.certificate]), &shown, &host, at(1)));
}

#[test]
fn a_clock_that_begins_at_zero_or_is_far_ahead_gets_its_certificates_too() {
    for wall in [Timestamp::UNIX_EPOCH, later(at(0), Duration::from_hours(24 * 366 * 100))] {
        let authority = authority(&times(), wall).unwrap();
        let (_, shown) = leaf(&times(), &authority, "space", wall).unwrap();
        assert!(verifies(&bundle([&authority.certificate]), &shown, HOST, wall), "{wall}");
    }
    // Beyond all dates it may fail, in words.
    authority(&times(), Timestamp::MAX).map(|_| ()).unwrap_or_default();
}
