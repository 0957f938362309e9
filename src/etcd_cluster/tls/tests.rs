//! Tests with real certificates and a real TLS verifier.

mod ca_rotation;
mod ca_rotation_model;
mod cert_manager;
mod external_secret;
mod renewal;
mod source_model;
mod trust_change;

use super::ca_pair::CaPair;
use super::ca_set::CaSet;
use super::client_secret::{ClientSecret, fields};
use super::issue::{self, Issuer};
use super::lifetimes::Lifetimes;
use super::member_certs::{LeafSource, MemberCertPlan, MemberCertificates};
use super::secret_keys::InvalidSecret;
use crate::api::etcd_cluster::validated::EtcdCluster;
use crate::etcd_cluster::render::tests::{blueprint, cluster, name};
use crate::etcd_cluster::state::MemberName;
use crate::pki::ca::{Certificate, CertificateAuthority, ParseError};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use x509_parser::prelude::{FromDer, X509Certificate};

const START: i64 = 1_800_000_000;

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(START.saturating_add(second)).unwrap()
}

pub(super) fn spec() -> EtcdCluster {
    cluster(json!({}))
}

pub(super) fn ca_pair(now: Timestamp) -> CaPair {
    issue::ca_pair(&blueprint(&spec()), Lifetimes::default(), now).unwrap()
}

pub(super) fn ca_set() -> CaSet {
    CaSet::new(ca_pair(at(0)), None)
}

pub(super) fn issuer(ca_set: &CaSet, now: Timestamp) -> Issuer<'_> {
    Issuer { ca_set, lifetimes: Lifetimes::default(), now }
}

/// Certificates of a member, issued by the managed CAs.
pub(super) fn member(ca_set: &CaSet, name: &MemberName, now: Timestamp) -> MemberCertificates {
    let plan = MemberCertPlan {
        server: LeafSource::Issue,
        peer: LeafSource::Issue,
        client_ca: ca_set.client_bundle(),
        peer_ca: ca_set.peer_bundle(),
    };
    issuer(ca_set, now).member(&blueprint(&spec()), name, &plan).unwrap()
}

/// The client Secret, with a certificate issued by the managed CA.
pub(super) fn client_secret(
    ca_set: &CaSet,
    members: &[MemberName],
    now: Timestamp,
) -> ClientSecret {
    let spec = spec();
    let blueprint = blueprint(&spec);
    let key_pair = Some(issuer(ca_set, now).application(&blueprint).unwrap());
    ClientSecret { fields: fields(&blueprint, members), key_pair, ca: ca_set.client_bundle() }
}

fn certs(ca_set: &CaSet) -> MemberCertificates {
    member(ca_set, &name("main-a"), at(0))
}

/// Whether a client that trusts this CA accepts the certificate of a server dialed as `host`.
fn serves(presented: &Certificate, ca: &CertificateAuthority, host: &str) -> bool {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(ca.certificate.der.as_slice())).unwrap();
    let provider = Arc::new(default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
    let name = ServerName::try_from(host.to_owned()).unwrap();
    let time = UnixTime::since_unix_epoch(Duration::from_secs(1_800_000_001));
    let leaf = CertificateDer::from(presented.der.as_slice());
    verifier.build().unwrap().verify_server_cert(&leaf, &[], &name, &[], time).is_ok()
}

fn with_value(secret: &Secret, key: &str, value: Option<&[u8]>) -> Secret {
    let mut secret = secret.clone();
    let data = secret.data.as_mut().unwrap();
    match value {
        Some(value) => data.insert(key.to_owned(), ByteString(value.to_vec())),
        None => data.remove(key),
    };
    secret
}

#[test]
fn server_certificate_covers_every_host_of_the_member() {
    let ca_set = ca_set();
    let server = certs(&ca_set).server.certificate;
    for host in [
        "main-a.space.svc",
        "main-a.space",
        "main-a",
        "main-client",
        "main-client.space",
        "main-client.space.svc",
        "localhost",
        "127.0.0.1",
        "::1",
    ] {
        assert!(serves(&server, &ca_set.current.client, host), "{host}");
    }
    for host in ["main-b.space.svc", "main-client.other.svc", "10.0.0.1"] {
        assert!(!serves(&server, &ca_set.current.client, host), "{host}");
    }
}

#[test]
fn peer_certificate_covers_exactly_the_host_of_the_member() {
    let ca_set = ca_set();
    let peer = certs(&ca_set).peer.certificate;
    assert!(serves(&peer, &ca_set.current.peer, "main-a.space.svc"));
    assert!(peer.is_signed_by(&ca_set.current.peer.certificate, at(1)), "also as a client");
    assert_eq!(peer.hosts(), ["main-a.space.svc".to_owned()].into());
}

#[test]
fn client_certificates_are_not_accepted_as_peer_certificates() {
    let ca_set = ca_set();
    let issuer = issuer(&ca_set, at(0));
    let client = issuer.application(&blueprint(&spec())).unwrap().certificate;
    let operator = issuer.operator().unwrap().certificate;
    for presented in [client, operator, certs(&ca_set).server.certificate] {
        assert!(presented.is_signed_by(&ca_set.current.client.certificate, at(1)));
        assert!(!presented.is_signed_by(&ca_set.current.peer.certificate, at(1)));
    }
    let peer = certs(&ca_set).peer.certificate;
    assert!(!peer.is_signed_by(&ca_set.current.client.certificate, at(1)));
}

