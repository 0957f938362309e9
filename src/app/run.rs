//! `quorate run`: checks the settings, opens the house, and closes it when told to stop.
//! Comes in: the flags. Goes out: an exit code.
//! May touch: every room; `house` wires them.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use kube::Client;
use tokio::runtime::{Builder, Runtime};
use tokio::time;

use super::house::House;
use super::stop::Signals;
use super::{CUT_SHORT, FAILED, WRONG_SETTINGS, print};
use crate::cli::RunArgs;
use crate::ports;
use crate::settings::{Running, Settings, Surroundings, check};
use crate::telemetry::{self, chain};

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
    let Settings { log_format, log_filter, running } = settings;
    if let Err(error) = telemetry::start_logs(log_format, log_filter) {
        return failed(&anyhow!(error).context("failed to start the log"));
    }
    match operate(running, client, signals).await {
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

async fn operate(running: Running, client: Client, mut signals: Signals) -> Result<ExitCode> {
    let grace = running.shutdown_grace;
    let mut house = House::open(running, client).await?;
    let signal = tokio::select! {
        signal = signals.next() => signal,
        error = house.falls_apart() => return Err(error),
    };
    tracing::info!(signal, "stopping; a second signal ends the process at once");
    tokio::select! {
        ended = time::timeout(grace, house.close()) => {
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

fn failed(error: &anyhow::Error) -> ExitCode {
    print::complain(&format!("quorate: {error:#}\n"));
    ExitCode::from(FAILED)
}
