//! The webhooks' part of the house: the port, and whoever keeps its certificate good.
//! Comes in: the settings of the webhooks, and what the rooms share. Goes out: running tasks, and
//! their end: first everybody is asked to connect elsewhere, then the port is closed.
//! May touch: `webhook`, `certificates`, `ports`.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::FutureExt;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time;

use super::house::{Shared, early, ended};
use super::leading::Duty;
use super::stop::{self, Stop, Stopper};
use crate::certificates::Outlook;
use crate::certificates::files::Files;
use crate::certificates::keep::Keep;
use crate::certificates::rotate::Rotate;
use crate::ports::identity::Identity;
use crate::settings::{Certificates, Webhooks};
use crate::webhook::serve;

/// The port and its certificate, running.
pub(super) struct Door {
    server: JoinHandle<()>,
    keeper: JoinHandle<()>,
    drain: Stopper,
    stop_server: Stopper,
    stop_keeper: Stopper,
    drain_time: Duration,
}

impl Door {
    /// Opens the port. Until there is a certificate every handshake fails, and the replica is not
    /// ready.
    pub(super) async fn open(webhooks: &Webhooks, shared: &Shared) -> Result<Self> {
        let listen = webhooks.listen;
        let listener = TcpListener::bind(listen).await.with_context(|| {
            format!("failed to listen on {listen}; is --webhook-listen in use already?")
        })?;
        let identity = Identity::default();
        let door = serve::Door::new(identity.clone(), shared.metrics.webhook())?;
        let (drain, draining) = stop::pair();
        let (stop_server, server_stop) = stop::pair();
        let (stop_keeper, keeper_stop) = stop::pair();
        let keeper = keeper(webhooks, shared, identity, keeper_stop);
        let server = serve::serve(listener, door, draining.asked(), server_stop.asked());
        let server = tokio::spawn(server);
        tracing::info!(%listen, "the webhooks are served");
        Ok(Self { server, keeper, drain, stop_server, stop_keeper, drain_time: webhooks.drain })
    }

    /// Is done when a task ends that should not.
    pub(super) async fn falls_apart(&mut self) -> anyhow::Error {
        tokio::select! {
            ended = &mut self.server => early("the webhook server", ended),
            ended = &mut self.keeper => early("the keeper of the certificate", ended),
        }
    }

    /// Closes the port after a while in which everybody learns to connect elsewhere: the API server
    /// hears of the end at the same time as we do, and keeps connections for later.
    pub(super) async fn close(self) {
        let Self { server, keeper, drain, stop_server, stop_keeper, drain_time } = self;
        drain.stop();
        time::sleep(drain_time).await;
        stop_server.stop();
        ended("the webhook server", server.await);
        stop_keeper.stop();
        ended("the keeper of the certificate", keeper.await);
    }
}

fn outlook(shared: &Shared) -> Outlook {
    Outlook::new(shared.client.clone(), &shared.namespace)
}

fn keeper(webhooks: &Webhooks, shared: &Shared, identity: Identity, stop: Stop) -> JoinHandle<()> {
    let (gates, metrics) = (shared.gates.clone(), shared.metrics.clone());
    match &webhooks.certificates {
        Certificates::Files(folder) => {
            let files = Files { folder: folder.clone(), identity, gates, metrics };
            tokio::spawn(files.run(stop.asked()))
        }
        Certificates::BuiltIn(lifetimes) => {
            let keep = Keep {
                outlook: outlook(shared),
                lifetimes: *lifetimes,
                clock: shared.clock,
                identity,
                gates,
                metrics,
            };
            tokio::spawn(keep.run(stop.asked()))
        }
    }
}

/// What the leader does for the certificates of all replicas.
pub(super) fn duty(webhooks: &Webhooks, shared: &Shared) -> Option<Duty> {
    let lifetimes = match &webhooks.certificates {
        Certificates::Files(_) => return None,
        Certificates::BuiltIn(lifetimes) => *lifetimes,
    };
    let rotate = Rotate {
        outlook: outlook(shared),
        lifetimes,
        clock: shared.clock,
        mandate: shared.mandate.clone(),
        metrics: shared.metrics.clone(),
    };
    // It is aborted when the term ends; it needs no other end.
    Some(Duty { name: "the authorities", work: rotate.run(std::future::pending()).boxed() })
}
