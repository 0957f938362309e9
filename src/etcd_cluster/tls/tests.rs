//! Real certificates, judged by a real verifier; and when they are written again.

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

pub(super) fn authorities(now: Timestamp) -> CaPair {
    issue::ca_pair(&blueprint(&spec()), Lifetimes::default(), now).unwrap()
}

pub(super) fn ring() -> CaSet {
    CaSet::first(authorities(at(0)), None)
}

pub(super) fn signing(ring: &CaSet, now: Timestamp) -> Issuer<'_> {
    Issuer { ring, lifetimes: Lifetimes::default(), now }
}

/// What our own authorities sign for a member.
pub(super) fn member(ring: &CaSet, name: &MemberName, now: Timestamp) -> MemberCertificates {
    let draft = MemberCertPlan {
        server: LeafSource::Issue,
        peer: LeafSource::Issue,
        client_ca: ring.for_clients(),
        peer_ca: ring.for_peers(),
    };
    signing(ring, now).member(&blueprint(&spec()), name, &draft).unwrap()
}

/// What applications are told, with what our own authorities sign.
pub(super) fn binding(ring: &CaSet, members: &[MemberName], now: Timestamp) -> ClientSecret {
    let spec = spec();
    let blueprint = blueprint(&spec);
    let pair = Some(signing(ring, now).application(&blueprint).unwrap());
    ClientSecret { words: fields(&blueprint, members), pair, ca: ring.for_clients() }
}

fn leaves(ring: &CaSet) -> MemberCertificates {
    member(ring, &name("main-a"), at(0))
}

/// Whether somebody who trusts this authority takes the certificate of whoever they called as `host`.
fn serves(shown: &Certificate, authority: &CertificateAuthority, host: &str) -> bool {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(authority.certificate.der.as_slice())).unwrap();
    let provider = Arc::new(default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
    let name = ServerName::try_from(host.to_owned()).unwrap();
    let time = UnixTime::since_unix_epoch(Duration::from_secs(1_800_000_001));
    let leaf = CertificateDer::from(shown.der.as_slice());
    verifier.build().unwrap().verify_server_cert(&leaf, &[], &name, &[], time).is_ok()
}

fn spoiled(secret: &Secret, key: &str, value: Option<&[u8]>) -> Secret {
    let mut secret = secret.clone();
    let data = secret.data.as_mut().unwrap();
    match value {
        Some(value) => data.insert(key.to_owned(), ByteString(value.to_vec())),
        None => data.remove(key),
    };
    secret
}

#[test]
fn clients_find_every_name_of_a_member_in_its_certificate() {
    let ring = ring();
    let server = leaves(&ring).server.certificate;
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
        assert!(serves(&server, &ring.now.client, host), "{host}");
    }
    for host in ["main-b.space.svc", "main-client.other.svc", "10.0.0.1"] {
        assert!(!serves(&server, &ring.now.client, host), "{host}");
    }
}

#[test]
fn a_member_shows_others_its_own_host_and_no_other() {
    let ring = ring();
    let peer = leaves(&ring).peer.certificate;
    assert!(serves(&peer, &ring.now.peer, "main-a.space.svc"));
    assert!(peer.is_signed_by(&ring.now.peer.certificate, at(1)), "it calls, too");
    assert_eq!(peer.hosts(), ["main-a.space.svc".to_owned()].into());
}

#[test]
fn nobody_who_may_be_a_client_can_be_a_member() {
    let ring = ring();
    let signing = signing(&ring, at(0));
    let client = signing.application(&blueprint(&spec())).unwrap().certificate;
    let operator = signing.operator().unwrap().certificate;
    for shown in [client, operator, leaves(&ring).server.certificate] {
        assert!(shown.is_signed_by(&ring.now.client.certificate, at(1)));
        assert!(!shown.is_signed_by(&ring.now.peer.certificate, at(1)));
    }
    let peer = leaves(&ring).peer.certificate;
    assert!(!peer.is_signed_by(&ring.now.client.certificate, at(1)));
}

