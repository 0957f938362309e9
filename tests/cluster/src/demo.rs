//! `make demo`: the cluster, the operator, and its features as a user sees them.

mod etcd;

use std::io::Write;

use anyhow::Result;

use crate::install::{self, NAMESPACE};
use crate::kubectl::Kubectl;
use crate::paths::Paths;
use crate::settings::Settings;

/// Runs the demo.
///
/// # Errors
/// If the cluster or the operator does not become ready.
pub async fn demo(settings: &Settings, paths: &Paths) -> Result<()> {
    print("A Kubernetes cluster on this machine, and Quorate in it.\n");
    let kubectl = Kubectl::admin(&settings.kubernetes, paths).await?;
    install::install_local(settings, paths, &kubectl).await?;

    print(
        "\nThe cluster is real: one node, with DNS, RBAC, Pod Security admission and volumes that can grow.",
    );
    show(&kubectl, &["get", "nodes,storageclasses"]).await?;
    print("\nThe operator has two replicas, under the restricted Pod Security standard.");
    show(&kubectl, &["--namespace", NAMESPACE, "get", "deployments,pods,poddisruptionbudgets"])
        .await?;
    print("\nOne replica holds the lease; the other acquires it if the first one fails.");
    show(&kubectl, &["--namespace", NAMESPACE, "get", "lease", "quorate"]).await?;
    print("\nThe log of the operator:");
    show(&kubectl, &["--namespace", NAMESPACE, "logs", "deployment/quorate", "--tail=5"]).await?;
    etcd::etcd(paths, &kubectl).await?;

    print("\nWhat to try next:");
    print("  export KUBECONFIG=$(make -s kubeconfig) PATH=$(make -s kubectl-path):$PATH");
    print(
        "  leader=$(kubectl -n quorate-system get lease quorate -o jsonpath='{.spec.holderIdentity}')",
    );
    print("  kubectl -n quorate-system delete pod ${leader%_*} --wait=false");
    print(
        "  kubectl -n quorate-system get lease quorate --watch      # the other replica acquires it",
    );
    print(
        "  kubectl -n quorate-demo scale etcd/main --replicas=5     # two members join, one at a time",
    );
    print("  make test                                                # all tests");
    print("  make cluster-down                                        # remove the cluster");
    Ok(())
}

/// The demo is the output of the command, not its progress, and goes to standard output.
fn print(line: &str) {
    drop(writeln!(std::io::stdout(), "{line}"));
}

async fn show(kubectl: &Kubectl, args: &[&str]) -> Result<()> {
    print(&format!("\n$ kubectl {}", args.join(" ")));
    print(kubectl.run(args).await?.trim_end());
    Ok(())
}
