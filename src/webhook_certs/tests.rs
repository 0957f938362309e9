//! The corridors of the wing in a rehearsal: real clients against a small API server in memory, real
//! certificates, real handshakes. Tokio's clock is made up, so that nothing waits; while it runs, an
//! onlooker checks again and again that every target trusts what every replica shows.
#![expect(clippy::arithmetic_side_effects, reason = "the numbers of a rehearsal are small")]

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
use crate::pki::ca::holds;
use crate::telemetry::{Gate, Gates, Metrics};
use server::{SECRET, SPACE, Server};

/// Authorities are waited for by the real clock.
const TIMES: Lifetimes = Lifetimes {
    ca: Duration::from_hours(24),
    leaf: Duration::from_hours(6),
    settle: Duration::from_millis(40),
};
/// More than enough, in real time.
const PATIENCE: Duration = Duration::from_secs(30);
const HOST: &str = "quorate-webhook.space.svc";

/// Two replicas, one of which leads.
struct Stage {
    server: Server,
    clients: CertClients,
    clock: Clock,
    identities: [CertResolver; 2],
    gates: [Gates; 2],
    metrics: Metrics,
    leadership: watch::Sender<Leadership>,
    lifetimes: Lifetimes,
}

impl Stage {
    fn new() -> Self {
        let gates = || Gates::new(&[Gate::Certificate]);
        let until = MonotonicTime::new(Duration::from_hours(1));
        let server = Server::new();
        Self {
            clients: CertClients::new(server.client(), SPACE),
            server,
            clock: Clock::start(),
            identities: [CertResolver::default(), CertResolver::default()],
            gates: [gates(), gates()],
            metrics: Metrics::new(Timestamp::UNIX_EPOCH),
            leadership: watch::Sender::new(Leadership::Leading { until }),
            lifetimes: TIMES,
        }
    }

    /// Begins with this ring in the Secret.
    fn with(ca_set: &CaSet) -> Self {
        let stage = Self::new();
        stage.put(&secret::created(SPACE, ca_set));
        stage
    }

    fn put(&self, secret: &Secret) {
        self.server.store().put(SECRET, serde_json::to_value(secret).unwrap());
    }

    fn secret(&self) -> Option<Secret> {
        let value = self.server.store().objects.get(SECRET).cloned()?;
        Some(serde_json::from_value(value).unwrap())
    }

    fn ca_set(&self) -> CaSet {
        self.secret().map(|secret| secret::read(&secret).0).unwrap_or_default()
    }

    fn keep(&self, place: usize) -> ServingCertificate {
        ServingCertificate {
            clients: self.clients.clone(),
            lifetimes: self.lifetimes,
            clock: self.clock,
            identity: self.identities[place].clone(),
            gates: self.gates[place].clone(),
            metrics: self.metrics.clone(),
        }
    }

    fn rotate(&self) -> CaRotation {
        CaRotation {
            clients: self.clients.clone(),
            lifetimes: self.lifetimes,
            clock: self.clock,
            mandate: LeaderGuard::new(self.leadership.subscribe(), self.clock),
            metrics: self.metrics.clone(),
        }
    }

    /// Plays until the scene is over; each time that anything could have happened, `check` looks.
    async fn play(&self, check: impl Fn(&Self), over: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        let onlooker = async {
            while !over(self) {
                check(self);
                assert!(began.elapsed() < PATIENCE, "the scene does not end: {:?}", self.ca_set());
                time::sleep(Duration::from_millis(50)).await;
            }
        };
        let never = std::future::pending;
        tokio::select! {
            () = onlooker => {}
            () = Box::pin(self.keep(0).run(never())) => {}
            () = Box::pin(self.keep(1).run(never())) => {}
            () = Box::pin(self.rotate().run(never())) => {}
        }
    }

    fn is_ready(&self) -> bool {
        self.gates.iter().all(|gates| gates.state().ready())
    }

    /// What both replicas show is trusted by all targets, whoever is ready.
    fn trusted(&self) {
        let bundles = self.server.bundles();
        for (identity, gates) in self.identities.iter().zip(&self.gates) {
            let shown = identity.current().filter(|_| gates.state().ready());
            let Some(shown) = shown else { continue };
            for bundle in &bundles {
                assert!(signed_by_one_of(bundle, shown.end_entity_cert().unwrap()));
            }
        }
    }

