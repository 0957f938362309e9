//! Before a fresh cluster starts: is anything of somebody else's in its way? Says what, and what to do.

use std::net::{SocketAddrV4, TcpListener};
use std::path::Path;

use anyhow::{Result, bail};

use crate::places::Places;
use crate::progress::say;
use crate::settings::Network;
use crate::{command, network};

/// The ports on which the parts listen, each at the node's own address.
const PORTS: [u16; 9] = [2379, 2380, 6443, 10248, 10249, 10250, 10256, 10257, 10259];

/// What can be seen before anything is made.
///
/// # Errors
/// If the cluster cannot live beside what is there.
pub async fn check(places: &Places, network: &Network) -> Result<()> {
    if Path::new(places.state()).is_symlink() {
        bail!(
            "{} is a symbolic link: what is mounted below it could not be found again; remove the link",
            places.state().display()
        );
    }
    network::refuse_taken_range(network).await?;
    let rules = command::output(command::command("nft").args(["list", "ruleset"])).await?;
    if rules.contains("table ip kube-proxy {") {
        bail!(
            "another kube-proxy has its rules on this machine: two Kubernetes nodes cannot share one"
        );
    }
    if forwards_are_dropped(&rules) {
        say(
            "  warning: a firewall of this machine drops forwarded packets (Docker does that): pods may not reach each other",
        );
    }
    Ok(())
}

/// What can be seen only when the node has its address: a stranger that listens on all addresses.
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
    fn a_firewall_that_drops_forwarded_packets_is_noticed() {
        let dropping = "\t\ttype filter hook forward priority filter; policy drop;";
        assert!(forwards_are_dropped(dropping));
        assert!(!forwards_are_dropped(&dropping.replace("drop", "accept")));
        assert!(!forwards_are_dropped(&dropping.replace("forward", "input")));
    }
}
