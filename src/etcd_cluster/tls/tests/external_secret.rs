//! Tests of external Secrets: valid ones are parsed, and each problem has its message.

use super::super::external_secret::{CertificateProblem, ExternalCertificate, Requirements};
use super::super::trust_bundle::Side;
use super::*;
use crate::pki::issue::{CertificateRequest, Purpose, Validity, self_signed_ca, sign};
use crate::pki::leaf::{CertifiedKey, VerifyError};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair,
};

const YEAR: i64 = 365 * 24 * 60 * 60;

/// An external CA, and the certificates that it issued for a cluster.
#[derive(Clone)]
pub(super) struct ExternalCa {
    pub(super) ca: CertificateAuthority,
    pub(super) key_pair: CertifiedKey,
    pub(super) application: CertifiedKey,
}

fn validity() -> Validity {
    Validity { from: at(-60), until: at(10 * YEAR) }
}

fn issue(
    ca: &CertificateAuthority,
    hosts: &[&str],
    purpose: Purpose,
    validity: Validity,
) -> CertifiedKey {
    let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
    sign(ca, &CertificateRequest { name: "external", hosts, purpose, validity }).unwrap()
}

pub(super) fn external_ca() -> ExternalCa {
    let ca = self_signed_ca("external", validity()).unwrap();
    ExternalCa {
        key_pair: issue(&ca, &["*.space.svc"], Purpose::Both, validity()),
        application: issue(&ca, &[], Purpose::Client, validity()),
        ca,
    }
}

fn secret(external: &ExternalCa) -> Secret {
    let ExternalCa { ca, key_pair, application } = external;
    let entries = [
        ("ca.crt", ca.certificate.pem()),
        ("tls.crt", key_pair.pem()),
        ("tls.key", key_pair.key.pem()),
        ("client.crt", application.pem()),
        ("client.key", application.key.pem()),
    ];
    let data = entries.map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes())));
    let mut secret = Secret { data: Some(data.into()), ..Secret::default() };
    secret.metadata.name = Some("mine".to_owned());
    secret
}

fn read(
    secret: &Secret,
    side: Side,
    now: Timestamp,
) -> Result<(ExternalCertificate, Option<CertificateProblem>), CertificateProblem> {
    let spec = spec();
    ExternalCertificate::read(secret, &Requirements::for_all_members(&blueprint(&spec), side), now)
}

#[test]
fn secret_with_a_wildcard_san_is_valid_for_both_sides() {
    let external = external_ca();
    for side in Side::BOTH {
        let (parsed, problem) = read(&secret(&external), side, at(0)).unwrap();
        assert_eq!(problem, None);
        assert_eq!(parsed.key_pair, external.key_pair);
        assert_eq!(parsed.ca, std::slice::from_ref(&external.ca.certificate));
        assert_eq!(parsed.application, Some(external.application.clone()));
    }
    let without_client =
        with_value(&with_value(&secret(&external), "client.crt", None), "client.key", None);
    let (parsed, problem) = read(&without_client, Side::Client, at(0)).unwrap();
    assert_eq!((parsed.application, problem), (None, None));
}

/// The Secret has this problem at this time, and no value is quoted.
fn assert_problem(secret: &Secret, now: i64, expected: &str) {
    let problem = read(secret, Side::Client, at(now)).unwrap_err();
    let text = problem.to_string();
    assert!(text.starts_with("Secret mine: "), "{text}");
    assert!(text.contains(expected), "{text} does not contain {expected}");
    assert!(!format!("{text} {problem:?}").contains("hunter2"), "{problem:?}");
    assert!(problem.is_fatal() && problem.needs_user());
}

#[test]
fn each_parse_problem_has_its_message() {
    let (external, other) = (external_ca(), external_ca());
    let valid = secret(&external);
    for key in ["tls.crt", "tls.key", "ca.crt", "client.key"] {
        let expected = format!("{key} cannot be used: missing");
        assert_problem(&with_value(&valid, key, None), 0, &expected);
    }
    let many: String = (0..4).map(|_| external_ca().ca.certificate.pem()).collect();
    let mismatch = "does not match the certificate";
    for (key, value, expected) in [
        ("tls.key", "hunter2", "tls.key cannot be used: not a supported private key"),
        ("tls.key", &other.key_pair.key.pem(), mismatch),
        ("client.crt", &external.key_pair.pem(), mismatch),
        ("ca.crt", &external.key_pair.pem(), "ca.crt cannot be used"),
        ("ca.crt", &other.ca.certificate.pem(), "no CA of the trust bundle signed the certificate"),
        ("ca.crt", &many, "more than 3 CAs"),
    ] {
        assert_problem(&with_value(&valid, key, Some(value.as_bytes())), 0, expected);
    }
}

