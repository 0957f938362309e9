//! The command line of the local cluster: `quorate-cluster up`, `down`, `reset` and others.

use std::fs::File;
use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use quorate_cluster::images::catalog;
use quorate_cluster::paths::Paths;
use quorate_cluster::progress::log;
use quorate_cluster::settings::{Choice, KUBERNETES_VERSIONS, Settings};
use quorate_cluster::{binaries, down, host, install, locks, reset, s3, up, volumes};

/// A real single-node Kubernetes on this machine, for Quorate's demo and tests.
#[derive(Parser)]
#[command(name = "quorate-cluster", version)]
struct Arguments {
    /// Kubernetes release, see `versions`; default is that of the running cluster, or the newest.
    #[arg(long, global = true, env = "QUORATE_CLUSTER_KUBERNETES")]
    kubernetes: Option<String>,
    /// The first two numbers of all addresses of the cluster; default 10.231.
    #[arg(long, global = true, env = "QUORATE_CLUSTER_NETWORK")]
    network: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start or repair the cluster; missing binaries and packages are built or installed.
    Up,
    /// Remove the cluster; only the cache remains.
    Down,
    /// Delete all objects that a fresh cluster does not have.
    Reset,
    /// Print the path of the admin kubeconfig.
    Kubeconfig,
    /// Print the folder with the binaries of Kubernetes, including kubectl.
    Programs,
    /// Print the supported Kubernetes releases.
    Versions,
    /// Build images and import them into the cluster; default is all images.
    Images {
        /// Image names, as in manifests.
        names: Vec<String>,
    },
    /// Start the S3 server in the cluster and print its endpoint.
    S3,
    /// Install the operator of this checkout into the cluster of the current kubeconfig, or the
    /// local one.
    Install,
    /// Serve the StorageClass; `up` starts this.
    #[command(hide = true)]
    Volumes,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log(&format!("\nquorate-cluster: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<()> {
    let paths = Paths::from_environment()?;
    let chosen = Choice { kubernetes: arguments.kubernetes, network: arguments.network };
    drop(rustls::crypto::ring::default_provider().install_default());
    match arguments.command {
        Command::Kubeconfig => print(&paths.kubeconfig("admin").display().to_string()),
        Command::Versions => print(&KUBERNETES_VERSIONS.join("\n")),
        Command::Programs => {
            let settings = Settings::read(&chosen, &paths)?;
            let folder = binaries::KUBERNETES.binaries(&settings.kubernetes, &paths).await?;
            print(&folder.display().to_string())
        }
        Command::Volumes => volumes::serve(&paths).await,
        command @ (Command::Up
        | Command::Down
        | Command::Reset
        | Command::Images { .. }
        | Command::S3
        | Command::Install) => {
            host::require_root()?;
            let _e2e = lock_out_e2e(&command, &paths)?;
            let _lock = locks::exclusive(&paths.lock(), || {
                log("  waiting for another quorate-cluster to finish");
            })?;
            // `down` removes any cluster, whatever its settings are.
            let chosen = if matches!(command, Command::Down) { Choice::default() } else { chosen };
            let settings = Settings::read(&chosen, &paths)?;
            change(command, &settings, &paths).await
        }
    }
}

/// `down` and `reset` wait until no e2e test runs.
fn lock_out_e2e(command: &Command, paths: &Paths) -> Result<Option<File>> {
    if !matches!(command, Command::Down | Command::Reset) {
        return Ok(None);
    }
    let lock = locks::exclusive(&paths.e2e_lock(), || {
        log("  waiting for running e2e tests");
    })?;
    Ok(Some(lock))
}

/// Runs a command that requires the lock.
async fn change(command: Command, settings: &Settings, paths: &Paths) -> Result<()> {
    match command {
        Command::Up => {
            up::up(settings, paths).await?;
            log("The cluster is up. Try: kubectl --kubeconfig $(make -s kubeconfig) get pods -A");
            Ok(())
        }
        Command::Down => down::down(paths).await,
        Command::Reset => reset::reset(settings, paths).await,
        Command::Images { names } => {
            let names = if names.is_empty() { catalog::names() } else { names };
            for name in names {
                catalog::image(&name, paths).await?.import(paths).await?;
            }
            Ok(())
        }
        Command::S3 => print(&s3::ensure(settings, paths).await?.endpoint),
        Command::Install => install::install(settings, paths).await,
        Command::Kubeconfig | Command::Programs | Command::Versions | Command::Volumes => Ok(()),
    }
}

fn print(line: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{line}").context("cannot write to standard output")
}
