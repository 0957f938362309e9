//! `quorate run`: checks the settings, starts the operator, and shuts it down on a signal.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use kube::Client;
use tokio::runtime::{Builder, Runtime};
use tokio::time;

use super::runtime::Runtime as Operator;
use super::shutdown::Signals;
use super::{FAILED, INTERRUPTED, INVALID_SETTINGS, print};
use crate::cli::RunArgs;
use crate::clients;
use crate::settings::{Environment, RunConfig, Settings, check};
use crate::telemetry::{self, error_chain};

/// A kubeconfig may name an exec credential plugin, and that plugin may hang.
const CONFIG_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs the operator.
pub(super) fn run(args: &RunArgs) -> ExitCode {
    match runtime() {
        Ok(runtime) => {
            let code = runtime.block_on(start(args));
            // A task that still blocks after the grace period must not keep the process alive.
            runtime.shutdown_background();
            code
        }
        Err(error) => failed(&error),
    }
}

fn runtime() -> Result<Runtime> {
    // An error only means that a provider is installed already.
    rustls::crypto::ring::default_provider().install_default().unwrap_or(());
    Builder::new_multi_thread().enable_all().build().context("failed to start the async runtime")
}

async fn start(args: &RunArgs) -> ExitCode {
    let mut signals = match Signals::install() {
        Ok(signals) => signals,
        Err(error) => return failed(&anyhow!(error).context("failed to handle signals")),
    };
    let cluster = tokio::select! {
        signal = signals.next() => {
            print::stderr(&format!("quorate: stopped by {signal} before startup\n"));
            return ExitCode::SUCCESS;
        }
        cluster = find_cluster() => cluster,
    };
    let (settings, client) = match check(args, &Environment::read(), cluster) {
        Ok(checked) => checked,
        Err(errors) => {
            print::stderr(&errors.to_string());
            return ExitCode::from(INVALID_SETTINGS);
        }
    };
    let Settings { log_format, log_filter, config } = settings;
    if let Err(error) = telemetry::start_logs(log_format, log_filter) {
        return failed(&anyhow!(error).context("failed to start the log"));
    }
    match run_until_signal(config, client, signals).await {
        Ok(code) => code,
        Err(error) => {
            // The log is started, so the error is logged.
            tracing::error!(error = format!("{error:#}"), "quorate failed");
            ExitCode::from(FAILED)
        }
    }
}

/// In a task of its own, because an exec credential plugin blocks the thread, and signals must be
/// handled meanwhile.
async fn find_cluster() -> Result<Client, String> {
    match time::timeout(CONFIG_TIMEOUT, tokio::spawn(clients::kube::client())).await {
        Ok(Ok(Ok(client))) => Ok(client),
        Ok(Ok(Err(error))) => Err(error_chain(&error)),
        Ok(Err(error)) => Err(error_chain(&error)),
        Err(time::error::Elapsed { .. }) => {
            Err(format!("no cluster configuration within {} seconds", CONFIG_TIMEOUT.as_secs()))
        }
    }
}

async fn run_until_signal(
    config: RunConfig,
    client: Client,
    mut signals: Signals,
) -> Result<ExitCode> {
    let grace = config.shutdown_grace;
    let mut operator = Operator::start(config, client).await?;
    let signal = tokio::select! {
        signal = signals.next() => signal,
        error = operator.wait_for_failure() => return Err(error),
    };
    tracing::info!(signal, "shutting down; a second signal exits immediately");
    tokio::select! {
        ended = time::timeout(grace, operator.shutdown()) => {
            if ended.is_err() {
                let grace_seconds = grace.as_secs_f64();
                tracing::warn!(grace_seconds, "shutdown grace period exceeded");
            }
            tracing::info!("stopped");
            Ok(ExitCode::SUCCESS)
        }
        signal = signals.next() => {
            tracing::warn!(signal, "exited immediately");
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    print::stderr(&format!("quorate: {error:#}\n"));
    ExitCode::from(FAILED)
}
