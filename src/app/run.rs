//! `quorate run`: wires the rooms, and takes them apart in order when told to stop.
//! Comes in: the flags. Goes out: an exit code.
//! May touch: every room. The order of the end is the policy: no longer ready, then the servers
//! drain, then the lease goes; whoever looks last sees a replica that has truly finished.

use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use kube::Client;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time;

use super::stop::{self, Signals, Stopper};
use super::{CUT_SHORT, FAILED, WRONG_SETTINGS, print};
use crate::api::names;
use crate::cli::RunArgs;
use crate::leadership::Leadership;
use crate::leadership::campaign::Campaign;
use crate::ports::clock::{self, Clock};
use crate::ports::lease::LeasePort;
use crate::settings::{Settings, Surroundings, check};
use crate::telemetry::{self, Gate, Gates, Metrics, Probes, chain};

/// Runs the operator.
pub(super) fn run(args: &RunArgs) -> ExitCode {
    match runtime() {
        Ok(runtime) => {
            let code = runtime.block_on(begin(args));
            // Whatever still hangs after the grace must not hold the process.
            runtime.shutdown_background();
            code
        }
        Err(error) => failed(&error),
    }
}

fn runtime() -> Result<Runtime> {
    // An error only says that a provider is installed already, which is all we want.
    rustls::crypto::ring::default_provider()
        .install_default()
        .unwrap_or(());
    Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the event loop")
}

async fn begin(args: &RunArgs) -> ExitCode {
    let signals = match Signals::install() {
        Ok(signals) => signals,
        Err(error) => return failed(&anyhow!(error).context("failed to handle signals")),
    };
    let found = crate::ports::kube::client().await;
    let no_cluster = found.as_ref().err().map(|error| chain(error));
    let (settings, client) = match (check(args, &Surroundings::read(no_cluster)), found) {
        (Ok(settings), Ok(client)) => (settings, client),
        (Err(problems), _) => {
            print::complain(&problems.to_string());
            return ExitCode::from(WRONG_SETTINGS);
        }
        (Ok(_), Err(error)) => return failed(&anyhow!(error)),
    };
    match operate(settings, client, signals).await {
        Ok(code) => code,
        Err(error) => failed(&error),
    }
}

/// Everything that runs until the process is told to stop.
struct House {
    servers: JoinHandle<()>,
    campaign: JoinHandle<()>,
    stop_servers: Stopper,
    stop_campaign: Stopper,
    gates: Gates,
}

async fn operate(settings: Settings, client: Client, mut signals: Signals) -> Result<ExitCode> {
    telemetry::start_logs(settings.log_format, &settings.log_filter)
        .context("failed to start the log")?;
    let grace = settings.shutdown_grace;
    let mut house = open(settings, client).await?;
    let signal = tokio::select! {
        signal = signals.next() => signal,
        ended = &mut house.servers => return Err(early("the probe server", ended)),
        ended = &mut house.campaign => return Err(early("the election", ended)),
    };
    tracing::info!(signal, "stopping; a second signal ends the process at once");
    tokio::select! {
        ended = time::timeout(grace, close(house)) => {
            if ended.is_err() {
                tracing::warn!(grace_seconds = grace.as_secs_f64(), "the grace is over");
            }
            tracing::info!("stopped");
            Ok(ExitCode::SUCCESS)
        }
        signal = signals.next() => {
            tracing::warn!(signal, "stopped at once");
            Ok(ExitCode::from(CUT_SHORT))
        }
    }
}

/// Opens the house: after this the probes are answered and the election has begun.
async fn open(settings: Settings, client: Client) -> Result<House> {
    let listener = TcpListener::bind(settings.listen).await.with_context(|| {
        format!(
            "failed to listen on {}; is --listen in use already?",
            settings.listen
        )
    })?;
    let listen = listener
        .local_addr()
        .context("failed to read the address of the probe port")?;
    let metrics = Metrics::new(clock::wall());
    let gates = Gates::new();
    let (told, _) = watch::channel(Leadership::Following);
    let campaign = Campaign {
        port: LeasePort::new(client, &settings.lease_namespace, &settings.lease_name),
        identity: settings.identity,
        timing: settings.timing,
        clock: Clock::start(),
        gates: gates.clone(),
        metrics: metrics.clone(),
        told,
    };
    tracing::info!(
        version = names::VERSION,
        %listen,
        identity = campaign.identity,
        lease = format!("{}/{}", settings.lease_namespace, settings.lease_name),
        "quorate runs"
    );
    let (stop_servers, servers_stop) = stop::pair();
    let (stop_campaign, campaign_stop) = stop::pair();
    let probes = Probes {
        gates: gates.clone(),
        metrics,
    };
    let servers = tokio::spawn(telemetry::serve(listener, probes, servers_stop.asked()));
    let campaign = tokio::spawn(campaign.run(campaign_stop.asked()));
    Ok(House {
        servers,
        campaign,
        stop_servers,
        stop_campaign,
        gates,
    })
}

/// Closes the house, in order.
async fn close(house: House) {
    let House {
        servers,
        campaign,
        stop_servers,
        stop_campaign,
        gates,
    } = house;
    gates.close(Gate::Running);
    stop_servers.stop();
    ended("the probe server", servers.await);
    stop_campaign.stop();
    ended("the election", campaign.await);
}

fn ended(what: &'static str, end: Result<(), tokio::task::JoinError>) {
    if let Err(error) = end {
        tracing::error!(what, error = chain(&error), "ended badly");
    }
}

/// Nothing of ours ends by itself; if it does, the process must not live on as half of itself.
fn early(what: &'static str, end: Result<(), tokio::task::JoinError>) -> anyhow::Error {
    match end {
        Ok(()) => anyhow!("{what} ended though nobody had asked"),
        Err(error) => anyhow!(error).context(format!("{what} ended badly")),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    print::complain(&format!("quorate: {error:#}\n"));
    ExitCode::from(FAILED)
}
