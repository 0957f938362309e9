//! The webhook server and the task that keeps its serving certificate valid.
//!
//! Shutdown first drains: API servers are notified of the removed endpoint at the same time as this
//! process, and keep connections open for later requests.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::FutureExt;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time;

use super::leader_tasks::LeaderTask;
use super::runtime::{Shared, log_failure, unexpected_exit};
use super::shutdown::{self, ShutdownHandle, ShutdownSignal};
use crate::clients::serving_cert::CertResolver;
use crate::settings::{Certificates, Webhooks};
use crate::webhook::server;
use crate::webhook_certs::CertClients;
use crate::webhook_certs::file_source::FileSource;
use crate::webhook_certs::leader::CaRotation;
use crate::webhook_certs::replica::ServingCertificate;

/// The running server and its certificate task.
pub(super) struct WebhookServer {
    server: JoinHandle<()>,
    certificate: JoinHandle<()>,
    drain: ShutdownHandle,
    stop_server: ShutdownHandle,
    stop_certificate: ShutdownHandle,
    drain_time: Duration,
}

impl WebhookServer {
    /// Starts to listen. Until there is a certificate every handshake fails, and the replica is not
    /// ready.
    pub(super) async fn start(webhooks: &Webhooks, shared: &Shared) -> Result<Self> {
        let listen = webhooks.listen;
        let listener = TcpListener::bind(listen).await.with_context(|| {
            format!("failed to listen on {listen}; is the port of --webhook-listen already in use?")
        })?;
        let identity = CertResolver::default();
        let config = server::ServerConfig::new(identity.clone(), shared.metrics.webhook())?;
        let (drain, draining) = shutdown::channel();
        let (stop_server, server_stop) = shutdown::channel();
        let (stop_certificate, certificate_stop) = shutdown::channel();
        let certificate = certificate(webhooks, shared, identity, certificate_stop);
        let server = server::serve(listener, config, draining.requested(), server_stop.requested());
        let server = tokio::spawn(server);
        tracing::info!(%listen, "webhook server started");
        Ok(Self {
            server,
            certificate,
            drain,
            stop_server,
            stop_certificate,
            drain_time: webhooks.drain,
        })
    }

    /// Completes when a task exits unexpectedly.
    pub(super) async fn wait_for_failure(&mut self) -> anyhow::Error {
        tokio::select! {
            exit = &mut self.server => unexpected_exit("the webhook server", exit),
            exit = &mut self.certificate => unexpected_exit("the webhook certificate task", exit),
        }
    }

    /// Closes the port after the drain timeout.
    pub(super) async fn shutdown(self) {
        let Self { server, certificate, drain, stop_server, stop_certificate, drain_time } = self;
        drain.stop();
        time::sleep(drain_time).await;
        stop_server.stop();
        log_failure("the webhook server", server.await);
        stop_certificate.stop();
        log_failure("the webhook certificate task", certificate.await);
    }
}

fn clients(shared: &Shared) -> CertClients {
    CertClients::new(shared.client.clone(), &shared.namespace)
}

fn certificate(
    webhooks: &Webhooks,
    shared: &Shared,
    identity: CertResolver,
    stop: ShutdownSignal,
) -> JoinHandle<()> {
    let (gates, metrics) = (shared.gates.clone(), shared.metrics.clone());
    match &webhooks.certificates {
        Certificates::Files(folder) => {
            let files = FileSource { dir: folder.clone(), resolver: identity, gates, metrics };
            tokio::spawn(files.run(stop.requested()))
        }
        Certificates::BuiltIn(lifetimes) => {
            let certificate = ServingCertificate {
                clients: clients(shared),
                lifetimes: *lifetimes,
                clock: shared.clock,
                resolver: identity,
                gates,
                metrics,
            };
            tokio::spawn(certificate.run(stop.requested()))
        }
    }
}

/// The leader task that rotates the CA for all replicas.
pub(super) fn leader_task(webhooks: &Webhooks, shared: &Shared) -> Option<LeaderTask> {
    let lifetimes = match &webhooks.certificates {
        Certificates::Files(_) => return None,
        Certificates::BuiltIn(lifetimes) => *lifetimes,
    };
    let rotation = CaRotation {
        clients: clients(shared),
        lifetimes,
        clock: shared.clock,
        leader_guard: shared.leader_guard.clone(),
        metrics: shared.metrics.clone(),
    };
    // The task is aborted when leadership ends, so it needs no shutdown signal.
    Some(LeaderTask {
        name: "webhook CA rotation",
        work: rotation.run(std::future::pending()).boxed(),
    })
}
