//! Everything that runs until shutdown, started and stopped in order.
//!
//! Order of shutdown: readiness off, leader tasks, Lease, while the webhook server still answers
//! API servers that have not noticed; the probe server last, so that a replica which still releases
//! its Lease is not killed by its liveness probe.

use anyhow::{Context, Result, anyhow};
use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tokio::time;

use super::leader_tasks::{LeaderTask, LeaderTasks};
use super::shutdown::{self, ShutdownHandle};
use super::webhook_server::WebhookServer;
use crate::api::leadership::Leadership;
use crate::api::names;
use crate::clients::clock::{self, Clock};
use crate::clients::leader_guard::LeaderGuard;
use crate::clients::named_object::LeaseClient;
use crate::etcd_cluster::EtcdClusterController;
use crate::leader_election::elector::LeaderElector;
use crate::namespace_access::NamespaceAccessController;
use crate::settings::{Election, Etcd, RunConfig, Scope, WebhookMode};
use crate::storage_migration::{MigrationMode, StorageMigrationController, StoredVersionGuard};
use crate::telemetry::{self, Gate, Gates, Metrics, Probes, SHUTDOWN_GRACE, error_chain};

/// What the tasks share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) client: Client,
    /// The operator's own namespace.
    pub(super) namespace: String,
    pub(super) clock: Clock,
    pub(super) gates: Gates,
    pub(super) metrics: Metrics,
    pub(super) leader_guard: LeaderGuard,
}

/// The running tasks.
pub(super) struct Runtime {
    probes: JoinHandle<()>,
    elector: JoinHandle<()>,
    leader_tasks: JoinHandle<Result<()>>,
    webhook_server: Option<WebhookServer>,
    stop_probes: ShutdownHandle,
    stop_elector: ShutdownHandle,
    stop_leader_tasks: ShutdownHandle,
    gates: Gates,
}

impl Runtime {
    /// Starts everything: afterwards probes and webhooks are served, and leader election runs.
    pub(super) async fn start(config: RunConfig, client: Client) -> Result<Self> {
        let RunConfig { listen, election, webhooks, scope, etcd, migration, shutdown_grace: _ } =
            config;
        let listener = TcpListener::bind(listen).await.with_context(|| {
            format!("failed to listen on {listen}; is the port of --listen already in use?")
        })?;
        let gates = Gates::new(&[match webhooks {
            WebhookMode::Serve(_) => Gate::Certificate,
            WebhookMode::Disabled => Gate::KubernetesApi,
        }]);
        let (sender, leadership) = watch::channel(Leadership::Following);
        let clock = Clock::start();
        let shared = Shared {
            client,
            namespace: election.lease_namespace.clone(),
            clock,
            gates: gates.clone(),
            metrics: Metrics::new(clock::wall()),
            leader_guard: LeaderGuard::new(leadership.clone(), clock),
        };
        log_started(&listener, &election, &scope);
        let (stop_probes, probes_stop) = shutdown::channel();
        let (stop_elector, elector_stop) = shutdown::channel();
        let (stop_leader_tasks, leader_tasks_stop) = shutdown::channel();
        let probes = Probes { gates: gates.clone(), metrics: shared.metrics.clone() };
        let probes = tokio::spawn(telemetry::serve(listener, probes, probes_stop.requested()));
        let webhook_server = match &webhooks {
            WebhookMode::Serve(webhooks) => Some(WebhookServer::start(webhooks, &shared).await?),
            WebhookMode::Disabled => None,
        };
        let elector = elector(election, &shared, sender);
        let elector = tokio::spawn(elector.run(elector_stop.requested()));
        let leader = LeaderTasks { leadership, clock };
        let leader_tasks = move || leader_tasks(&shared, &webhooks, &scope, &etcd, migration);
        let leader_tasks = tokio::spawn(leader.serve(leader_tasks, leader_tasks_stop.requested()));
        Ok(Self {
            probes,
            elector,
            leader_tasks,
            webhook_server,
            stop_probes,
            stop_elector,
            stop_leader_tasks,
            gates,
        })
    }

