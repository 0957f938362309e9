//! The tasks of two replicas with real clients against an API server in memory, real certificates
//! and real handshakes. Tokio's clock is paused, so that no test waits; meanwhile a check repeats
//! that every target trusts the certificate that every replica presents.
#![expect(clippy::arithmetic_side_effects, reason = "the numbers of a test are small")]

mod server;

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde_json::json;
use tokio::sync::watch;
use tokio::time;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::ca_set::CaSet;
use super::leader::CaRotation;
use super::replica::ServingCertificate;
use super::{CertClients, Lifetimes, issue, secret};
use crate::api::leadership::Leadership;
use crate::api::monotonic::MonotonicTime;
use crate::clients::clock::{self, Clock};
use crate::clients::leader_guard::LeaderGuard;
use crate::clients::serving_cert::CertResolver;
use crate::pki::ca::bundle_contains;
use crate::telemetry::{Gate, Gates, Metrics};
use server::{ApiServer, NAMESPACE, SECRET};

/// The propagation delay is counted by the real clock.
const TIMES: Lifetimes = Lifetimes {
    ca: Duration::from_hours(24),
    leaf: Duration::from_hours(6),
    propagation_delay: Duration::from_millis(40),
};
/// Real time after which a test fails.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);
const HOST: &str = "quorate-webhook.space.svc";

/// Two replicas, one of which leads.
struct TestCluster {
    server: ApiServer,
    clients: CertClients,
    clock: Clock,
    resolvers: [CertResolver; 2],
    gates: [Gates; 2],
    metrics: Metrics,
    leadership: watch::Sender<Leadership>,
    lifetimes: Lifetimes,
}

impl TestCluster {
    fn new() -> Self {
        let gates = || Gates::new(&[Gate::Certificate]);
        let until = MonotonicTime::new(Duration::from_hours(1));
        let server = ApiServer::new();
        Self {
            clients: CertClients::new(server.client(), NAMESPACE),
            server,
            clock: Clock::start(),
            resolvers: [CertResolver::default(), CertResolver::default()],
            gates: [gates(), gates()],
            metrics: Metrics::new(Timestamp::UNIX_EPOCH),
            leadership: watch::Sender::new(Leadership::Leading { until }),
            lifetimes: TIMES,
        }
    }

    /// Starts with this CA set in the Secret.
    fn with_ca_set(ca_set: &CaSet) -> Self {
        let cluster = Self::new();
        cluster.put(&secret::new_secret(NAMESPACE, ca_set));
        cluster
    }

    fn put(&self, secret: &Secret) {
        self.server.store().put(SECRET, serde_json::to_value(secret).unwrap());
    }

    fn secret(&self) -> Option<Secret> {
        let value = self.server.store().objects.get(SECRET).cloned()?;
        Some(serde_json::from_value(value).unwrap())
    }

    fn ca_set(&self) -> CaSet {
        self.secret().map(|secret| secret::parse(&secret).0).unwrap_or_default()
    }

    fn serving_certificate(&self, replica: usize) -> ServingCertificate {
        ServingCertificate {
            clients: self.clients.clone(),
            lifetimes: self.lifetimes,
            clock: self.clock,
            resolver: self.resolvers[replica].clone(),
            gates: self.gates[replica].clone(),
            metrics: self.metrics.clone(),
        }
    }

    fn ca_rotation(&self) -> CaRotation {
        CaRotation {
            clients: self.clients.clone(),
            lifetimes: self.lifetimes,
            clock: self.clock,
            leader_guard: LeaderGuard::new(self.leadership.subscribe(), self.clock),
            metrics: self.metrics.clone(),
        }
    }

    /// Runs all tasks until `done`, and calls `check` after every state change.
    async fn run_until(&self, check: impl Fn(&Self), done: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        let checks = async {
            while !done(self) {
                check(self);
                assert!(start.elapsed() < TEST_TIMEOUT, "timeout: {:?}", self.ca_set());
                time::sleep(Duration::from_millis(50)).await;
            }
        };
        let never = std::future::pending;
        tokio::select! {
            () = checks => {}
            () = Box::pin(self.serving_certificate(0).run(never())) => {}
            () = Box::pin(self.serving_certificate(1).run(never())) => {}
            () = Box::pin(self.ca_rotation().run(never())) => {}
        }
    }

    fn is_ready(&self) -> bool {
        self.gates.iter().all(|gates| gates.state().ready())
    }

    /// Every target trusts the certificate of every ready replica.
    fn check_trusted(&self) {
        let bundles = self.server.bundles();
        for (resolver, gates) in self.resolvers.iter().zip(&self.gates) {
            let serving = resolver.current().filter(|_| gates.state().ready());
            let Some(serving) = serving else { continue };
            for bundle in &bundles {
                assert!(is_signed_by_any(bundle, serving.end_entity_cert().unwrap()));
            }
        }
    }

