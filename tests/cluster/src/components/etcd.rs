//! The control plane's etcd: one member, TLS, on the node's address.

use anyhow::Result;

use super::{Plan, flags};
use crate::pki;
use crate::processes::Daemon;
use crate::settings::Network;

/// The component's name.
pub const NAME: &str = "etcd";

/// The client URL.
#[must_use]
pub fn endpoint(network: &Network) -> String {
    format!("https://{}:2379", network.node)
}

/// The process to run.
///
/// # Errors
/// Never; all components have the same signature.
pub fn daemon(plan: &Plan<'_>) -> Result<Daemon> {
    let network = &plan.settings.network;
    let (ca, own) = (pki::key_pair(plan.paths, "etcd-ca"), pki::key_pair(plan.paths, "etcd"));
    let client = endpoint(network);
    let peer = format!("https://{}:2380", network.node);
    let mut args = flags([
        ("name", &"control-plane"),
        ("data-dir", &plan.paths.etcd_data()),
        ("listen-client-urls", &client),
        ("advertise-client-urls", &client),
        ("listen-peer-urls", &peer),
        ("initial-advertise-peer-urls", &peer),
        ("initial-cluster", &format!("control-plane={peer}")),
        ("cert-file", &own.cert),
        ("key-file", &own.key),
        ("trusted-ca-file", &ca.cert),
        ("peer-cert-file", &own.cert),
        ("peer-key-file", &own.key),
        ("peer-trusted-ca-file", &ca.cert),
        ("log-level", &"warn"),
    ]);
    args.extend([
        "--client-cert-auth".into(),
        "--peer-client-cert-auth".into(),
        // The state is disposable, and the disk bandwidth is for the etcd clusters under test.
        "--unsafe-no-fsync".into(),
    ]);
    Ok(Daemon { component: NAME, program: plan.etcd.join("etcd"), args, files: vec![own.cert] })
}