#[test]
fn a_client_is_known_by_its_name_and_serves_nobody() {
    let ring = ring();
    let signing = signing(&ring, at(0));
    let subject = |certificate: &Certificate| {
        X509Certificate::from_der(&certificate.der).unwrap().1.subject().to_string()
    };
    let client = signing.application(&blueprint(&spec())).unwrap().certificate;
    assert_eq!(subject(&client), "CN=main-client");
    assert!(client.hosts().is_empty());
    assert!(!serves(&client, &ring.now.client, "localhost"));
    assert_eq!(subject(&signing.operator().unwrap().certificate), "CN=quorate");
}

#[test]
fn what_is_written_is_read_again() {
    let (spec, ring) = (spec(), ring());
    let blueprint = blueprint(&spec);
    let secret = ring.secret(&blueprint);
    assert_eq!(secret.metadata.name.as_deref(), Some("main-ca"));
    assert_eq!(CaSet::read(&secret), Ok(ring.clone()));

    let leaves = leaves(&ring);
    let secret = leaves.secret(&blueprint, &name("main-a"), "uid-of-main-a");
    assert_eq!(secret.metadata.name.as_deref(), Some("main-a-tls"));
    assert_eq!(secret.metadata.owner_references.as_ref().unwrap()[0].kind, "EtcdMember");
    assert_eq!(MemberCertificates::read(&secret), Ok(leaves));

    let binding = binding(&ring, &[name("main-b"), name("main-a")], at(0));
    let secret = binding.secret(&blueprint);
    assert_eq!(ClientSecret::read(&secret), (binding, None));
}

#[test]
fn an_application_is_told_all_it_needs() {
    let (spec, ring) = (spec(), ring());
    let blueprint = blueprint(&spec);
    let members = [name("main-b"), name("main-a")];
    let secret = binding(&ring, &members, at(0)).secret(&blueprint);
    assert_eq!(secret.type_.as_deref(), Some("servicebinding.io/etcd"));
    let data = secret.data.unwrap();
    let word = |key: &str| str::from_utf8(&data[key].0).unwrap().to_owned();
    for (key, value) in [
        ("type", "etcd"),
        ("provider", "quorate"),
        ("host", "main-client.space.svc"),
        ("port", "2379"),
        ("uri", "https://main-client.space.svc:2379"),
        ("endpoints", "https://main-a.space.svc:2379,https://main-b.space.svc:2379"),
    ] {
        assert_eq!(word(key), value, "{key}");
    }
    assert_eq!(word("ca.crt"), ring.now.client.certificate.pem());
    assert!(word("tls.key").starts_with("-----BEGIN PRIVATE KEY-----"));
    assert_eq!(data.len(), 9);
}

#[test]
fn garbage_is_named_and_never_quoted() {
    let ring = ring();
    let secret = ring.secret(&blueprint(&spec()));
    for (key, value, why) in [
        ("client.crt", Some(b"hunter2".as_slice()), ParseError::NotPem),
        ("client.key", Some(b"hunter2"), ParseError::NotPem),
        ("peer.crt", None, ParseError::Missing),
        ("peer.key", Some(ring.now.client.key.pem().as_bytes()), ParseError::KeyMismatch),
    ] {
        let broken = CaSet::read(&spoiled(&secret, key, value)).unwrap_err();
        assert_eq!((broken.key, broken.why), (key, why));
        let said = format!("{broken} {broken:?}");
        assert!(broken.to_string().starts_with(&format!("Secret main-ca: {key} cannot be used: ")));
        assert!(!said.contains("hunter2"), "{said}");
    }
    let leaves = leaves(&ring);
    let secret = leaves.secret(&blueprint(&spec()), &name("main-a"), "uid");
    for key in ["server.crt", "server.key", "peer.crt", "peer.key", "client-ca.crt", "peer-ca.crt"]
    {
        let InvalidSecret { secret: of, key: named, why: _ } =
            MemberCertificates::read(&spoiled(&secret, key, Some(b"hunter2"))).unwrap_err();
        assert_eq!((of.as_str(), named), ("main-a-tls", key));
    }
}

#[test]
fn a_key_is_never_shown() {
    let ring = ring();
    let identity = signing(&ring, at(0)).operator().unwrap();
    let shown = format!("{ring:?} {:?} {identity:?}", leaves(&ring));
    let bytes = format!("{:?}", ring.now.client.key.pkcs8());
    assert!(!shown.contains(&bytes) && !shown.contains("BEGIN"), "{shown}");
    assert_eq!(shown.matches("PrivateKey(..)").count(), 5);
}
