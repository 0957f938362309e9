//! A connection to one member, at its pod's address, trusted by the name in its certificate.

use std::time::Duration;

use anyhow::{Context, Result};
use etcd_client::{Certificate, Client, ConnectOptions, Identity, TlsOptions};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::ResourceExt;

const PORT: u16 = 2379;
const CONNECTED: Duration = Duration::from_secs(1);

/// What a client Secret says.
#[derive(Clone)]
pub(super) enum Access {
    /// Whoever comes in the clear is taken.
    Open,
    /// Whoever shows these is.
    Shown { authority: Vec<u8>, certificate: Vec<u8>, key: Vec<u8> },
}

impl Access {
    pub(super) fn read(secret: &Secret) -> Result<Self> {
        let part = |name: &str| {
            let found = secret.data.as_ref().and_then(|data| data.get(name));
            let found = found.with_context(|| format!("{} has no {name}", secret.name_any()));
            found.map(|bytes| bytes.0.clone())
        };
        if part("uri")?.starts_with(b"http://") {
            return Ok(Self::Open);
        }
        Ok(Self::Shown {
            authority: part("ca.crt")?,
            certificate: part("tls.crt")?,
            key: part("tls.key")?,
        })
    }

    /// Whether one is used as the other.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Open, Self::Open) | (Self::Shown { .. }, Self::Shown { .. }))
    }
}

/// One member, as it runs in one pod.
#[derive(Clone)]
pub struct Endpoint {
    /// Its name, which is also its pod's.
    pub member: String,
    /// Where it listens.
    pub address: String,
    uid: String,
    pub(super) client: Client,
}

impl Endpoint {
    /// Nothing is sent yet: a member that is away is no error here.
    pub(super) async fn dial(pod: &Pod, access: Option<(&Access, &str)>) -> Result<Self> {
        let address = address(pod).context("the pod has no address")?.to_owned();
        let mut options = ConnectOptions::new().with_connect_timeout(CONNECTED);
        let mut scheme = "http";
        if let Some((Access::Shown { authority, certificate, key }, host)) = access {
            let tls = TlsOptions::new()
                .ca_certificate(Certificate::from_pem(authority))
                .identity(Identity::from_pem(certificate, key))
                .domain_name(host);
            options = options.with_tls(tls);
            scheme = "https";
        }
        let url = format!("{scheme}://{address}:{PORT}");
        let client = Client::connect([&url], Some(options)).await;
        let client = client.with_context(|| format!("cannot dial {url}"))?;
        Ok(Self { member: pod.name_any(), address, uid: pod.uid().unwrap_or_default(), client })
    }

    /// Whether it runs in the pod of this uid.
    #[must_use]
    pub fn is_in(&self, uid: &str) -> bool {
        self.uid == uid
    }

    /// Whether it is the one in this very pod.
    pub(super) fn is_of(&self, pod: &Pod) -> bool {
        pod.uid().is_some_and(|uid| uid == self.uid) && address(pod) == Some(&self.address)
    }
}

pub(super) fn address(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.pod_ip.as_deref()
}
