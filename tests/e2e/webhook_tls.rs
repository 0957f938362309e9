//! TLS handshakes with every replica's webhook port, with every CA bundle that the API server may
//! use at the time.

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
use quorate_harness::TestContext;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use super::installation::NAMESPACE;

const SAMPLE_INTERVAL: Duration = Duration::from_millis(300);

/// Samples handshakes in the background until [`Sampler::finish`].
pub(super) struct Sampler {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Result<usize>>,
}

impl Sampler {
    pub(super) fn start(ctx: &TestContext) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, client) = (Arc::clone(&stop), ctx.client.clone());
        let task = tokio::spawn(async move {
            let mut handshakes = 0_usize;
            while !stopped.load(Ordering::Relaxed) {
                handshakes = handshakes.saturating_add(sample(&client).await?);
                tokio::time::sleep(SAMPLE_INTERVAL).await;
            }
            Ok(handshakes)
        });
        Self { stop, task }
    }

    /// Stops, and returns the number of handshakes, all of them successful.
    pub(super) async fn finish(self) -> Result<usize> {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await?
    }
}

/// One handshake for each ready replica and each bundle.
async fn sample(client: &Client) -> Result<usize> {
    let bundles = ca_bundles(client).await?;
    let mut handshakes = 0_usize;
    for address in ready_endpoints(client).await? {
        for bundle in &bundles {
            // A replica may have terminated in the meantime.
            let Ok(Ok(stream)) =
                tokio::time::timeout(Duration::from_secs(2), TcpStream::connect(address)).await
            else {
                continue;
            };
            match handshake(stream, bundle).await {
                Ok(()) => handshakes = handshakes.saturating_add(1),
                Err(error) => {
                    let terminated = !ready_endpoints(client).await?.contains(&address);
                    ensure!(terminated, "{address} is not trusted: {error:#}");
                }
            }
        }
    }
    Ok(handshakes)
}

/// A handshake with a replica that trusts this bundle alone.
pub(super) async fn verify_handshake(address: SocketAddr, bundle: &[u8]) -> Result<()> {
    let connected = TcpStream::connect(address);
    let stream = tokio::time::timeout(Duration::from_secs(2), connected).await??;
    handshake(stream, bundle).await
}

async fn handshake(stream: TcpStream, bundle: &[u8]) -> Result<()> {
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

/// The addresses of the ready replicas.
pub(super) async fn ready_endpoints(client: &Client) -> Result<Vec<SocketAddr>> {
    let slices = Api::<k8s_openapi::api::discovery::v1::EndpointSlice>::namespaced(
        client.clone(),
        NAMESPACE,
    );
    let of_service = format!("kubernetes.io/service-name={}", names::WEBHOOK_SERVICE);
    let listed = slices.list(&kube::api::ListParams::default().labels(&of_service)).await?;
    let endpoints = listed.items.into_iter().flat_map(|slice| slice.endpoints);
    let ready = endpoints.filter(|endpoint| {
        endpoint.conditions.as_ref().and_then(|conditions| conditions.ready) == Some(true)
    });
    let address = |text: String| Ok(SocketAddr::new(text.parse()?, names::WEBHOOK_PORT));
    ready.flat_map(|endpoint| endpoint.addresses).map(address).collect()
}

/// Every CA bundle in a CRD or a webhook configuration.
pub(super) async fn ca_bundles(client: &Client) -> Result<BTreeSet<Vec<u8>>> {
    let mut bundles = BTreeSet::new();
    let crds = Api::<CustomResourceDefinition>::all(client.clone());
    for rendered in crd::all().iter().filter(|crd| crd.spec.conversion.is_some()) {
        let live = crds.get(&rendered.name_any()).await?;
        let webhook = live.spec.conversion.and_then(|conversion| conversion.webhook);
        let bundle =
            webhook.and_then(|webhook| webhook.client_config).and_then(|config| config.ca_bundle);
        bundles.insert(bundle.context("a CRD without a CA bundle")?.0);
    }
    let name = names::WEBHOOK_CONFIGURATION;
    let mutating: MutatingWebhookConfiguration = Api::all(client.clone()).get(name).await?;
    let validating: ValidatingWebhookConfiguration = Api::all(client.clone()).get(name).await?;
    let mutating =
        mutating.webhooks.unwrap_or_default().into_iter().map(|webhook| webhook.client_config);
    let validating =
        validating.webhooks.unwrap_or_default().into_iter().map(|webhook| webhook.client_config);
    for config in mutating.chain(validating) {
        bundles.insert(config.ca_bundle.context("a webhook without a CA bundle")?.0);
    }
    Ok(bundles)
}
