//! Real handshakes on the loopback interface.

use super::*;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use std::net::{IpAddr, Ipv4Addr};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use x509_parser::prelude::{FromDer, X509Certificate};

const HOST: &str = "main-a.space.svc";
const PROBE_TIMEOUT: Duration = Duration::from_secs(20);

struct Ca {
    der: Vec<u8>,
    issuer: Issuer<'static, KeyPair>,
}

struct LeafPair {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Ca {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let der = params.self_signed(&key).unwrap().der().to_vec();
        Self { der, issuer: Issuer::new(params, key) }
    }

    fn subject(&self) -> Vec<u8> {
        X509Certificate::from_der(&self.der).unwrap().1.subject().as_raw().to_vec()
    }

    fn sign(&self) -> LeafPair {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![HOST.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().der().to_vec();
        LeafPair { certificate, key: key.serialize_der() }
    }
}

/// A member with a certificate of one CA that trusts these CAs.
async fn member(presents: &Ca, trusted_cas: &[&Ca]) -> MemberEndpoint {
    let mut roots = RootCertStore::empty();
    for ca in trusted_cas {
        roots.add(CertificateDer::from(ca.der.clone())).unwrap();
    }
    let provider = Arc::new(default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
    let LeafPair { certificate, key } = presents.sign();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.unwrap())
        .with_single_cert(
            vec![CertificateDer::from(certificate)],
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key)),
        );
    let acceptor = TlsAcceptor::from(Arc::new(config.unwrap()));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        drop(acceptor.accept(stream).await);
    });
    MemberEndpoint {
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port,
        host: HOST.to_owned(),
        plaintext: false,
    }
}

async fn probe_member(
    endpoint: &MemberEndpoint,
    presents: &LeafPair,
    trusted_cas: &[&Ca],
) -> Handshake {
    let trusted_cas = trusted_cas.iter().map(|ca| ca.der.as_slice()).collect();
    let LeafPair { certificate, key } = presents;
    probe(
        endpoint,
        &ClientIdentity { certificate, chain: Vec::new(), key, trusted_cas },
        PROBE_TIMEOUT,
    )
    .await
}

#[tokio::test]
async fn handshake_succeeds_only_if_both_sides_trust_the_other() {
    let (old, new) = (Ca::new("old"), Ca::new("new"));
    let accepted = |issuers: &[&Ca]| Handshake::Ok {
        accepted_issuers: issuers.iter().map(|ca| ca.subject()).collect(),
    };
    for (presents, trusted_cas, expected) in [
        (&old, vec![&old, &new], accepted(&[&old, &new])),
        (&old, vec![&old], Handshake::Rejected),
        (&new, vec![&new], accepted(&[&new])),
    ] {
        let endpoint = member(presents, &trusted_cas).await;
        assert_eq!(probe_member(&endpoint, &new.sign(), &[&old, &new]).await, expected);
    }
    let endpoint = member(&old, &[&old, &new]).await;
    assert_eq!(probe_member(&endpoint, &new.sign(), &[&new]).await, Handshake::UntrustedServer);
}

#[tokio::test]
async fn certificate_of_another_host_is_not_trusted() {
    let ca = Ca::new("one");
    let endpoint = member(&ca, &[&ca]).await;
    let endpoint = MemberEndpoint { host: "main-b.space.svc".to_owned(), ..endpoint };
    let handshake = probe_member(&endpoint, &ca.sign(), &[&ca]).await;
    assert_eq!(handshake, Handshake::UntrustedServer);
}

#[tokio::test]
async fn unreachable_member_is_neither_trusted_nor_untrusted() {
    let ca = Ca::new("one");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let endpoint = MemberEndpoint {
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port,
        host: HOST.to_owned(),
        plaintext: false,
    };
    let handshake = probe_member(&endpoint, &ca.sign(), &[&ca]).await;
    assert!(matches!(handshake, Handshake::Failed(_)), "{handshake:?}");
}
