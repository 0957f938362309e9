//! Checks for conflicts with other software on the machine before a fresh cluster starts.

use std::net::{SocketAddrV4, TcpListener};
use std::path::Path;

use anyhow::{Result, bail};

use crate::paths::Paths;
use crate::progress::log;
use crate::settings::Network;
use crate::{command, network};

/// The ports of the components, on the node's address.
const PORTS: [u16; 9] = [2379, 2380, 6443, 10248, 10249, 10250, 10256, 10257, 10259];

/// Checks that need no resources of the cluster.
///
/// # Errors
/// If something on the machine conflicts with the cluster.
pub async fn check(paths: &Paths, network: &Network) -> Result<()> {
    if Path::new(paths.state()).is_symlink() {
        bail!(
            "{} is a symbolic link: mounts below it could not be found later; remove the link",
            paths.state().display()
        );
    }
    network::require_free_range(network).await?;
    let rules = command::output(command::command("nft").args(["list", "ruleset"])).await?;
    if rules.contains("table ip kube-proxy {") {
        bail!(
            "another kube-proxy has rules on this machine: two Kubernetes nodes cannot share one machine"
        );
    }
    if forwards_are_dropped(&rules) {
        log(
            "  warning: a firewall of this machine drops forwarded packets (Docker does that): pods may not reach each other",
        );
    }
    Ok(())
}

/// Checks that need the node's address: another process may listen on all addresses.
///
/// # Errors
/// If a port is taken.
pub fn check_ports(network: &Network) -> Result<()> {
    for port in PORTS {
        if let Err(error) = TcpListener::bind(SocketAddrV4::new(network.node, port)) {
            bail!(
                "port {port} is taken ({error}): another Kubernetes or etcd listens on all addresses of this machine; end it first"
            );
        }
    }
    Ok(())
}

fn forwards_are_dropped(rules: &str) -> bool {
    rules.lines().any(|line| line.contains("hook forward") && line.contains("policy drop"))
}

#[cfg(test)]
mod tests {
    use super::forwards_are_dropped;

    #[test]
    fn firewall_that_drops_forwarded_packets_is_detected() {
        let dropping = "\t\ttype filter hook forward priority filter; policy drop;";
        assert!(forwards_are_dropped(dropping));
        assert!(!forwards_are_dropped(&dropping.replace("drop", "accept")));
        assert!(!forwards_are_dropped(&dropping.replace("forward", "input")));
    }
}