    /// A handshake as an API server would make it, with each bundle and each replica.
    async fn shake_hands(&self) {
        for bundle in self.server.bundles() {
            for identity in &self.identities {
                shake_hands(&bundle, identity.clone()).await;
            }
        }
    }
}

/// Whether a certificate of this bundle has signed the leaf.
fn signed_by_one_of(bundle: &[u8], leaf: &CertificateDer<'_>) -> bool {
    let (_, leaf) = X509Certificate::from_der(leaf).unwrap();
    CertificateDer::pem_slice_iter(bundle).any(|der| {
        let der = der.unwrap();
        let (_, authority) = X509Certificate::from_der(&der).unwrap();
        leaf.verify_signature(Some(authority.public_key())).is_ok()
    })
}

async fn shake_hands(bundle: &[u8], identity: CertResolver) {
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
    let server = server.with_cert_resolver(Arc::new(identity));
    let (here, there) = tokio::io::duplex(16 * 1024);
    let name = ServerName::try_from(HOST).unwrap();
    let (asked, answered) = tokio::join!(
        TlsConnector::from(Arc::new(client)).connect(name, here),
        TlsAcceptor::from(Arc::new(server)).accept(there),
    );
    asked.unwrap();
    answered.unwrap();
}

fn ago(hours: i64) -> Timestamp {
    clock::wall().checked_sub(SignedDuration::from_hours(hours)).unwrap()
}

fn old_ring() -> CaSet {
    CaSet::new(issue::authority(&TIMES, ago(20)).unwrap(), &[])
}

/// The ring is young, has nothing to come, and is in every target.
fn at_rest(stage: &Stage) -> bool {
    let ca_set = stage.ca_set();
    let young = ca_set.current.as_ref().is_some_and(|it| it.certificate.from > ago(1));
    let everywhere = stage.server.bundles().iter().all(|bundle| *bundle == ca_set.bundle());
    let signed = stage.identities.iter().all(|identity| {
        let shown = identity.current();
        let der = ca_set.current.as_ref().map(|it| it.certificate.clone());
        shown.zip(der).is_some_and(|(shown, authority)| {
            let bundle = authority.pem();
            signed_by_one_of(bundle.as_bytes(), shown.end_entity_cert().unwrap())
        })
    });
    young && ca_set.next.is_none() && everywhere && signed && stage.is_ready()
}

