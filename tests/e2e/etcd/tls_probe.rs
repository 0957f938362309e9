//! TLS handshakes with a member: which certificate it presents, and which client certificates it
//! accepts.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use quorate_harness::etcd_cluster::Cluster;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::TLS12;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub(super) const CLIENT_PORT: u16 = 2379;
pub(super) const PEER_PORT: u16 = 2380;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// What a TLS client trusts and presents, as PEM.
#[derive(Clone)]
pub(super) struct ClientIdentity {
    pub(super) trusted_cas: Vec<u8>,
    pub(super) certificate: Vec<u8>,
    pub(super) key: Vec<u8>,
}

/// The keys of a client Secret, in the order of [`ClientIdentity::from_secret`].
pub(super) const CLIENT_KEYS: [&str; 3] = ["ca.crt", "tls.crt", "tls.key"];

impl ClientIdentity {
    /// The identity under these keys of a Secret.
    pub(super) fn from_secret(secret: &Secret, [ca, certificate, key]: [&str; 3]) -> Result<Self> {
        Ok(Self {
            trusted_cas: secret_field(secret, ca)?,
            certificate: secret_field(secret, certificate)?,
            key: secret_field(secret, key)?,
        })
    }
}

/// The outcome of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handshake {
    /// Both sides accepted the other's certificate.
    Ok,
    /// The member rejected the client certificate.
    Rejected,
    /// The client does not trust the member's certificate.
    UntrustedServer,
}

/// The value of a key of a Secret.
pub(super) fn secret_field(secret: &Secret, key: &str) -> Result<Vec<u8>> {
    let found = secret.data.as_ref().and_then(|data| data.get(key));
    let found = found.with_context(|| format!("{} has no {key}", secret.name_any()))?;
    Ok(found.0.clone())
}

/// Tries a handshake with a member. In TLS 1.2 the member has verified the client certificate when
/// the handshake completes.
pub(super) async fn probe(
    cluster: &Cluster,
    member: &str,
    port: u16,
    client: &ClientIdentity,
) -> Result<Handshake> {
    let Err(error) = handshake(cluster, member, port, client).await? else {
        return Ok(Handshake::Ok);
    };
    match error.get_ref().and_then(|source| source.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(_)) => Ok(Handshake::UntrustedServer),
        Some(rustls::Error::AlertReceived(_)) => Ok(Handshake::Rejected),
        Some(_) | None => Err(error).with_context(|| format!("no handshake with {member}:{port}")),
    }
}

/// The certificate that a member presents to this client.
pub(super) async fn presented_certificate(
    cluster: &Cluster,
    member: &str,
    port: u16,
    client: &ClientIdentity,
) -> Result<Vec<u8>> {
    let stream = handshake(cluster, member, port, client).await?;
    let stream = stream.with_context(|| format!("no handshake with {member}:{port}"))?;
    let (_, session) = stream.get_ref();
    let presented = session.peer_certificates().and_then(<[_]>::first);
    Ok(presented.context("the member presents no certificate")?.to_vec())
}

async fn handshake(
    cluster: &Cluster,
    member: &str,
    port: u16,
    client: &ClientIdentity,
) -> Result<io::Result<TlsStream<TcpStream>>> {
    let pod = cluster.pod(member).await?;
    let address = pod.status.and_then(|status| status.pod_ip).context("the pod has no IP")?;
    let mut roots = RootCertStore::empty();
    for der in CertificateDer::pem_slice_iter(&client.trusted_cas) {
        roots.add(der?)?;
    }
    let presented =
        CertificateDer::pem_slice_iter(&client.certificate).collect::<Result<Vec<_>, _>>()?;
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS12])?
        .with_root_certificates(roots)
        .with_client_auth_cert(presented, PrivateKeyDer::from_pem_slice(&client.key)?)?;
    let host = format!("{member}.{}.svc", cluster.namespace);
    let connector = TlsConnector::from(Arc::new(config));
    let stream =
        tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect((address.as_str(), port)))
            .await??;
    let handshake = connector.connect(ServerName::try_from(host)?, stream);
    Ok(tokio::time::timeout(CONNECT_TIMEOUT, handshake).await?)
}
