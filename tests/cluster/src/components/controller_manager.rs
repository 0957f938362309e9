//! kube-controller-manager: every controller of Kubernetes itself, each under its own identity.

use anyhow::Result;

use super::{Plan, flags};
use crate::pki::key_pair;
use crate::processes::Daemon;

/// The component's name.
pub const NAME: &str = "kube-controller-manager";

/// The process to run.
///
/// # Errors
/// Never; all components have the same signature.
pub fn daemon(plan: &Plan<'_>) -> Result<Daemon> {
    let paths = plan.paths;
    let network = &plan.settings.network;
    let kubeconfig = paths.kubeconfig("controller-manager");
    let ca = key_pair(paths, "ca");
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
        ("service-account-private-key-file", &paths.pki().join("service-accounts.key")),
        ("use-service-account-credentials", &"true"),
        ("controllers", &"*,bootstrapsigner,tokencleaner"),
        // A single instance: no lease to wait for after a restart.
        ("leader-elect", &"false"),
        // A lost node is detected within the timeouts of the e2e tests.
        ("node-monitor-grace-period", &"20s"),
        ("profiling", &"false"),
    ]);
    let program = plan.kubernetes.join("kube-controller-manager");
    Ok(Daemon { component: NAME, program, args, files: vec![kubeconfig] })
}