#[test]
fn client_certificate_has_a_common_name_and_is_not_valid_for_a_server() {
    let ca_set = ca_set();
    let issuer = issuer(&ca_set, at(0));
    let subject = |certificate: &Certificate| {
        X509Certificate::from_der(&certificate.der).unwrap().1.subject().to_string()
    };
    let client = issuer.application(&blueprint(&spec())).unwrap().certificate;
    assert_eq!(subject(&client), "CN=main-client");
    assert!(client.hosts().is_empty());
    assert!(!serves(&client, &ca_set.current.client, "localhost"));
    assert_eq!(subject(&issuer.operator().unwrap().certificate), "CN=quorate");
}

#[test]
fn written_secrets_are_parsed_unchanged() {
    let (spec, ca_set) = (spec(), ca_set());
    let blueprint = blueprint(&spec);
    let secret = ca_set.secret(&blueprint);
    assert_eq!(secret.metadata.name.as_deref(), Some("main-ca"));
    assert_eq!(CaSet::read(&secret), Ok(ca_set.clone()));

    let certs = certs(&ca_set);
    let secret = certs.secret(&blueprint, &name("main-a"), "uid-of-main-a");
    assert_eq!(secret.metadata.name.as_deref(), Some("main-a-tls"));
    assert_eq!(secret.metadata.owner_references.as_ref().unwrap()[0].kind, "EtcdMember");
    assert_eq!(MemberCertificates::read(&secret), Ok(certs));

    let client_secret = client_secret(&ca_set, &[name("main-b"), name("main-a")], at(0));
    let secret = client_secret.secret(&blueprint);
    assert_eq!(ClientSecret::read(&secret), (client_secret, None));
}

#[test]
fn client_secret_has_all_fields_for_a_connection() {
    let (spec, ca_set) = (spec(), ca_set());
    let blueprint = blueprint(&spec);
    let members = [name("main-b"), name("main-a")];
    let secret = client_secret(&ca_set, &members, at(0)).secret(&blueprint);
    assert_eq!(secret.type_.as_deref(), Some("servicebinding.io/etcd"));
    let data = secret.data.unwrap();
    let value_of = |key: &str| str::from_utf8(&data[key].0).unwrap().to_owned();
    for (key, value) in [
        ("type", "etcd"),
        ("provider", "quorate"),
        ("host", "main-client.space.svc"),
        ("port", "2379"),
        ("uri", "https://main-client.space.svc:2379"),
        ("endpoints", "https://main-a.space.svc:2379,https://main-b.space.svc:2379"),
    ] {
        assert_eq!(value_of(key), value, "{key}");
    }
    assert_eq!(value_of("ca.crt"), ca_set.current.client.certificate.pem());
    assert!(value_of("tls.key").starts_with("-----BEGIN PRIVATE KEY-----"));
    assert_eq!(data.len(), 9);
}

#[test]
fn invalid_values_are_named_and_never_quoted() {
    let ca_set = ca_set();
    let secret = ca_set.secret(&blueprint(&spec()));
    for (key, value, error) in [
        ("client.crt", Some(b"hunter2".as_slice()), ParseError::NotPem),
        ("client.key", Some(b"hunter2"), ParseError::NotPem),
        ("peer.crt", None, ParseError::Missing),
        ("peer.key", Some(ca_set.current.client.key.pem().as_bytes()), ParseError::KeyMismatch),
    ] {
        let invalid = CaSet::read(&with_value(&secret, key, value)).unwrap_err();
        assert_eq!((invalid.key, invalid.error), (key, error));
        let text = format!("{invalid} {invalid:?}");
        assert!(
            invalid.to_string().starts_with(&format!("Secret main-ca: {key} cannot be used: "))
        );
        assert!(!text.contains("hunter2"), "{text}");
    }
    let certs = certs(&ca_set);
    let secret = certs.secret(&blueprint(&spec()), &name("main-a"), "uid");
    for key in ["server.crt", "server.key", "peer.crt", "peer.key", "client-ca.crt", "peer-ca.crt"]
    {
        let InvalidSecret { secret: secret_name, key: invalid_key, error: _ } =
            MemberCertificates::read(&with_value(&secret, key, Some(b"hunter2"))).unwrap_err();
        assert_eq!((secret_name.as_str(), invalid_key), ("main-a-tls", key));
    }
}

#[test]
fn private_keys_are_not_in_debug_output() {
    let ca_set = ca_set();
    let identity = issuer(&ca_set, at(0)).operator().unwrap();
    let output = format!("{ca_set:?} {:?} {identity:?}", certs(&ca_set));
    let bytes = format!("{:?}", ca_set.current.client.key.pkcs8());
    assert!(!output.contains(&bytes) && !output.contains("BEGIN"), "{output}");
    assert_eq!(output.matches("PrivateKey(..)").count(), 5);
}
