//! The front door of the local cluster: `quorate-cluster up`, `down`, `reset` and the rest.

use std::fs::File;
use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use quorate_cluster::images::catalog;
use quorate_cluster::places::Places;
use quorate_cluster::progress::say;
use quorate_cluster::settings::{Choice, KUBERNETES_VERSIONS, Settings};
use quorate_cluster::{demo, down, install, locks, machine, programs, reset, s3, up, volumes};

/// A real single-node Kubernetes on this machine, for Quorate's demo and tests.
#[derive(Parser)]
#[command(name = "quorate-cluster", version)]
struct Arguments {
    /// The Kubernetes release, one of those that `versions` prints; that of the cluster that runs, or else the
    /// newest.
    #[arg(long, global = true, env = "QUORATE_CLUSTER_KUBERNETES")]
    kubernetes: Option<String>,
    /// The first two numbers of all addresses of the cluster; 10.231 if nothing is said.
    #[arg(long, global = true, env = "QUORATE_CLUSTER_NETWORK")]
    network: Option<String>,
    #[command(subcommand)]
    wish: Wish,
}

#[derive(Subcommand)]
enum Wish {
    /// Start the cluster, or mend it; what is missing is built or installed.
    Up,
    /// End the cluster and remove everything of it but the cache.
    Down,
    /// Delete whatever was not there when the cluster was fresh.
    Reset,
    /// Print the path of the admin's kubeconfig.
    Kubeconfig,
    /// Print the folder of the programs of Kubernetes, kubectl among them.
    Programs,
    /// Print the Kubernetes releases that can be chosen.
    Versions,
    /// Build images and import them into the cluster: the named ones, or all.
    Images {
        /// Names as manifests write them.
        names: Vec<String>,
    },
    /// Start the S3 server in the cluster and print its endpoint.
    S3,
    /// Install the operator of this checkout into the cluster of the current kubeconfig, else into the local one.
    Install,
    /// Start the cluster, install the operator, and show what it can do.
    Demo,
    /// Serve the StorageClass; `up` starts this.
    #[command(hide = true)]
    Volumes,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("\nquorate-cluster: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<()> {
    let places = Places::from_environment()?;
    let chosen = Choice { kubernetes: arguments.kubernetes, network: arguments.network };
    drop(rustls::crypto::ring::default_provider().install_default());
    match arguments.wish {
        Wish::Kubeconfig => print(&places.kubeconfig("admin").display().to_string()),
        Wish::Versions => print(&KUBERNETES_VERSIONS.join("\n")),
        Wish::Programs => {
            let settings = Settings::read(&chosen, &places)?;
            let folder = programs::KUBERNETES.programs(&settings.kubernetes, &places).await?;
            print(&folder.display().to_string())
        }
        Wish::Volumes => volumes::serve(&places).await,
        wish @ (Wish::Up
        | Wish::Down
        | Wish::Reset
        | Wish::Images { .. }
        | Wish::S3
        | Wish::Install
        | Wish::Demo) => {
            machine::must_be_root()?;
            let _stories = takes_it_from_stories(&wish, &places)?;
            let _lock = locks::alone(&places.lock(), || {
                say("  waiting for another quorate-cluster to finish");
            })?;
            // `down` removes whatever is there, so it has nothing to choose.
            let chosen = if matches!(wish, Wish::Down) { Choice::default() } else { chosen };
            let settings = Settings::read(&chosen, &places)?;
            change(wish, &settings, &places).await
        }
    }
}

/// `down` and `reset` wait until no story runs; stories that run find the cluster as it was.
fn takes_it_from_stories(wish: &Wish, places: &Places) -> Result<Option<File>> {
    if !matches!(wish, Wish::Down | Wish::Reset) {
        return Ok(None);
    }
    let lock = locks::alone(&places.stories_lock(), || {
        say("  waiting for the stories that run on the cluster");
    })?;
    Ok(Some(lock))
}

/// What only one process may do at a time.
async fn change(wish: Wish, settings: &Settings, places: &Places) -> Result<()> {
    match wish {
        Wish::Up => {
            up::up(settings, places).await?;
            say("The cluster is up. Try: kubectl --kubeconfig $(make -s kubeconfig) get pods -A");
            Ok(())
        }
        Wish::Down => down::down(places).await,
        Wish::Reset => reset::reset(settings, places).await,
        Wish::Images { names } => {
            let names = if names.is_empty() { catalog::names() } else { names };
            for name in names {
                catalog::image(&name, places).await?.import(places).await?;
            }
            Ok(())
        }
        Wish::S3 => print(&s3::ensure(settings, places).await?.endpoint),
        Wish::Install => install::install(settings, places).await,
        Wish::Demo => demo::demo(settings, places).await,
        Wish::Kubeconfig | Wish::Programs | Wish::Versions | Wish::Volumes => Ok(()),
    }
}

fn print(line: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{line}").context("cannot write to standard output")
}
