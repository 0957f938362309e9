//! A handshake with a member, to see what it shows and whom it lets in.

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

/// For clients.
pub(super) const CLIENT: u16 = 2379;
/// For other members.
pub(super) const PEER: u16 = 2380;
const SOON: Duration = Duration::from_secs(3);

/// Somebody who calls, with everything as PEM.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) trusts: Vec<u8>,
    pub(super) certificate: Vec<u8>,
    pub(super) key: Vec<u8>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Both took what the other showed.
    Well,
    /// The member did not take what it was shown.
    Refused,
    /// The caller did not take what the member showed.
    NotTrusted,
}

/// What is under a key of a Secret.
pub(super) fn part(secret: &Secret, key: &str) -> Result<Vec<u8>> {
    let found = secret.data.as_ref().and_then(|data| data.get(key));
    let found = found.with_context(|| format!("{} has no {key}", secret.name_any()))?;
    Ok(found.0.clone())
}

/// Calls a member. In TLS 1.2 it has judged the caller when the handshake ends.
pub(super) async fn call(
    cluster: &Cluster,
    member: &str,
    port: u16,
    caller: &Caller,
) -> Result<Ended> {
    let Err(error) = shaken(cluster, member, port, caller).await? else { return Ok(Ended::Well) };
    match error.get_ref().and_then(|it| it.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(_)) => Ok(Ended::NotTrusted),
        Some(rustls::Error::AlertReceived(_)) => Ok(Ended::Refused),
        Some(_) | None => Err(error).with_context(|| format!("cannot call {member}:{port}")),
    }
}

/// The certificate that a member shows to this caller.
pub(super) async fn shown(
    cluster: &Cluster,
    member: &str,
    port: u16,
    caller: &Caller,
) -> Result<Vec<u8>> {
    let stream = shaken(cluster, member, port, caller).await?;
    let stream = stream.with_context(|| format!("cannot call {member}:{port}"))?;
    let (_, session) = stream.get_ref();
    let shown = session.peer_certificates().and_then(<[_]>::first);
    Ok(shown.context("it shows nothing")?.to_vec())
}

async fn shaken(
    cluster: &Cluster,
    member: &str,
    port: u16,
    caller: &Caller,
) -> Result<io::Result<TlsStream<TcpStream>>> {
    let pod = cluster.pod(member).await?;
    let address = pod.status.and_then(|it| it.pod_ip).context("the pod has no address")?;
    let mut roots = RootCertStore::empty();
    for der in CertificateDer::pem_slice_iter(&caller.trusts) {
        roots.add(der?)?;
    }
    let shown =
        CertificateDer::pem_slice_iter(&caller.certificate).collect::<Result<Vec<_>, _>>()?;
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS12])?
        .with_root_certificates(roots)
        .with_client_auth_cert(shown, PrivateKeyDer::from_pem_slice(&caller.key)?)?;
    let host = format!("{member}.{}.svc", cluster.namespace);
    let connector = TlsConnector::from(Arc::new(config));
    let stream = tokio::time::timeout(SOON, TcpStream::connect((address.as_str(), port))).await??;
    let shaken = connector.connect(ServerName::try_from(host)?, stream);
    Ok(tokio::time::timeout(SOON, shaken).await?)
}