    /// Completes when a task exits unexpectedly: the process must not go on with a part of its
    /// tasks.
    pub(super) async fn wait_for_failure(&mut self) -> anyhow::Error {
        let webhook_server = async {
            match &mut self.webhook_server {
                Some(webhook_server) => webhook_server.wait_for_failure().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            exit = &mut self.probes => unexpected_exit("the probe server", exit),
            exit = &mut self.elector => unexpected_exit("leader election", exit),
            exit = &mut self.leader_tasks => match exit {
                Ok(Err(error)) => error,
                Ok(Ok(())) => unexpected_exit("the leader tasks", Ok(())),
                Err(error) => unexpected_exit("the leader tasks", Err(error)),
            },
            error = webhook_server => error,
        }
    }

    /// Stops everything in order.
    pub(super) async fn shutdown(self) {
        let Self {
            probes,
            elector,
            leader_tasks,
            webhook_server,
            stop_probes,
            stop_elector,
            stop_leader_tasks,
            gates,
        } = self;
        // 1. Not ready: API servers stop sending requests once the endpoint is removed.
        gates.close(Gate::Running);
        let release = async {
            // 2. Leader tasks stop while the Lease is still renewed.
            stop_leader_tasks.stop();
            match leader_tasks.await {
                Ok(Err(error)) => tracing::error!(error = format!("{error:#}"), "task failed"),
                Ok(Ok(())) => {}
                Err(error) => log_failure("the leader tasks", Err(error)),
            }
            // 3. No leader task runs any more, so the Lease can be released.
            stop_elector.stop();
            log_failure("leader election", elector.await);
        };
        let drain = async {
            if let Some(webhook_server) = webhook_server {
                webhook_server.shutdown().await;
            }
        };
        tokio::join!(release, drain);
        // 4. Probes were answered until now. A client that reads its response slowly is not waited
        //    for: the Lease is released, and nothing else is pending.
        stop_probes.stop();
        if let Ok(exit) = time::timeout(SHUTDOWN_GRACE, probes).await {
            log_failure("the probe server", exit);
        } else {
            tracing::info!("probe server stopped with an open connection");
        }
    }
}

fn log_started(listener: &TcpListener, election: &Election, scope: &Scope) {
    let Election { lease_name, lease_namespace, identity, timing: _ } = election;
    // The actual port, if port 0 was requested.
    let listen = listener.local_addr().map(|address| address.to_string()).unwrap_or_default();
    let namespaces = match scope {
        Scope::Cluster(_) => "all namespaces",
        Scope::Namespace(name) => name.as_str(),
    };
    tracing::info!(
        version = names::VERSION,
        listen,
        identity,
        namespaces,
        lease = format!("{lease_namespace}/{lease_name}"),
        "quorate started"
    );
}

fn elector(
    election: Election,
    shared: &Shared,
    leadership: watch::Sender<Leadership>,
) -> LeaderElector {
    let Election { lease_namespace, lease_name, identity, timing } = election;
    LeaderElector {
        client: LeaseClient::new(shared.client.clone(), &lease_namespace, &lease_name),
        identity,
        timing,
        clock: shared.clock,
        gates: shared.gates.clone(),
        metrics: shared.metrics.clone(),
        leadership,
    }
}

/// The leader tasks, created again for each leadership term.
fn leader_tasks(
    shared: &Shared,
    webhooks: &WebhookMode,
    scope: &Scope,
    etcd: &Etcd,
    migration: MigrationMode,
) -> Vec<LeaderTask> {
    let mut leader_tasks = Vec::new();
    if let WebhookMode::Serve(webhooks) = webhooks {
        leader_tasks.extend(super::webhook_server::leader_task(webhooks, shared));
    }
    if let Scope::Cluster(mode) = scope {
        let access_controller = NamespaceAccessController {
            client: shared.client.clone(),
            leader_guard: shared.leader_guard.clone(),
            namespace: shared.namespace.clone(),
            mode: *mode,
            metrics: shared.metrics.clone(),
        };
        leader_tasks
            .push(LeaderTask { name: "namespace access", work: access_controller.run().boxed() });
        let migration_controller = StorageMigrationController {
            client: shared.client.clone(),
            leader_guard: shared.leader_guard.clone(),
            namespace: shared.namespace.clone(),
            mode: migration,
            clock: shared.clock,
            metrics: shared.metrics.clone(),
        };
        leader_tasks.push(LeaderTask {
            name: "storage migration",
            work: migration_controller.run().boxed(),
        });
    }
    let Etcd { agent_image, lifetimes } = etcd.clone();
    let controller = EtcdClusterController {
        client: shared.client.clone(),
        leader_guard: shared.leader_guard.clone(),
        namespace: match scope {
            Scope::Cluster(_) => None,
            Scope::Namespace(name) => Some(name.clone()),
        },
        agent_image,
        lifetimes,
        metrics: shared.metrics.clone(),
    };
    leader_tasks
        .push(LeaderTask { name: "etcd clusters", work: controllers(shared, scope, controller) });
    leader_tasks
}

/// The controllers of our kinds, run only while this release knows all stored versions of them. An
/// operator for one namespace has no permission to read CRDs: the installation that owns the CRDs
/// has its own guard.
fn controllers(
    shared: &Shared,
    scope: &Scope,
    controller: EtcdClusterController,
) -> BoxFuture<'static, ()> {
    let guard = StoredVersionGuard {
        client: shared.client.clone(),
        leader_guard: shared.leader_guard.clone(),
        metrics: shared.metrics.clone(),
    };
    match scope {
        Scope::Cluster(_) => guard.run_guarded(move || controller.clone().run().boxed()).boxed(),
        Scope::Namespace(_) => controller.run().boxed(),
    }
}

pub(super) fn log_failure(task: &'static str, exit: Result<(), JoinError>) {
    if let Err(error) = exit {
        tracing::error!(task, error = error_chain(&error), "task failed");
    }
}

pub(super) fn unexpected_exit(task: &'static str, exit: Result<(), JoinError>) -> anyhow::Error {
    match exit {
        Ok(()) => anyhow!("{task} exited unexpectedly"),
        Err(error) => anyhow!(error).context(format!("{task} failed")),
    }
}
