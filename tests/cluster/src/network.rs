//! The cluster's own bridge, with the node's address and the route of the service range.
//!
//! The bridge has no ports. It is there so that traffic to a Service never leaves the machine by the
//! default route while kube-proxy is not there yet, and so that the parts have an address of their own
//! to listen on: nothing of the cluster can be reached from another machine.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::settings::Network;
use crate::{command, machine, wait};

/// The bridge's name.
pub const BRIDGE: &str = "quorate0";
/// What kube-proxy writes its rules into, and what stories cut pods off with.
const TABLES: [(&str, &str); 3] =
    [("ip", "kube-proxy"), ("ip6", "kube-proxy"), ("inet", CUT_TABLE)];
/// The table of the pods that a story has cut off.
pub const CUT_TABLE: &str = "quorate-cut";

/// Makes bridge, address and route; what is there already is left alone.
///
/// # Errors
/// If the kernel refuses.
pub async fn ensure(network: &Network) -> Result<()> {
    if !bridge_exists() {
        ip(&["link", "add", BRIDGE, "type", "bridge"]).await?;
    }
    ip(&["address", "replace", &format!("{}/32", network.node), "dev", BRIDGE]).await?;
    ip(&["link", "set", BRIDGE, "up"]).await?;
    let node = network.node.to_string();
    ip(&["route", "replace", &network.services, "dev", BRIDGE, "src", &node]).await
}

/// Removes the rules, the bridge with its route, and what is left of the pods' links.
///
/// # Errors
/// If something stays.
pub async fn remove(network: &Network) -> Result<()> {
    if machine::program("nft").is_some() {
        remove_tables(&TABLES).await?;
    }
    if bridge_exists() {
        ip(&["link", "delete", BRIDGE]).await?;
    }
    // A pod's link goes with its network namespace, which the kernel takes down a moment later.
    let vanished =
        wait::until("the pods' links to vanish", Duration::from_secs(5), async || match pod_links(
            network,
        )
        .await?
        .first()
        {
            Some(link) => bail!("{link} is still there"),
            None => Ok(()),
        });
    if vanished.await.is_err() {
        for link in pod_links(network).await? {
            ip(&["link", "delete", &link]).await?;
        }
    }
    Ok(())
}

/// True if a cluster of ours is there, or was.
#[must_use]
pub fn bridge_exists() -> bool {
    Path::new("/sys/class/net").join(BRIDGE).exists()
}

/// Connects the pods that a story has cut off and, being killed, left so.
///
/// # Errors
/// If the rules cannot be read or removed.
pub async fn connect_all() -> Result<()> {
    remove_tables(&[("inet", CUT_TABLE)]).await
}

async fn remove_tables(ours: &[(&str, &str)]) -> Result<()> {
    let present = command::output(command::command("nft").args(["list", "tables"])).await?;
    for (family, table) in ours {
        if present.lines().any(|line| line == format!("table {family} {table}")) {
            command::run("nft", &["delete", "table", family, table]).await?;
        }
    }
    Ok(())
}

/// The host's ends of the pods' links: as the CNI plugin makes them, and nothing else.
async fn pod_links(network: &Network) -> Result<Vec<String>> {
    let to_pods = routes().await?.into_iter().filter(|route| {
        let to_one_pod = route.to.parse().is_ok_and(|address| network.is_pod(address));
        to_one_pod && route.link.starts_with("veth")
    });
    Ok(to_pods.map(|route| route.link).collect())
}

/// Fails if the machine reaches somebody else by an address of the range.
///
/// # Errors
/// If so, with the device.
pub async fn refuse_taken_range(network: &Network) -> Result<()> {
    let [a, b, _, _] = network.node.octets();
    let range = format!("{a}.{b}.");
    let taken = routes().await?.into_iter().find(|route| route.to.starts_with(&range));
    if let Some(route) = taken {
        bail!(
            "{} is in use on this machine (a route of {}): choose another range, for example QUORATE_CLUSTER_NETWORK=10.232",
            network.whole,
            route.link
        );
    }
    Ok(())
}

/// Where a route leads, as `ip` writes it, and by which device.
struct Route {
    to: String,
    link: String,
}

async fn routes() -> Result<Vec<Route>> {
    let mut show = command::command("ip");
    let listed = command::output(show.args(["-json", "-4", "route", "show"])).await?;
    let listed: Vec<Value> =
        serde_json::from_str(listed.trim()).context("`ip -json route` is not JSON")?;
    let word = |route: &Value, key: &str| {
        route.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let route = |route| Route { to: word(route, "dst"), link: word(route, "dev") };
    Ok(listed.iter().map(route).collect())
}

async fn ip(args: &[&str]) -> Result<()> {
    command::run("ip", args).await
}
