//! Handshakes with every replica, against every bundle that the apiserver could hold at the time.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client, ResourceExt};
use quorate::api::{crd, names};
use quorate_harness::Story;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use super::installed::NAMESPACE;

const PAUSE: Duration = Duration::from_millis(300);

/// Samples until it is told to end.
pub(super) struct Sampler {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Result<usize>>,
}

impl Sampler {
    pub(super) fn begin(story: &Story) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (asked, client) = (Arc::clone(&stop), story.client.clone());
        let task = tokio::spawn(async move {
            let mut tried = 0_usize;
            while !asked.load(Ordering::Relaxed) {
                tried = tried.saturating_add(sample(&client).await?);
                tokio::time::sleep(PAUSE).await;
            }
            Ok(tried)
        });
        Self { stop, task }
    }

    /// How many handshakes there were, all of them good.
    pub(super) async fn end(self) -> Result<usize> {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await?
    }
}

/// One handshake for each ready replica and each bundle.
async fn sample(client: &Client) -> Result<usize> {
    let bundles = bundles(client).await?;
    let mut tried = 0_usize;
    for address in ready(client).await? {
        for bundle in &bundles {
            // A replica may be gone by now; then there is nobody to shake hands with.
            let Ok(Ok(stream)) =
                tokio::time::timeout(Duration::from_secs(2), TcpStream::connect(address)).await
            else {
                continue;
            };
            match greet(stream, bundle).await {
                Ok(()) => tried = tried.saturating_add(1),
                Err(error) => {
                    let gone = !ready(client).await?.contains(&address);
                    ensure!(gone, "{address} is not trusted: {error:#}");
                }
            }
        }
    }
    Ok(tried)
}

/// Shakes hands with a replica, trusting this bundle alone.
pub(super) async fn greeted(address: SocketAddr, bundle: &[u8]) -> Result<()> {
    let connected = TcpStream::connect(address);
    let stream = tokio::time::timeout(Duration::from_secs(2), connected).await??;
    greet(stream, bundle).await
}

async fn greet(stream: TcpStream, bundle: &[u8]) -> Result<()> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle) {
        roots.add(certificate?)?;
    }
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let name = format!("{}.{NAMESPACE}.svc", names::WEBHOOK_SERVICE);
    let name = ServerName::try_from(name)?;
    TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    Ok(())
}

/// Where the ready replicas answer.
pub(super) async fn ready(client: &Client) -> Result<Vec<SocketAddr>> {
    let slices = Api::<k8s_openapi::api::discovery::v1::EndpointSlice>::namespaced(
        client.clone(),
        NAMESPACE,
    );
    let of_service = format!("kubernetes.io/service-name={}", names::WEBHOOK_SERVICE);
    let listed = slices.list(&kube::api::ListParams::default().labels(&of_service)).await?;
    let endpoints = listed.items.into_iter().flat_map(|slice| slice.endpoints);
    let ready = endpoints
        .filter(|it| it.conditions.as_ref().and_then(|conditions| conditions.ready) == Some(true));
    let address = |text: String| Ok(SocketAddr::new(text.parse()?, names::WEBHOOK_PORT));
    ready.flat_map(|endpoint| endpoint.addresses).map(address).collect()
}

/// Every bundle that stands in a definition or a configuration.
pub(super) async fn bundles(client: &Client) -> Result<BTreeSet<Vec<u8>>> {
    let mut bundles = BTreeSet::new();
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    for ours in crd::all().iter().filter(|it| it.spec.conversion.is_some()) {
        let live = definitions.get(&ours.name_any()).await?;
        let webhook = live.spec.conversion.and_then(|conversion| conversion.webhook);
        let bundle = webhook.and_then(|it| it.client_config).and_then(|it| it.ca_bundle);
        bundles.insert(bundle.context("a definition without a bundle")?.0);
    }
    let name = names::WEBHOOK_CONFIGURATION;
    let one: MutatingWebhookConfiguration = Api::all(client.clone()).get(name).await?;
    let other: ValidatingWebhookConfiguration = Api::all(client.clone()).get(name).await?;
    let one = one.webhooks.unwrap_or_default().into_iter().map(|it| it.client_config);
    let other = other.webhooks.unwrap_or_default().into_iter().map(|it| it.client_config);
    for config in one.chain(other) {
        bundles.insert(config.ca_bundle.context("a webhook without a bundle")?.0);
    }
    Ok(bundles)
}
