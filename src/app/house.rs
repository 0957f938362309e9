//! The house: everything that runs until the process is told to stop, opened and closed in order.
//! Comes in: checked settings and a client. Goes out: running tasks, and their orderly end.
//! May touch: every room. The order of the end is the policy: no longer ready, then whoever acts as
//! a leader, then the lease, while the webhooks still answer whoever has not heard of it; and the
//! probe port last, so that a replica which still lets go of its lease is not taken for dead.

use anyhow::{Context, Result, anyhow};
use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tokio::time;

use super::door::Door;
use super::leading::{Duty, Terms};
use super::stop::{self, Stopper};
use crate::api::leadership::Leadership;
use crate::api::names;
use crate::etcd_cluster::Control;
use crate::grants::Steward;
use crate::leadership::campaign::Campaign;
use crate::ports::clock::{self, Clock};
use crate::ports::lease::LeasePort;
use crate::ports::mandate::Mandate;
use crate::settings::{Election, Etcd, Running, Scope, Served};
use crate::storage_migration::{Guard, Keeper, Way};
use crate::telemetry::{self, Gate, Gates, LAST_ANSWERS, Metrics, Probes, chain};

/// What the rooms share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) client: Client,
    /// The operator's own namespace.
    pub(super) namespace: String,
    pub(super) clock: Clock,
    pub(super) gates: Gates,
    pub(super) metrics: Metrics,
    pub(super) mandate: Mandate,
}

/// Everything that runs.
pub(super) struct House {
    probes: JoinHandle<()>,
    campaign: JoinHandle<()>,
    duties: JoinHandle<Result<()>>,
    door: Option<Door>,
    stop_probes: Stopper,
    stop_campaign: Stopper,
    stop_duties: Stopper,
    gates: Gates,
}

impl House {
    /// Opens the house: after this the probes are answered, the webhooks too, and the election has
    /// begun.
    pub(super) async fn open(running: Running, client: Client) -> Result<Self> {
        let Running { listen, election, webhooks, scope, etcd, migration, shutdown_grace: _ } =
            running;
        let listener = TcpListener::bind(listen).await.with_context(|| {
            format!("failed to listen on {listen}; is --listen in use already?")
        })?;
        let gates = Gates::new(&[match webhooks {
            Served::Here(_) => Gate::Certificate,
            Served::Elsewhere => Gate::KubernetesApi,
        }]);
        let (told, asked) = watch::channel(Leadership::Following);
        let clock = Clock::start();
        let shared = Shared {
            client,
            namespace: election.lease_namespace.clone(),
            clock,
            gates: gates.clone(),
            metrics: Metrics::new(clock::wall()),
            mandate: Mandate::new(asked.clone(), clock),
        };
        tell_opened(&listener, &election, &scope);
        let (stop_probes, probes_stop) = stop::pair();
        let (stop_campaign, campaign_stop) = stop::pair();
        let (stop_duties, duties_stop) = stop::pair();
        let probes = Probes { gates: gates.clone(), metrics: shared.metrics.clone() };
        let probes = tokio::spawn(telemetry::serve(listener, probes, probes_stop.asked()));
        let door = match &webhooks {
            Served::Here(webhooks) => Some(Door::open(webhooks, &shared).await?),
            Served::Elsewhere => None,
        };
        let campaign = campaign(election, &shared, told);
        let campaign = tokio::spawn(campaign.run(campaign_stop.asked()));
        let terms = Terms { told: asked, clock };
        let duties = move || duties(&shared, &webhooks, &scope, &etcd, migration);
        let duties = tokio::spawn(terms.serve(duties, duties_stop.asked()));
        Ok(Self { probes, campaign, duties, door, stop_probes, stop_campaign, stop_duties, gates })
    }

