//! kube-controller-manager: every controller of Kubernetes itself, each under its own identity.

use anyhow::Result;

use super::{Plan, flags};
use crate::pki::pair;
use crate::processes::Daemon;

/// The part's name.
pub const NAME: &str = "kube-controller-manager";

/// How it runs.
///
/// # Errors
/// Never; the signature is that of all parts.
pub fn daemon(plan: &Plan<'_>) -> Result<Daemon> {
    let places = plan.places;
    let network = &plan.settings.network;
    let kubeconfig = places.kubeconfig("controller-manager");
    let ca = pair(places, "ca");
    let args = flags([
        ("kubeconfig", &kubeconfig),
        ("authentication-kubeconfig", &kubeconfig),
        ("authorization-kubeconfig", &kubeconfig),
        ("bind-address", &network.node),
        ("cluster-cidr", &network.pods),
        ("service-cluster-ip-range", &network.services),
        ("cluster-signing-cert-file", &ca.cert),
        ("cluster-signing-key-file", &ca.key),
        ("root-ca-file", &ca.cert),
        ("service-account-private-key-file", &places.pki().join("service-accounts.key")),
        ("use-service-account-credentials", &"true"),
        ("controllers", &"*,bootstrapsigner,tokencleaner"),
        // There is one of it: no lease to wait for after a restart.
        ("leader-elect", &"false"),
        // A lost node should be noticed within a story's patience.
        ("node-monitor-grace-period", &"20s"),
        ("profiling", &"false"),
    ]);
    let program = plan.kubernetes.join("kube-controller-manager");
    Ok(Daemon { part: NAME, program, args, files: vec![kubeconfig] })
}