    /// A handshake as the API server performs it, with each bundle and each replica.
    async fn check_handshakes(&self) {
        for bundle in self.server.bundles() {
            for resolver in &self.resolvers {
                check_handshake(&bundle, resolver.clone()).await;
            }
        }
    }
}

/// Whether a CA of this bundle has signed the leaf.
fn is_signed_by_any(bundle: &[u8], leaf: &CertificateDer<'_>) -> bool {
    let (_, leaf) = X509Certificate::from_der(leaf).unwrap();
    CertificateDer::pem_slice_iter(bundle).any(|der| {
        let der = der.unwrap();
        let (_, ca) = X509Certificate::from_der(&der).unwrap();
        leaf.verify_signature(Some(ca.public_key())).is_ok()
    })
}

async fn check_handshake(bundle: &[u8], resolver: CertResolver) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let versions = rustls::DEFAULT_VERSIONS;
    let client = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let client = client.with_protocol_versions(versions).unwrap();
    let client = client.with_root_certificates(roots).with_no_client_auth();
    let server = ServerConfig::builder_with_provider(provider);
    let server = server.with_protocol_versions(versions).unwrap().with_no_client_auth();
    let server = server.with_cert_resolver(Arc::new(resolver));
    let (client_io, server_io) = tokio::io::duplex(16 * 1024);
    let name = ServerName::try_from(HOST).unwrap();
    let (connected, accepted) = tokio::join!(
        TlsConnector::from(Arc::new(client)).connect(name, client_io),
        TlsAcceptor::from(Arc::new(server)).accept(server_io),
    );
    connected.unwrap();
    accepted.unwrap();
}

fn ago(hours: i64) -> Timestamp {
    clock::wall().checked_sub(SignedDuration::from_hours(hours)).unwrap()
}

fn old_ca_set() -> CaSet {
    CaSet::new(issue::new_ca(&TIMES, ago(20)).unwrap(), &[])
}

/// The current CA is young and in every bundle, has signed every leaf, and no next CA is staged.
fn is_idle(cluster: &TestCluster) -> bool {
    let ca_set = cluster.ca_set();
    let young = ca_set.current.as_ref().is_some_and(|ca| ca.certificate.from > ago(1));
    let injected = cluster.server.bundles().iter().all(|bundle| *bundle == ca_set.bundle());
    let issued = cluster.resolvers.iter().all(|resolver| {
        let serving = resolver.current();
        let current = ca_set.current.as_ref().map(|ca| ca.certificate.clone());
        serving.zip(current).is_some_and(|(serving, ca)| {
            let bundle = ca.pem();
            is_signed_by_any(bundle.as_bytes(), serving.end_entity_cert().unwrap())
        })
    });
    young && ca_set.next.is_none() && injected && issued && cluster.is_ready()
}

#[tokio::test(start_paused = true)]
async fn two_replicas_start_with_one_secret_and_every_target_is_written_once() {
    let cluster = TestCluster::new();
    cluster.run_until(TestCluster::check_trusted, is_idle).await;
    cluster.check_handshakes().await;
    assert_eq!(cluster.server.injections(), 4);
    assert_eq!(cluster.ca_set().certificates().len(), 1);
    let metrics = cluster.metrics.encode().unwrap();
    for line in [
        "quorate_ca_bundle_injections_total{target=\"definition\"} 2\n",
        "quorate_ca_bundle_injections_total{target=\"mutating\"} 1\n",
        "quorate_ca_rotation_steps_total{reason=\"BundleMissing\"} 4\n",
        "quorate_ca_bundle_targets{state=\"managed\"} 4\n",
        "quorate_certificate_expiry_timestamp_seconds{which=\"leaf\"}",
        "quorate_certificate_expiry_timestamp_seconds{which=\"current\"}",
    ] {
        assert!(metrics.contains(line), "{line} is missing in {metrics}");
    }
}

#[tokio::test(start_paused = true)]
async fn old_ca_is_rotated_and_every_target_trusts_every_replica_throughout() {
    let before = old_ca_set();
    let cluster = TestCluster::with_ca_set(&before);
    cluster.run_until(TestCluster::check_trusted, is_idle).await;
    cluster.check_handshakes().await;
    let ca_set = cluster.ca_set();
    assert_eq!(ca_set.previous, [before.current.unwrap().certificate]);
    assert!(ca_set.rotated_at.is_some());
    // At most once for the old bundle and once for the new one; activation changes no bundle.
    assert!(cluster.server.injections() <= 8, "{}", cluster.server.injections());
}