#[test]
fn each_verification_problem_has_its_message() {
    let external = external_ca();
    let valid = secret(&external);
    let with = |key_pair: &CertifiedKey| {
        let secret = with_value(&valid, "tls.crt", Some(key_pair.pem().as_bytes()));
        with_value(&secret, "tls.key", Some(key_pair.key.pem().as_bytes()))
    };
    let short = Validity { from: at(-60), until: at(60) };
    let expired = issue(&external.ca, &["*.space.svc"], Purpose::Both, short);
    assert_problem(&with(&expired), 100, "the certificate has expired");
    assert_problem(&with(&expired), -100, "the certificate is not valid yet");
    let usages = "add the usages `server auth` and `client auth`";
    for (host, purpose, expected) in [
        (
            "*.space.svc",
            Purpose::Server,
            "is not valid for a client: the certificate lacks the required extended key usage",
        ),
        ("*.space.svc", Purpose::Client, usages),
        ("main-a.space.svc", Purpose::Both, "add the SAN *.space.svc"),
    ] {
        let key_pair = issue(&external.ca, &[host], purpose, validity());
        assert_problem(&with(&key_pair), 0, expected);
    }
}

#[test]
fn expiring_certificate_is_used_and_reported() {
    let external = external_ca();
    let (last, expiring) = (10 * YEAR, 10 * YEAR - 29 * 24 * 60 * 60);
    assert_eq!(read(&secret(&external), Side::Client, at(expiring - YEAR)).unwrap().1, None);
    let (_, problem) = read(&secret(&external), Side::Client, at(expiring)).unwrap();
    let problem = problem.unwrap();
    assert_eq!(
        problem,
        CertificateProblem::Expiring { secret: "mine".to_owned(), key: "tls.crt", until: at(last) }
    );
    assert!(!problem.is_fatal() && !problem.needs_user());
}

/// A root CA, a leaf certificate with its intermediate CA, and the key of the leaf, as PEM.
fn chained() -> (String, String, String) {
    let params = |hosts: &[&str]| {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        params.distinguished_name = DistinguishedName::new();
        params
    };
    let (root_key, intermediate_key, key) =
        (KeyPair::generate().unwrap(), KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut root = params(&[]);
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    root.distinguished_name.push(DnType::CommonName, "root");
    let mut intermediate = params(&[]);
    intermediate.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    intermediate.distinguished_name.push(DnType::CommonName, "intermediate");
    let mut leaf = params(&["*.space.svc"]);
    leaf.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let root_pem = root.self_signed(&root_key).unwrap().pem();
    let root_issuer = Issuer::new(root, root_key);
    let intermediate_pem = intermediate.signed_by(&intermediate_key, &root_issuer).unwrap().pem();
    let intermediate_issuer = Issuer::new(intermediate, intermediate_key);
    let leaf_pem = leaf.signed_by(&key, &intermediate_issuer).unwrap().pem();
    (root_pem, format!("{leaf_pem}{intermediate_pem}"), key.serialize_pem())
}

#[test]
fn intermediate_ca_is_parsed_from_the_chain() {
    let (root_pem, chain_pem, key) = chained();
    let valid = secret(&external_ca());
    let mut secret = with_value(&with_value(&valid, "client.crt", None), "client.key", None);
    for (name, value) in [("ca.crt", &root_pem), ("tls.crt", &chain_pem), ("tls.key", &key)] {
        secret = with_value(&secret, name, Some(value.as_bytes()));
    }
    let (parsed, _) = read(&secret, Side::Peer, at(0)).unwrap();
    assert_eq!((parsed.key_pair.chain.len(), parsed.ca.len()), (1, 1));
    // Without the intermediate CA the certificate does not chain to the root.
    let leaf_pem = parsed.key_pair.certificate.pem();
    let problem =
        read(&with_value(&secret, "tls.crt", Some(leaf_pem.as_bytes())), Side::Peer, at(0));
    let Err(CertificateProblem::ClientVerify { error, .. }) = problem else {
        panic!("{problem:?}")
    };
    assert_eq!(error, VerifyError::UnknownIssuer);
}
