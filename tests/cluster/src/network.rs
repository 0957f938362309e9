//! The cluster's bridge, with the node's address and the route of the service range.
//!
//! The bridge has no ports. With it, traffic to a Service never leaves the machine by the default
//! route before kube-proxy has its rules, and the components listen on an address that no other
//! machine can reach.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::settings::Network;
use crate::{command, host, wait};

/// The name of the bridge.
pub const BRIDGE: &str = "quorate0";
/// The nftables tables of kube-proxy and of the e2e tests that isolate pods.
const TABLES: [(&str, &str); 3] =
    [("ip", "kube-proxy"), ("ip6", "kube-proxy"), ("inet", CUT_TABLE)];
/// The table with the rules of isolated pods.
pub const CUT_TABLE: &str = "quorate-cut";

/// Creates bridge, address and route, unless they exist.
///
/// # Errors
/// If the kernel rejects it.
pub async fn ensure(network: &Network) -> Result<()> {
    if !bridge_exists() {
        ip(&["link", "add", BRIDGE, "type", "bridge"]).await?;
    }
    ip(&["address", "replace", &format!("{}/32", network.node), "dev", BRIDGE]).await?;
    ip(&["link", "set", BRIDGE, "up"]).await?;
    let node = network.node.to_string();
    ip(&["route", "replace", &network.services, "dev", BRIDGE, "src", &node]).await
}

/// Removes the rules, the bridge with its route, and the remaining links of pods.
///
/// # Errors
/// If something cannot be removed.
pub async fn remove(network: &Network) -> Result<()> {
    if host::program("nft").is_some() {
        remove_tables(&TABLES).await?;
    }
    if bridge_exists() {
        ip(&["link", "delete", BRIDGE]).await?;
    }
    // A pod's link is removed with its network namespace, which the kernel does asynchronously.
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

/// Whether the bridge of a cluster exists.
#[must_use]
pub fn bridge_exists() -> bool {
    Path::new("/sys/class/net").join(BRIDGE).exists()
}

/// Reconnects the pods that a killed e2e test has left isolated.
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

/// The host ends of the pods' links: only devices that the CNI plugin creates.
async fn pod_links(network: &Network) -> Result<Vec<String>> {
    let to_pods = routes().await?.into_iter().filter(|route| {
        let to_one_pod = route.to.parse().is_ok_and(|address| network.is_pod(address));
        to_one_pod && route.link.starts_with("veth")
    });
    Ok(to_pods.map(|route| route.link).collect())
}

/// Fails if the machine has a route to an address of the range.
///
/// # Errors
/// If there is such a route, with its device.
pub async fn require_free_range(network: &Network) -> Result<()> {
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

/// Destination and device of a route, as `ip` prints them.
struct Route {
    to: String,
    link: String,
}

async fn routes() -> Result<Vec<Route>> {
    let mut show = command::command("ip");
    let listed = command::output(show.args(["-json", "-4", "route", "show"])).await?;
    let listed: Vec<Value> =
        serde_json::from_str(listed.trim()).context("`ip -json route` is not JSON")?;
    let field = |route: &Value, key: &str| {
        route.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let route = |route| Route { to: field(route, "dst"), link: field(route, "dev") };
    Ok(listed.iter().map(route).collect())
}

async fn ip(args: &[&str]) -> Result<()> {
    command::run("ip", args).await
}