#[tokio::test(start_paused = true)]
async fn two_replicas_begin_with_one_secret_and_every_target_is_written_once() {
    let stage = Stage::new();
    stage.play(Stage::trusted, at_rest).await;
    stage.shake_hands().await;
    assert_eq!(stage.server.injections(), 4);
    assert_eq!(stage.ca_set().certificates().len(), 1);
    let log_state = stage.metrics.encode().unwrap();
    for line in [
        "quorate_ca_bundle_injections_total{target=\"definition\"} 2\n",
        "quorate_ca_bundle_injections_total{target=\"mutating\"} 1\n",
        "quorate_ca_rotation_steps_total{reason=\"BundleMissing\"} 4\n",
        "quorate_ca_bundle_targets{state=\"managed\"} 4\n",
        "quorate_certificate_expiry_timestamp_seconds{which=\"leaf\"}",
        "quorate_certificate_expiry_timestamp_seconds{which=\"current\"}",
    ] {
        assert!(log_state.contains(line), "{line} is missing in {log_state}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_old_authority_is_followed_by_another_without_a_moment_of_distrust() {
    let before = old_ring();
    let stage = Stage::with(&before);
    stage.play(Stage::trusted, at_rest).await;
    stage.shake_hands().await;
    let ca_set = stage.ca_set();
    assert_eq!(ca_set.previous, [before.current.unwrap().certificate]);
    assert!(ca_set.promoted.is_some());
    // At most once for the old bundle and once for the new one. Promoting writes none.
    assert!(stage.server.injections() <= 8, "{}", stage.server.injections());
}

#[tokio::test(start_paused = true)]
async fn what_signed_long_ago_is_dropped_with_one_write_to_each_target() {
    let ca_set = old_ring().with_next(issue::authority(&TIMES, ago(0)).unwrap()).promote(ago(9));
    // Everybody hears of everything within seconds of the real clock.
    let leaf = Duration::from_secs(10);
    let stage = Stage { lifetimes: Lifetimes { leaf, ..TIMES }, ..Stage::with(&ca_set) };
    let dropped = |stage: &Stage| at_rest(stage) && stage.ca_set().previous.is_empty();
    stage.play(Stage::trusted, dropped).await;
    stage.shake_hands().await;
    assert!(stage.server.injections() <= 8, "{}", stage.server.injections());
}

/// Lets two replicas begin, breaks the Secret once, and plays until they are at rest again.
async fn played_through(breaks: impl Fn(&Stage)) {
    let stage = Stage::new();
    let before = RefCell::new(None);
    let check = |stage: &Stage| {
        stage.trusted();
        if before.borrow().is_none() && at_rest(stage) {
            before.replace(stage.ca_set().current);
            breaks(stage);
        }
    };
    let over = |stage: &Stage| {
        let is_another = stage.ca_set().current != *before.borrow();
        before.borrow().is_some() && is_another && at_rest(stage)
    };
    stage.play(check, over).await;
    stage.shake_hands().await;
    let before = before.take().unwrap().certificate;
    assert_eq!(stage.ca_set().previous, [before], "it stays trusted, reason it was in use");
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_is_deleted_is_made_anew_without_a_moment_of_distrust() {
    played_through(|stage| stage.server.store().delete(SECRET)).await;
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_is_garbled_is_mended_without_a_moment_of_distrust() {
    for nonsense in [
        json!({ "current.crt": "Pz8/", "current.key": "Pz8/", "ca.crt": "" }),
        json!({ "ca.crt": "Pz8/" }),
        json!(null),
    ] {
        played_through(|stage| {
            let mut secret = stage.secret().unwrap();
            secret.data = serde_json::from_value(nonsense.clone()).unwrap();
            stage.put(&secret);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_target_that_is_meddled_with_is_mended_and_what_is_not_ours_is_left_alone() {
    let stage = Stage::new();
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/quorate";
    let ours = json!({ "namespace": SPACE, "name": "quorate-webhook" });
    let other = json!({ "namespace": SPACE, "name": "another" });
    let meddled = json!({ "metadata": { "name": "quorate" }, "webhooks": [
        { "name": "a", "clientConfig": { "service": ours, "caBundle": "Pz8/" } },
        { "name": "b", "clientConfig": { "service": other, "caBundle": "Pz8/" } },
    ]});
    stage.server.store().put(path, meddled);
    let bundle = |stage: &Stage, place: usize| {
        let hook = &stage.server.store().objects[path]["webhooks"][place];
        hook["clientConfig"]["caBundle"].as_str().unwrap().to_owned()
    };
    stage.play(|_| {}, |stage| stage.is_ready() && bundle(stage, 0) != "Pz8/").await;
    assert_eq!(bundle(&stage, 1), "Pz8/");
    assert!(holds(&stage.server.bundles()[0], &stage.ca_set().certificates()[0].der));
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_does_not_lead_writes_nothing_but_a_missing_secret() {
    let stage = Stage::new();
    stage.leadership.send_replace(Leadership::Following);
    let passes = Cell::new(0);
    let check = |_: &Stage| passes.set(passes.get() + 1);
    stage.play(check, |_| passes.get() > 200).await;
    let writes: Vec<String> = stage.server.store().writes.iter().map(|it| it.0.clone()).collect();
    assert!(!writes.is_empty() && writes.iter().all(|method| method == "POST"), "{writes:?}");
    assert!(!stage.is_ready() && stage.identities[0].current().is_some());
}

#[tokio::test(start_paused = true)]
async fn whoever_is_refused_makes_nothing_and_says_so_at_the_gate() {
    let stage = Stage::new();
    stage.server.store().refused.insert(SECRET.to_owned());
    let refused = |stage: &Stage| stage.gates[0].state().to_string().contains("cannot be had");
    stage.play(|_| {}, refused).await;
    assert_eq!(stage.server.store().writes, []);
    assert!(stage.identities[0].current().is_none());
}
