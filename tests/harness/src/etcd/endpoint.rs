//! A connection to one member at its pod IP; its certificate is verified against the member's
//! Service name.

use std::time::Duration;

use anyhow::{Context, Result};
use etcd_client::{Certificate, Client, ConnectOptions, Identity, TlsOptions};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::ResourceExt;

const CLIENT_PORT: u16 = 2379;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// The credentials of a client Secret.
#[derive(Clone)]
pub(super) enum Credentials {
    /// Connections are plaintext.
    Plaintext,
    /// Connections use TLS with a client certificate.
    Tls { ca: Vec<u8>, certificate: Vec<u8>, key: Vec<u8> },
}

impl Credentials {
    pub(super) fn read(secret: &Secret) -> Result<Self> {
        let field = |name: &str| {
            let found = secret.data.as_ref().and_then(|data| data.get(name));
            let found = found.with_context(|| format!("{} has no {name}", secret.name_any()));
            found.map(|bytes| bytes.0.clone())
        };
        if field("uri")?.starts_with(b"http://") {
            return Ok(Self::Plaintext);
        }
        Ok(Self::Tls {
            ca: field("ca.crt")?,
            certificate: field("tls.crt")?,
            key: field("tls.key")?,
        })
    }

    /// Whether both use the same URL scheme.
    pub(super) fn same_scheme(&self, other: &Self) -> bool {
        matches!(
            (self, other),
            (Self::Plaintext, Self::Plaintext) | (Self::Tls { .. }, Self::Tls { .. })
        )
    }
}

/// One member, as it runs in one pod.
#[derive(Clone)]
pub struct Endpoint {
    /// The name of the member and of its pod.
    pub member: String,
    /// The pod IP.
    pub address: String,
    uid: String,
    pub(super) client: Client,
}

impl Endpoint {
    /// The connection is lazy: an unreachable member is no error here.
    pub(super) async fn connect(
        pod: &Pod,
        credentials: Option<(&Credentials, &str)>,
    ) -> Result<Self> {
        let address = address(pod).context("the pod has no address")?.to_owned();
        let mut options = ConnectOptions::new().with_connect_timeout(CONNECT_TIMEOUT);
        let mut scheme = "http";
        if let Some((Credentials::Tls { ca, certificate, key }, host)) = credentials {
            let tls = TlsOptions::new()
                .ca_certificate(Certificate::from_pem(ca))
                .identity(Identity::from_pem(certificate, key))
                .domain_name(host);
            options = options.with_tls(tls);
            scheme = "https";
        }
        let url = format!("{scheme}://{address}:{CLIENT_PORT}");
        let client = Client::connect([&url], Some(options)).await;
        let client = client.with_context(|| format!("cannot connect to {url}"))?;
        Ok(Self { member: pod.name_any(), address, uid: pod.uid().unwrap_or_default(), client })
    }

    /// Whether the member runs in the pod with this uid.
    #[must_use]
    pub fn is_in(&self, uid: &str) -> bool {
        self.uid == uid
    }

    /// Whether this is the connection to this pod at its present IP.
    pub(super) fn is_of(&self, pod: &Pod) -> bool {
        pod.uid().is_some_and(|uid| uid == self.uid) && address(pod) == Some(&self.address)
    }
}

pub(super) fn address(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.pod_ip.as_deref()
}
