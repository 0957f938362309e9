//! `make demo`: the cluster, the operator in it, and what it can do so far, as a user would see it.

mod etcd;

use std::io::Write;

use anyhow::Result;

use crate::install::{self, NAMESPACE};
use crate::kubectl::Kubectl;
use crate::places::Places;
use crate::settings::Settings;

/// Shows it.
///
/// # Errors
/// If the cluster or the operator does not come up.
pub async fn demo(settings: &Settings, places: &Places) -> Result<()> {
    say("A Kubernetes cluster on this machine, and Quorate in it.\n");
    let kubectl = Kubectl::admin(&settings.kubernetes, places).await?;
    install::install_local(settings, places, &kubectl).await?;

    say(
        "\nThe cluster is real: one node, with DNS, RBAC, Pod Security admission and volumes that can grow.",
    );
    show(&kubectl, &["get", "nodes,storageclasses"]).await?;
    say("\nThe operator runs twice, under the restricted Pod Security standard.");
    show(&kubectl, &["--namespace", NAMESPACE, "get", "deployments,pods,poddisruptionbudgets"])
        .await?;
    say("\nOne of the two holds the lease; if it dies, the other takes over.");
    show(&kubectl, &["--namespace", NAMESPACE, "get", "lease", "quorate"]).await?;
    say("\nWhat it says while it works:");
    show(&kubectl, &["--namespace", NAMESPACE, "logs", "deployment/quorate", "--tail=5"]).await?;
    etcd::etcd(places, &kubectl).await?;

    say("\nWhat to try next:");
    say("  export KUBECONFIG=$(make -s kubeconfig) PATH=$(make -s kubectl-path):$PATH");
    say(
        "  leader=$(kubectl -n quorate-system get lease quorate -o jsonpath='{.spec.holderIdentity}')",
    );
    say("  kubectl -n quorate-system delete pod ${leader%_*} --wait=false");
    say("  kubectl -n quorate-system get lease quorate --watch      # see who takes over");
    say("  kubectl -n quorate-demo scale etcd/main --replicas=5     # see two members join");
    say("  make test                                                # the proof of all of it");
    say("  make cluster-down                                        # leaves nothing behind");
    Ok(())
}

/// The demo is the output of its command, not a sign of life: it goes to standard output.
fn say(line: &str) {
    drop(writeln!(std::io::stdout(), "{line}"));
}

async fn show(kubectl: &Kubectl, args: &[&str]) -> Result<()> {
    say(&format!("\n$ kubectl {}", args.join(" ")));
    say(kubectl.run(args).await?.trim_end());
    Ok(())
}
