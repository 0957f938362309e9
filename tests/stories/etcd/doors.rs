//! Connections without TLS, and TLS switched on and off while clients go on: first members take both ways, then the Secret for
//! applications says the new one, then there is time, then the old one ends. Members change how they call each other one by one.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::ResourceExt;
use quorate::api::names;
use quorate_harness::etcd_cluster::Cluster;
use quorate_harness::{Disturbs, Story};
use serde_json::{Value, json};

use super::interrupted::while_it_dies;
use super::{
    are_the_same, healthy, leader_and_follower, return_to, watched, with_operator, writes_go_on,
};
use crate::installed::rolled_out;

/// Four rounds of three members each, and the time that clients have to follow.
const PATIENCE: Duration = Duration::from_mins(15);
const CLIENTS: &str = "--listen-client-urls=";
const PEERS: &str = "--listen-peer-urls=";

fn sides(client: &str, peer: &str) -> Value {
    json!({"tls": {"client": {"source": client}, "peer": {"source": peer}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_tls_is_founded_and_a_member_comes_back_to_it() -> Result<()> {
    with_operator("etcd-plain", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &sides("Disabled", "Disabled")).await?;
        watched(&cluster, async |witnesses| {
            called(story, &cluster, "http", "http").await?;
            let before = cluster.user.listed().await?;
            let (_, follower) = leader_and_follower(&cluster).await?;
            let pod = cluster.pod(&follower).await?.uid().unwrap_or_default();
            cluster.lose_pods(std::slice::from_ref(&follower)).await?;
            return_to(story, &cluster, &before, &[pod]).await?;
            writes_go_on(story, witnesses).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn tls_for_clients_is_switched_on_and_off_and_nobody_is_cut_off() -> Result<()> {
    with_operator("etcd-tls-clients", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &sides("Disabled", "Managed")).await?;
        switched(story, &cluster, [("Managed", "Managed"), ("Disabled", "Managed")]).await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn tls_among_members_is_switched_on_and_off_one_by_one() -> Result<()> {
    with_operator("etcd-tls-peers", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &sides("Managed", "Disabled")).await?;
        switched(story, &cluster, [("Managed", "Managed"), ("Managed", "Disabled")]).await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn a_switch_is_taken_back_half_way() -> Result<()> {
    with_operator("etcd-tls-back", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &sides("Disabled", "Disabled")).await?;
        watched(&cluster, async |witnesses| {
            let before = cluster.user.listed().await?;
            cluster.edit(&sides("Managed", "Managed")).await?;
            one_listens(story, &cluster, PEERS, "https://").await?;
            cluster.edit(&sides("Disabled", "Disabled")).await?;
            cluster.is_updated(story, 3, PATIENCE).await?;
            called(story, &cluster, "http", "http").await?;
            are_the_same(&cluster, &before).await?;
            writes_go_on(story, witnesses).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn an_operator_that_is_killed_again_and_again_switches_tls_on() -> Result<()> {
    with_operator("etcd-tls-killed", Disturbs::Everything, async |story| {
        let cluster = healthy(story, 3, &sides("Disabled", "Disabled")).await?;
        watched(&cluster, async |witnesses| {
            // While nobody leads, nobody can keep the status true.
            witnesses.watchman.be_lenient(true);
            let before = cluster.user.listed().await?;
            cluster.edit(&sides("Managed", "Managed")).await?;
            while_it_dies(story, cluster.is_updated(story, 3, PATIENCE)).await?;
            called(story, &cluster, "https", "https").await?;
            are_the_same(&cluster, &before).await
        })
        .await?;
        rolled_out(story).await
    })
    .await
}

/// Goes from one to the other under the eyes of those who watch.
async fn switched(story: &Story, cluster: &Cluster, ways: [(&str, &str); 2]) -> Result<()> {
    watched(cluster, async |witnesses| {
        let before = cluster.user.listed().await?;
        for (client, peer) in ways {
            cluster.edit(&sides(client, peer)).await?;
            cluster
                .is_updated(story, 3, PATIENCE)
                .await
                .with_context(|| format!("{client} {peer}"))?;
            let word = |source| if source == "Disabled" { "http" } else { "https" };
            called(story, cluster, word(client), word(peer)).await?;
            are_the_same(cluster, &before).await?;
            writes_go_on(story, witnesses).await?;
        }
        Ok(())
    })
    .await?;
    Ok(())
}

/// Fails unless every pod, the members' objects and the Secret for applications say this, and nothing else.
async fn called(story: &Story, cluster: &Cluster, client: &str, peer: &str) -> Result<()> {
    let pods = cluster.pods().await?;
    for pod in &pods {
        let name = pod.name_any();
        let (clients, peers) = (told(pod, CLIENTS), told(pod, PEERS));
        ensure!(clients == format!("{client}://0.0.0.0:2379"), "{name} takes {clients}");
        ensure!(peers == format!("{peer}://0.0.0.0:2380"), "{name} is called {peers}");
        let volumes = pod.spec.as_ref().and_then(|it| it.volumes.clone()).unwrap_or_default();
        let secrets = volumes.iter().filter_map(|it| it.secret.as_ref()).count();
        let needed = usize::from(client == "https" || peer == "https");
        ensure!(secrets == needed, "{name} has {secrets} Secrets instead of {needed}");
    }
    let binding = names::client_secret(&cluster.name);
    let data = story.api::<Secret>().get(&binding).await?.data.unwrap_or_default();
    let uri = data.get("uri").map(|it| String::from_utf8_lossy(&it.0).into_owned());
    let uri = uri.unwrap_or_default();
    ensure!(uri.starts_with(&format!("{client}://")), "applications are told {uri}");
    ensure!(data.contains_key("tls.key") == (client == "https"), "keys: {:?}", data.keys());
    let path = "jsonpath={.items[*].spec['peerURL','clientURL']}";
    let urls = story.kubectl(&["get", "etcdmembers", "--output", path]).await?;
    for url in urls.split_whitespace() {
        let scheme = if url.ends_with("2379") { client } else { peer };
        ensure!(url.starts_with(&format!("{scheme}://")), "{url} is not {scheme}");
    }
    Ok(())
}

/// Waits until the first member listens so.
async fn one_listens(story: &Story, cluster: &Cluster, flag: &str, scheme: &str) -> Result<()> {
    story
        .wait_until("the first member to listen in the new way", PATIENCE, async || {
            let pods = cluster.pods().await.map_err(|error| format!("{error:#}"))?;
            let all: Vec<String> = pods.iter().map(|pod| told(pod, flag)).collect();
            if all.iter().any(|it| it.contains(scheme)) { Ok(()) } else { Err(format!("{all:?}")) }
        })
        .await
}

/// What a pod was told by a flag.
fn told(pod: &Pod, flag: &str) -> String {
    let containers = pod.spec.as_ref().map(|it| it.containers.as_slice()).unwrap_or_default();
    let mut all = containers.iter().flat_map(|it| it.args.iter().flatten());
    all.find_map(|it| it.strip_prefix(flag)).unwrap_or_default().to_owned()
}
