//! Certificates end, and others have taken their place before.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use quorate::api::names;
use quorate_harness::etcd::EtcdUser;
use quorate_harness::etcd_cluster::{Cluster, names as members_of};
use quorate_harness::{Disturbs, Story};
use serde_json::json;

use super::{healthy, return_to, watched, with_operator, writes_go_on};
use crate::installed::{gone, told};

/// The shortest that the operator takes: a pod hears of a renewed certificate after two minutes.
const LIFE: &str = "--etcd-leaf-lifetime=10m";
/// When the first certificates have ended.
const ENDED: Duration = Duration::from_mins(11);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn certificates_are_renewed_before_they_end_and_nobody_is_cut_off() -> Result<()> {
    with_operator("etcd-certificates", Disturbs::Everything, async |story| {
        told(story, &[LIFE]).await?;
        let outcome = renewed(story).await;
        // The next story wants an operator as it is installed.
        let left = gone(story).await;
        outcome.and(left)
    })
    .await
}

async fn renewed(story: &Story) -> Result<()> {
    let cluster = healthy(story, 3, &json!({})).await?;
    watched(&cluster, async |witnesses| {
        let before = cluster.user.listed().await?;
        let old = certificates(story, &cluster).await?;
        let begun = Instant::now();
        // Who is connected stays connected, so each look is that of somebody new.
        while begun.elapsed() < ENDED {
            tokio::time::sleep(Duration::from_secs(20)).await;
            let stranger = EtcdUser::of_cluster(&story.client, &cluster.namespace, &cluster.name);
            let well = stranger.well(3).await;
            well.with_context(|| format!("after {:.0?}", begun.elapsed()))?;
        }
        let new = certificates(story, &cluster).await?;
        for (name, certificate) in &old {
            let now = new.iter().find(|(it, _)| it == name);
            ensure!(now.is_some_and(|(_, it)| it != certificate), "{name} was not renewed");
        }
        // The same among the members: one after the other has to be let in again.
        for member in members_of(&before) {
            let pod = cluster.pod(&member).await?.metadata.uid.unwrap_or_default();
            cluster.lose_pods(std::slice::from_ref(&member)).await?;
            return_to(story, &cluster, &before, &[pod]).await?;
        }
        writes_go_on(story, witnesses).await
    })
    .await?;
    Ok(())
}

/// What the Secrets of the cluster hold, by their names.
async fn certificates(story: &Story, cluster: &Cluster) -> Result<Vec<(String, Vec<Vec<u8>>)>> {
    let listed = cluster.user.listed().await?;
    let mut wanted: Vec<String> =
        members_of(&listed).iter().map(|it| names::member_secret(it)).collect();
    wanted.push(names::client_secret(&cluster.name));
    let mut found = Vec::new();
    for name in wanted {
        let data = story.api::<Secret>().get(&name).await?.data.unwrap_or_default();
        let is_certificate = |key: &str| key.contains(".crt") && !key.contains("ca.");
        let all = data.into_iter().filter(|(key, _)| is_certificate(key));
        found.push((name, all.map(|(_, bytes)| bytes.0).collect()));
    }
    Ok(found)
}
