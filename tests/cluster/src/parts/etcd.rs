//! The control plane's etcd: one member, TLS, on the node's address.

use anyhow::Result;

use super::{Plan, flags};
use crate::pki;
use crate::processes::Daemon;
use crate::settings::Network;

/// The part's name.
pub const NAME: &str = "etcd";

/// Where clients reach it.
#[must_use]
pub fn endpoint(network: &Network) -> String {
    format!("https://{}:2379", network.node)
}

/// How it runs.
///
/// # Errors
/// Never; the signature is that of all parts.
pub fn daemon(plan: &Plan<'_>) -> Result<Daemon> {
    let network = &plan.settings.network;
    let (ca, own) = (pki::pair(plan.places, "etcd-ca"), pki::pair(plan.places, "etcd"));
    let client = endpoint(network);
    let peer = format!("https://{}:2380", network.node);
    let mut args = flags([
        ("name", &"control-plane"),
        ("data-dir", &plan.places.etcd_data()),
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
        // The state is thrown away with the machine, and the disk belongs to the etcds under test.
        "--unsafe-no-fsync".into(),
    ]);
    Ok(Daemon { part: NAME, program: plan.etcd.join("etcd"), args, files: vec![own.cert] })
}