    /// Is done when something ends that should not: then the process must not live on as a part of
    /// itself.
    pub(super) async fn falls_apart(&mut self) -> anyhow::Error {
        let door = async {
            match &mut self.door {
                Some(door) => door.falls_apart().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            ended = &mut self.probes => early("the probe server", ended),
            ended = &mut self.campaign => early("the election", ended),
            ended = &mut self.duties => match ended {
                Ok(Err(error)) => error,
                Ok(Ok(())) => early("the leader's work", Ok(())),
                Err(error) => early("the leader's work", Err(error)),
            },
            error = door => error,
        }
    }

    /// Closes the house, in order.
    pub(super) async fn close(self) {
        let Self { probes, campaign, duties, door, stop_probes, stop_campaign, stop_duties, gates } =
            self;
        // 1. No new work is sent here, as soon as everybody has heard of it.
        gates.close(Gate::Running);
        let leaves = async {
            // 2. Everything that acts as a leader ends, while the lease is still renewed.
            stop_duties.stop();
            match duties.await {
                Ok(Err(error)) => tracing::error!(error = format!("{error:#}"), "ended badly"),
                Ok(Ok(())) => {}
                Err(error) => ended("the leader's work", Err(error)),
            }
            // 3. Nobody here acts as a leader any more, so the next replica may.
            stop_campaign.stop();
            ended("the election", campaign.await);
        };
        let drains = async {
            if let Some(door) = door {
                door.close().await;
            }
        };
        tokio::join!(leaves, drains);
        // 4. Until now the probes were answered. A client that reads its answer slowly is not waited
        //    for: the lease is released, and all that matters is done.
        stop_probes.stop();
        if let Ok(end) = time::timeout(LAST_ANSWERS, probes).await {
            ended("the probe server", end);
        } else {
            tracing::info!("the probe port was closed on a client");
        }
    }
}

fn tell_opened(listener: &TcpListener, election: &Election, scope: &Scope) {
    let Election { lease_name, lease_namespace, identity, timing: _ } = election;
    // The port that was found, if any port was asked for.
    let listen = listener.local_addr().map(|it| it.to_string()).unwrap_or_default();
    let watches = match scope {
        Scope::Cluster(_) => "all namespaces",
        Scope::Namespace(name) => name.as_str(),
    };
    tracing::info!(
        version = names::VERSION,
        listen,
        identity,
        watches,
        lease = format!("{lease_namespace}/{lease_name}"),
        "quorate runs"
    );
}

fn campaign(election: Election, shared: &Shared, told: watch::Sender<Leadership>) -> Campaign {
    let Election { lease_namespace, lease_name, identity, timing } = election;
    Campaign {
        port: LeasePort::new(shared.client.clone(), &lease_namespace, &lease_name),
        identity,
        timing,
        clock: shared.clock,
        gates: shared.gates.clone(),
        metrics: shared.metrics.clone(),
        told,
    }
}

/// What the leader does, begun anew with each term.
fn duties(
    shared: &Shared,
    webhooks: &Served,
    scope: &Scope,
    etcd: &Etcd,
    migration: Way,
) -> Vec<Duty> {
    let mut duties = Vec::new();
    if let Served::Here(webhooks) = webhooks {
        duties.extend(super::door::duty(webhooks, shared));
    }
    if let Scope::Cluster(way) = scope {
        let steward = Steward {
            client: shared.client.clone(),
            mandate: shared.mandate.clone(),
            namespace: shared.namespace.clone(),
            way: *way,
            metrics: shared.metrics.clone(),
        };
        duties.push(Duty { name: "the grants", work: steward.run().boxed() });
        let keeper = Keeper {
            client: shared.client.clone(),
            mandate: shared.mandate.clone(),
            namespace: shared.namespace.clone(),
            way: migration,
            clock: shared.clock,
            metrics: shared.metrics.clone(),
        };
        duties.push(Duty { name: "the stored objects", work: keeper.run().boxed() });
    }
    let Etcd { agent_image, lifetimes } = etcd.clone();
    let control = Control {
        client: shared.client.clone(),
        mandate: shared.mandate.clone(),
        namespace: match scope {
            Scope::Cluster(_) => None,
            Scope::Namespace(name) => Some(name.clone()),
        },
        agent_image,
        lifetimes,
        metrics: shared.metrics.clone(),
    };
    duties.push(Duty { name: "the etcd clusters", work: controllers(shared, scope, control) });
    duties
}

/// What works on objects of ours, as long as this release knows all versions in which they are stored. Whoever looks after
/// one namespace has no right to see the definitions: the installation that owns them has its own guard.
fn controllers(shared: &Shared, scope: &Scope, control: Control) -> BoxFuture<'static, ()> {
    let guard = Guard {
        client: shared.client.clone(),
        mandate: shared.mandate.clone(),
        metrics: shared.metrics.clone(),
    };
    match scope {
        Scope::Cluster(_) => guard.protect(move || control.clone().run().boxed()).boxed(),
        Scope::Namespace(_) => control.run().boxed(),
    }
}

pub(super) fn ended(what: &'static str, end: Result<(), JoinError>) {
    if let Err(error) = end {
        tracing::error!(what, error = chain(&error), "ended badly");
    }
}

pub(super) fn early(what: &'static str, end: Result<(), JoinError>) -> anyhow::Error {
    match end {
        Ok(()) => anyhow!("{what} ended though nobody had asked"),
        Err(error) => anyhow!(error).context(format!("{what} ended badly")),
    }
}
