//! kube-scheduler, as it comes.

use anyhow::Result;

use super::{Plan, flags};
use crate::processes::Daemon;

/// The part's name.
pub const NAME: &str = "kube-scheduler";

/// How it runs.
///
/// # Errors
/// Never; the signature is that of all parts.
pub fn daemon(plan: &Plan<'_>) -> Result<Daemon> {
    let kubeconfig = plan.places.kubeconfig("scheduler");
    let args = flags([
        ("kubeconfig", &kubeconfig),
        ("authentication-kubeconfig", &kubeconfig),
        ("authorization-kubeconfig", &kubeconfig),
        ("bind-address", &plan.settings.network.node),
        // There is one of it: no lease to wait for after a restart.
        ("leader-elect", &"false"),
        ("profiling", &"false"),
    ]);
    let program = plan.kubernetes.join("kube-scheduler");
    Ok(Daemon { part: NAME, program, args, files: vec![kubeconfig] })
}
