//! The cluster's own bridge, with the node's address and the route of the service range.
//!
//! The bridge has no ports. It is there so that traffic to a Service never leaves the machine by the
//! default route while kube-proxy is not there yet, and so that the parts have an address of their own
//! to listen on: nothing of the cluster can be reached from another machine.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::settings::Network;
use crate::{command, wait};

/// The bridge's name.
pub const BRIDGE: &str = "quorate0";
/// What kube-proxy writes its rules into, and what stories cut pods off with.
const TABLES: [(&str, &str); 3] = [
    ("ip", "kube-proxy"),
    ("ip6", "kube-proxy"),
    ("inet", CUT_TABLE),
];
/// The table of the pods that a story has cut off.
pub const CUT_TABLE: &str = "quorate-cut";

/// Makes bridge, address and route; what is there already is left alone.
///
/// # Errors
/// If the range is in use by somebody else, or the kernel refuses.
pub async fn ensure(network: &Network) -> Result<()> {
    if !bridge_exists() {
        refuse_taken_range(network).await?;
        ip(&["link", "add", BRIDGE, "type", "bridge"]).await?;
    }
    ip(&[
        "address",
        "replace",
        &format!("{}/32", network.node),
        "dev",
        BRIDGE,
    ])
    .await?;
    ip(&["link", "set", BRIDGE, "up"]).await?;
    let node = network.node.to_string();
    ip(&[
        "route",
        "replace",
        &network.services,
        "dev",
        BRIDGE,
        "src",
        &node,
    ])
    .await
}

/// Removes the rules, the bridge with its route, and what is left of the pods' links.
///
/// # Errors
/// If something stays.
pub async fn remove(network: &Network) -> Result<()> {
    if Path::new("/usr/sbin/nft").exists() {
        let tables = command::output(command::command("nft").args(["list", "tables"])).await?;
        for (family, table) in TABLES {
            if tables
                .lines()
                .any(|line| line == format!("table {family} {table}"))
            {
                command::run("nft", &["delete", "table", family, table]).await?;
            }
        }
    }
    if bridge_exists() {
        ip(&["link", "delete", BRIDGE]).await?;
    }
    // A pod's link goes with its network namespace, which the kernel takes down a moment later.
    let vanished = wait::until(
        "the pods' links to vanish",
        Duration::from_secs(5),
        || async {
            match pod_links(network).await?.first() {
                Some(link) => bail!("{link} is still there"),
                None => Ok(()),
            }
        },
    );
    if vanished.await.is_err() {
        for link in pod_links(network).await? {
            ip(&["link", "delete", &link]).await?;
        }
    }
    Ok(())
}

fn bridge_exists() -> bool {
    Path::new("/sys/class/net").join(BRIDGE).exists()
}

/// The host's ends of the pods' links: those that carry a route to a pod.
async fn pod_links(network: &Network) -> Result<Vec<String>> {
    let routes = routes().await?;
    let to_pods = routes
        .iter()
        .filter(|(to, _)| to.is_some_and(|to| network.is_pod(to)));
    Ok(to_pods.map(|(_, link)| link.clone()).collect())
}

async fn refuse_taken_range(network: &Network) -> Result<()> {
    let [a, b, _, _] = network.node.octets();
    let taken = routes().await?.into_iter().find(|(to, _)| {
        to.is_some_and(|to| matches!(to.octets(), [x, y, _, _] if x == a && y == b))
    });
    if let Some((_, link)) = taken {
        bail!(
            "{} is in use on this machine (by {link}): choose another range, for example QUORATE_CLUSTER_NETWORK=10.232",
            network.whole
        );
    }
    Ok(())
}

/// Destination and device of every route.
async fn routes() -> Result<Vec<(Option<Ipv4Addr>, String)>> {
    let listed =
        command::output(command::command("ip").args(["-json", "-4", "route", "show"])).await?;
    let listed: Vec<Value> =
        serde_json::from_str(listed.trim()).context("`ip -json route` is not JSON")?;
    let word = |route: &Value, key: &str| route.get(key).and_then(Value::as_str).map(str::to_owned);
    Ok(listed
        .iter()
        .map(|route| {
            let to = word(route, "dst").unwrap_or_default();
            let to = to
                .split('/')
                .next()
                .and_then(|address| address.parse().ok());
            (to, word(route, "dev").unwrap_or_default())
        })
        .collect())
}

async fn ip(args: &[&str]) -> Result<()> {
    command::run("ip", args).await
}
