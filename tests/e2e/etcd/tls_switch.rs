//! Plaintext clusters, and TLS switched on and off while clients write: members first accept both
//! schemes, then the client Secret advertises the new one, and after the overlap the old one ends.
//! Peer URLs change one member at a time.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::ResourceExt;
use quorate::api::names;
use quorate_harness::etcd_cluster::Cluster;
use quorate_harness::{Isolation, TestContext};
use serde_json::{Value, json};

use super::operator_restart::while_leader_is_killed;
use super::{
    healthy_cluster, leader_and_follower, monitored, pods_recreated, same_members, with_operator,
    writes_continue,
};
use crate::installation::wait_rollout;

/// Four rolling updates of three members each, and the overlap for clients.
const SWITCH_TIMEOUT: Duration = Duration::from_mins(15);
const LISTEN_CLIENT_URLS: &str = "--listen-client-urls=";
const LISTEN_PEER_URLS: &str = "--listen-peer-urls=";

fn tls_sources(client: &str, peer: &str) -> Value {
    json!({"tls": {"client": {"source": client}, "peer": {"source": peer}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_without_tls_bootstraps_and_recreates_a_deleted_pod() -> Result<()> {
    with_operator("etcd-plain", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &tls_sources("Disabled", "Disabled")).await?;
        monitored(&cluster, async |monitors| {
            uses_schemes(ctx, &cluster, "http", "http").await?;
            let before = cluster.etcd.member_list().await?;
            let (_, follower) = leader_and_follower(&cluster).await?;
            let pod = cluster.pod(&follower).await?.uid().unwrap_or_default();
            cluster.delete_pods(std::slice::from_ref(&follower)).await?;
            pods_recreated(ctx, &cluster, &before, &[pod]).await?;
            writes_continue(ctx, monitors).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn client_tls_is_switched_on_and_off_without_losing_clients() -> Result<()> {
    with_operator("etcd-tls-clients", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &tls_sources("Disabled", "Managed")).await?;
        switch(ctx, &cluster, [("Managed", "Managed"), ("Disabled", "Managed")]).await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn peer_tls_is_switched_on_and_off_one_member_at_a_time() -> Result<()> {
    with_operator("etcd-tls-peers", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &tls_sources("Managed", "Disabled")).await?;
        switch(ctx, &cluster, [("Managed", "Managed"), ("Managed", "Disabled")]).await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn tls_switch_is_reverted_half_way() -> Result<()> {
    with_operator("etcd-tls-reverted", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &tls_sources("Disabled", "Disabled")).await?;
        monitored(&cluster, async |monitors| {
            let before = cluster.etcd.member_list().await?;
            cluster.edit(&tls_sources("Managed", "Managed")).await?;
            wait_first_listener(ctx, &cluster, LISTEN_PEER_URLS, "https://").await?;
            cluster.edit(&tls_sources("Disabled", "Disabled")).await?;
            cluster.wait_updated(ctx, 3, SWITCH_TIMEOUT).await?;
            uses_schemes(ctx, &cluster, "http", "http").await?;
            same_members(&cluster, &before).await?;
            writes_continue(ctx, monitors).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn tls_is_switched_on_although_the_leader_is_killed_repeatedly() -> Result<()> {
    with_operator("etcd-tls-killed", Isolation::Serial, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &tls_sources("Disabled", "Disabled")).await?;
        monitored(&cluster, async |monitors| {
            // While no replica leads, the status is not updated.
            monitors.invariants.allow_stale_status(true);
            let before = cluster.etcd.member_list().await?;
            cluster.edit(&tls_sources("Managed", "Managed")).await?;
            while_leader_is_killed(ctx, cluster.wait_updated(ctx, 3, SWITCH_TIMEOUT)).await?;
            uses_schemes(ctx, &cluster, "https", "https").await?;
            same_members(&cluster, &before).await
        })
        .await?;
        wait_rollout(ctx).await
    })
    .await
}

/// Switches from one combination of client and peer TLS to the next.
async fn switch(ctx: &TestContext, cluster: &Cluster, steps: [(&str, &str); 2]) -> Result<()> {
    monitored(cluster, async |monitors| {
        let before = cluster.etcd.member_list().await?;
        for (client, peer) in steps {
            cluster.edit(&tls_sources(client, peer)).await?;
            cluster
                .wait_updated(ctx, 3, SWITCH_TIMEOUT)
                .await
                .with_context(|| format!("{client} {peer}"))?;
            let scheme = |source| if source == "Disabled" { "http" } else { "https" };
            uses_schemes(ctx, cluster, scheme(client), scheme(peer)).await?;
            same_members(cluster, &before).await?;
            writes_continue(ctx, monitors).await?;
        }
        Ok(())
    })
    .await?;
    Ok(())
}

/// Fails unless every pod, every EtcdMember and the client Secret use exactly these schemes.
async fn uses_schemes(
    ctx: &TestContext,
    cluster: &Cluster,
    client: &str,
    peer: &str,
) -> Result<()> {
    let pods = cluster.pods().await?;
    for pod in &pods {
        let name = pod.name_any();
        let (clients, peers) =
            (flag_value(pod, LISTEN_CLIENT_URLS), flag_value(pod, LISTEN_PEER_URLS));
        ensure!(clients == format!("{client}://0.0.0.0:2379"), "{name}: client URLs {clients}");
        ensure!(peers == format!("{peer}://0.0.0.0:2380"), "{name}: peer URLs {peers}");
        let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.clone()).unwrap_or_default();
        let secrets = volumes.iter().filter_map(|volume| volume.secret.as_ref()).count();
        let needed = usize::from(client == "https" || peer == "https");
        ensure!(secrets == needed, "{name} has {secrets} Secrets instead of {needed}");
    }
    let secret = names::client_secret(&cluster.name);
    let data = ctx.api::<Secret>().get(&secret).await?.data.unwrap_or_default();
    let uri = data.get("uri").map(|bytes| String::from_utf8_lossy(&bytes.0).into_owned());
    let uri = uri.unwrap_or_default();
    ensure!(uri.starts_with(&format!("{client}://")), "the client Secret advertises {uri}");
    ensure!(data.contains_key("tls.key") == (client == "https"), "keys: {:?}", data.keys());
    let path = "jsonpath={.items[*].spec['peerURL','clientURL']}";
    let urls = ctx.kubectl(&["get", "etcdmembers", "--output", path]).await?;
    for url in urls.split_whitespace() {
        let scheme = if url.ends_with("2379") { client } else { peer };
        ensure!(url.starts_with(&format!("{scheme}://")), "{url} is not {scheme}");
    }
    Ok(())
}

/// Waits until the first member listens with this scheme.
async fn wait_first_listener(
    ctx: &TestContext,
    cluster: &Cluster,
    flag: &str,
    scheme: &str,
) -> Result<()> {
    ctx.wait_until("the first member to listen with the new scheme", SWITCH_TIMEOUT, async || {
        let pods = cluster.pods().await.map_err(|error| format!("{error:#}"))?;
        let all: Vec<String> = pods.iter().map(|pod| flag_value(pod, flag)).collect();
        if all.iter().any(|value| value.contains(scheme)) {
            Ok(())
        } else {
            Err(format!("{all:?}"))
        }
    })
    .await
}

/// The value of a flag of etcd in a pod.
fn flag_value(pod: &Pod, flag: &str) -> String {
    let containers = pod.spec.as_ref().map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let mut all = containers.iter().flat_map(|container| container.args.iter().flatten());
    all.find_map(|arg| arg.strip_prefix(flag)).unwrap_or_default().to_owned()
}
