//! `quorate run`: wires the rooms, and takes them apart in order when told to stop.
//! Comes in: the flags. Goes out: an exit code.
//! May touch: every room. The order of the end is the policy: no longer ready, then whoever acts
//! as a leader, then the lease, and the probe port last, so that a replica which still lets go of
//! its lease is not taken for dead.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use kube::Client;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tokio::time;

use super::stop::{self, Signals, Stopper};
use super::{CUT_SHORT, FAILED, WRONG_SETTINGS, print};
use crate::api::names;
use crate::cli::RunArgs;
use crate::leadership::Leadership;
use crate::leadership::campaign::Campaign;
use crate::ports;
use crate::ports::clock::{self, Clock};
use crate::ports::lease::LeasePort;
use crate::settings::{Election, Settings, Surroundings, check};
use crate::telemetry::{self, Gate, Gates, LAST_ANSWERS, Metrics, Probes, chain};

/// A kubeconfig may name a program that hands out credentials, and that program may hang.
const FIND_LIMIT: Duration = Duration::from_secs(30);

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
    rustls::crypto::ring::default_provider().install_default().unwrap_or(());
    Builder::new_multi_thread().enable_all().build().context("failed to start the event loop")
}

async fn begin(args: &RunArgs) -> ExitCode {
    let mut signals = match Signals::install() {
        Ok(signals) => signals,
        Err(error) => return failed(&anyhow!(error).context("failed to handle signals")),
    };
    let cluster = tokio::select! {
        signal = signals.next() => {
            print::complain(&format!("quorate: ended by {signal} before it began\n"));
            return ExitCode::SUCCESS;
        }
        cluster = find_cluster() => cluster,
    };
    let (settings, client) = match check(args, &Surroundings::read(), cluster) {
        Ok(checked) => checked,
        Err(problems) => {
            print::complain(&problems.to_string());
            return ExitCode::from(WRONG_SETTINGS);
        }
    };
    let Settings { log_format, log_filter, listen, election, shutdown_grace } = settings;
    if let Err(error) = telemetry::start_logs(log_format, log_filter) {
        return failed(&anyhow!(error).context("failed to start the log"));
    }
    match operate(listen, election, client, signals, shutdown_grace).await {
        Ok(code) => code,
        Err(error) => {
            // The log has begun, so this belongs into it.
            tracing::error!(error = format!("{error:#}"), "quorate failed");
            ExitCode::from(FAILED)
        }
    }
}

/// In a task of its own, because a program that hands out credentials is waited for without a
/// pause, and signals must be heard meanwhile.
async fn find_cluster() -> Result<Client, String> {
    match time::timeout(FIND_LIMIT, tokio::spawn(ports::kube::client())).await {
        Ok(Ok(Ok(client))) => Ok(client),
        Ok(Ok(Err(error))) => Err(chain(&error)),
        Ok(Err(error)) => Err(chain(&error)),
        Err(time::error::Elapsed { .. }) => {
            Err(format!("it was not found within {} seconds", FIND_LIMIT.as_secs()))
        }
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

async fn operate(
    listen: SocketAddr,
    election: Election,
    client: Client,
    mut signals: Signals,
    grace: Duration,
) -> Result<ExitCode> {
    let mut house = open(listen, election, client).await?;
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
async fn open(listen: SocketAddr, election: Election, client: Client) -> Result<House> {
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("failed to listen on {listen}; is --listen in use already?"))?;
    let listen = listener.local_addr().context("failed to read the address of the probe port")?;
    let metrics = Metrics::new(clock::wall());
    let gates = Gates::new();
    let (told, _) = watch::channel(Leadership::Following);
    let Election { lease_namespace, lease_name, identity, timing } = election;
    tracing::info!(
        version = names::VERSION,
        %listen,
        identity,
        lease = format!("{lease_namespace}/{lease_name}"),
        "quorate runs"
    );
    let campaign = Campaign {
        port: LeasePort::new(client, &lease_namespace, &lease_name),
        identity,
        timing,
        clock: Clock::start(),
        gates: gates.clone(),
        metrics: metrics.clone(),
        told,
    };
    let (stop_servers, servers_stop) = stop::pair();
    let (stop_campaign, campaign_stop) = stop::pair();
    let probes = Probes { gates: gates.clone(), metrics };
    let servers = tokio::spawn(telemetry::serve(listener, probes, servers_stop.asked()));
    let campaign = tokio::spawn(campaign.run(campaign_stop.asked()));
    Ok(House { servers, campaign, stop_servers, stop_campaign, gates })
}

/// Closes the house, in order.
async fn close(house: House) {
    let House { servers, campaign, stop_servers, stop_campaign, gates } = house;
    // 1. No new work is sent here.
    gates.close(Gate::Running);
    // 2. Here everything that acts as a leader is stopped and waited for, while the lease is still
    //    renewed. There is nothing of the kind yet; what comes must not move below step 3.
    // 3. Nobody here acts as a leader any more, so the next replica may.
    stop_campaign.stop();
    ended("the election", campaign.await);
    // 4. Until now the probes were answered. A client that reads its answer slowly is not waited
    //    for: the lease is released, and all that matters is done.
    stop_servers.stop();
    if let Ok(end) = time::timeout(LAST_ANSWERS, servers).await {
        ended("the probe server", end);
    } else {
        tracing::info!("the probe port was closed on a client");
    }
}

fn ended(what: &'static str, end: Result<(), JoinError>) {
    if let Err(error) = end {
        tracing::error!(what, error = chain(&error), "ended badly");
    }
}

/// Nothing of ours ends by itself; if it does, the process must not live on as half of itself.
fn early(what: &'static str, end: Result<(), JoinError>) -> anyhow::Error {
    match end {
        Ok(()) => anyhow!("{what} ended though nobody had asked"),
        Err(error) => anyhow!(error).context(format!("{what} ended badly")),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    print::complain(&format!("quorate: {error:#}\n"));
    ExitCode::from(FAILED)
}
