//! kube-scheduler with its default configuration.

use anyhow::Result;

use super::{Plan, flags};
use crate::processes::Daemon;

/// The component's name.
pub const NAME: &str = "kube-scheduler";

/// The process to run.
///
/// # Errors
/// Never; all components have the same signature.
pub fn daemon(plan: &Plan<'_>) -> Result<Daemon> {
    let kubeconfig = plan.paths.kubeconfig("scheduler");
    let args = flags([
        ("kubeconfig", &kubeconfig),
        ("authentication-kubeconfig", &kubeconfig),
        ("authorization-kubeconfig", &kubeconfig),
        ("bind-address", &plan.settings.network.node),
        // A single instance: no lease to wait for after a restart.
        ("leader-elect", &"false"),
        ("profiling", &"false"),
    ]);
    let program = plan.kubernetes.join("kube-scheduler");
    Ok(Daemon { component: NAME, program, args, files: vec![kubeconfig] })
}
