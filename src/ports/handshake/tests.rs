//! Real handshakes on this machine, one sentence each.

use super::*;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use std::net::{IpAddr, Ipv4Addr};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use x509_parser::prelude::{FromDer, X509Certificate};

const HOST: &str = "main-a.space.svc";
const SOON: Duration = Duration::from_secs(20);

struct Authority {
    der: Vec<u8>,
    issuer: Issuer<'static, KeyPair>,
}

struct Pair {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Authority {
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

    fn sign(&self) -> Pair {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![HOST.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().der().to_vec();
        Pair { certificate, key: key.serialize_der() }
    }
}

/// A member that shows what one authority signed, and trusts these.
async fn member(shows: &Authority, trusts: &[&Authority]) -> Place {
    let mut roots = RootCertStore::empty();
    for authority in trusts {
        roots.add(CertificateDer::from(authority.der.clone())).unwrap();
    }
    let provider = Arc::new(default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
    let Pair { certificate, key } = shows.sign();
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
    Place { address: IpAddr::V4(Ipv4Addr::LOCALHOST), port, host: HOST.to_owned(), is_open: false }
}

async fn called(place: &Place, shows: &Pair, trusts: &[&Authority]) -> Ended {
    let trusts = trusts.iter().map(|it| it.der.as_slice()).collect();
    let Pair { certificate, key } = shows;
    shake(place, &Caller { certificate, chain: Vec::new(), key, trusts }, SOON).await
}

#[tokio::test]
async fn both_must_take_what_the_other_shows() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let well = |asked: &[&Authority]| Ended::Well {
        asks_for: asked.iter().map(|it| it.subject()).collect(),
    };
    for (shows, trusts, expected) in [
        (&old, vec![&old, &new], well(&[&old, &new])),
        (&old, vec![&old], Ended::Refused),
        (&new, vec![&new], well(&[&new])),
    ] {
        let place = member(shows, &trusts).await;
        assert_eq!(called(&place, &new.sign(), &[&old, &new]).await, expected);
    }
    let place = member(&old, &[&old, &new]).await;
    assert_eq!(called(&place, &new.sign(), &[&new]).await, Ended::NotTrusted);
}

#[tokio::test]
async fn who_is_called_by_another_name_is_not_trusted() {
    let authority = Authority::new("one");
    let place = member(&authority, &[&authority]).await;
    let place = Place { host: "main-b.space.svc".to_owned(), ..place };
    let ended = called(&place, &authority.sign(), &[&authority]).await;
    assert_eq!(ended, Ended::NotTrusted);
}

#[tokio::test]
async fn nobody_there_says_nothing_about_anybody() {
    let authority = Authority::new("one");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let place = Place {
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port,
        host: HOST.to_owned(),
        is_open: false,
    };
    let ended = called(&place, &authority.sign(), &[&authority]).await;
    assert!(matches!(ended, Ended::Unknown(_)), "{ended:?}");
}