#[tokio::test(start_paused = true)]
async fn unused_previous_ca_is_removed_with_one_write_per_target() {
    let ca_set =
        old_ca_set().with_next(issue::new_ca(&TIMES, ago(0)).unwrap()).activate_next(ago(9));
    // With a short leaf lifetime all replicas observe a change within seconds of the real clock.
    let leaf = Duration::from_secs(10);
    let cluster =
        TestCluster { lifetimes: Lifetimes { leaf, ..TIMES }, ..TestCluster::with_ca_set(&ca_set) };
    let removed = |cluster: &TestCluster| is_idle(cluster) && cluster.ca_set().previous.is_empty();
    cluster.run_until(TestCluster::check_trusted, removed).await;
    cluster.check_handshakes().await;
    assert!(cluster.server.injections() <= 8, "{}", cluster.server.injections());
}

/// Starts two replicas, breaks the Secret once, and runs until they are idle again.
async fn check_recovery(break_secret: impl Fn(&TestCluster)) {
    let cluster = TestCluster::new();
    let before = RefCell::new(None);
    let check = |cluster: &TestCluster| {
        cluster.check_trusted();
        if before.borrow().is_none() && is_idle(cluster) {
            before.replace(cluster.ca_set().current);
            break_secret(cluster);
        }
    };
    let done = |cluster: &TestCluster| {
        let is_new = cluster.ca_set().current != *before.borrow();
        before.borrow().is_some() && is_new && is_idle(cluster)
    };
    cluster.run_until(check, done).await;
    cluster.check_handshakes().await;
    let before = before.take().unwrap().certificate;
    assert_eq!(cluster.ca_set().previous, [before], "the CA that was in use stays trusted");
}

#[tokio::test(start_paused = true)]
async fn deleted_secret_is_recreated_and_every_target_trusts_every_replica_throughout() {
    check_recovery(|cluster| cluster.server.store().delete(SECRET)).await;
}

#[tokio::test(start_paused = true)]
async fn corrupted_secret_is_repaired_and_every_target_trusts_every_replica_throughout() {
    for data in [
        json!({ "current.crt": "Pz8/", "current.key": "Pz8/", "ca.crt": "" }),
        json!({ "ca.crt": "Pz8/" }),
        json!(null),
    ] {
        check_recovery(|cluster| {
            let mut secret = cluster.secret().unwrap();
            secret.data = serde_json::from_value(data.clone()).unwrap();
            cluster.put(&secret);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn changed_bundle_is_repaired_and_foreign_webhook_is_not_written() {
    let cluster = TestCluster::new();
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/quorate";
    let ours = json!({ "namespace": NAMESPACE, "name": "quorate-webhook" });
    let other = json!({ "namespace": NAMESPACE, "name": "other" });
    let changed = json!({ "metadata": { "name": "quorate" }, "webhooks": [
        { "name": "a", "clientConfig": { "service": ours, "caBundle": "Pz8/" } },
        { "name": "b", "clientConfig": { "service": other, "caBundle": "Pz8/" } },
    ]});
    cluster.server.store().put(path, changed);
    let bundle = |cluster: &TestCluster, index: usize| {
        let webhook = &cluster.server.store().objects[path]["webhooks"][index];
        webhook["clientConfig"]["caBundle"].as_str().unwrap().to_owned()
    };
    cluster.run_until(|_| {}, |cluster| cluster.is_ready() && bundle(cluster, 0) != "Pz8/").await;
    assert_eq!(bundle(&cluster, 1), "Pz8/");
    assert!(bundle_contains(&cluster.server.bundles()[0], &cluster.ca_set().certificates()[0].der));
}

#[tokio::test(start_paused = true)]
async fn follower_writes_nothing_but_a_missing_secret() {
    let cluster = TestCluster::new();
    cluster.leadership.send_replace(Leadership::Following);
    let checks = Cell::new(0);
    let check = |_: &TestCluster| checks.set(checks.get() + 1);
    cluster.run_until(check, |_| checks.get() > 200).await;
    let writes: Vec<String> =
        cluster.server.store().writes.iter().map(|(method, _)| method.clone()).collect();
    assert!(!writes.is_empty() && writes.iter().all(|method| method == "POST"), "{writes:?}");
    assert!(!cluster.is_ready() && cluster.resolvers[0].current().is_some());
}

#[tokio::test(start_paused = true)]
async fn forbidden_replica_writes_nothing_and_reports_it_at_the_gate() {
    let cluster = TestCluster::new();
    cluster.server.store().forbidden.insert(SECRET.to_owned());
    let failed = "[-]certificate failed: no serving certificate can be obtained; see the log\n";
    let reported = |cluster: &TestCluster| cluster.gates[0].state().to_string().contains(failed);
    cluster.run_until(|_| {}, reported).await;
    assert_eq!(cluster.server.store().writes, []);
    assert!(cluster.resolvers[0].current().is_none());
}
