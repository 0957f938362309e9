//! More members, fewer members, none, and back: one by one, and always with all data.

use anyhow::{Context, Result, ensure};
use quorate_harness::etcd_cluster::{Cluster, uids};
use quorate_harness::{Disturbs, Story};
use serde_json::json;

use super::{COMES, NEVER, RETURNS, healthy, ids, watched, with_operator};

#[tokio::test(flavor = "multi_thread")]
async fn three_become_five_three_and_one_by_edit_and_by_kubectl_scale() -> Result<()> {
    with_operator("etcd-scale", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |_| {
            scaled(story, &cluster, 5).await?;
            edited(story, &cluster, 3).await?;
            scaled(story, &cluster, 1).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn three_become_five_three_one_three_four_and_three() -> Result<()> {
    with_operator("etcd-scale-long", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |_| {
            edited(story, &cluster, 5).await?;
            scaled(story, &cluster, 3).await?;
            edited(story, &cluster, 1).await?;
            scaled(story, &cluster, 3).await?;
            edited(story, &cluster, 4).await?;
            scaled(story, &cluster, 3).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn a_change_of_mind_on_the_way_leads_to_the_last_number() -> Result<()> {
    with_operator("etcd-in-flight", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |_| {
            cluster.edit(&json!({"replicas": 5})).await?;
            tokio::time::sleep(std::time::Duration::from_secs(3)).await;
            edited(story, &cluster, 1).await?;
            cluster.edit(&json!({"replicas": 5})).await?;
            cluster.edit(&json!({"replicas": 3})).await?;
            edited(story, &cluster, 3).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_sleeps_on_its_volumes_and_wakes_as_the_same_cluster() -> Result<()> {
    with_operator("etcd-sleep", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |_| {
            let before = cluster.user.listed().await?;
            let volumes = uids(&cluster.claims().await?);
            cluster.edit(&json!({"replicas": 0})).await?;
            nobody_runs(story, &cluster).await?;
            tokio::time::sleep(NEVER).await;
            nobody_runs(story, &cluster).await.context("while it sleeps")?;
            ensure!(uids(&cluster.claims().await?) == volumes, "the volumes are others");
            cluster.edit(&json!({"replicas": 3})).await?;
            let after = cluster.comes(story, 3, COMES).await?;
            ensure!(after.cluster == before.cluster, "it woke as another cluster");
            ensure!(ids(&after) == ids(&before), "{before:?} woke as {after:?}");
            Ok(())
        })
        .await?;
        Ok(())
    })
    .await
}

async fn nobody_runs(story: &Story, cluster: &Cluster) -> Result<()> {
    story
        .wait_until("all pods to be gone", RETURNS, async || {
            match cluster.pods().await.map_err(|error| format!("{error:#}"))?.len() {
                0 => Ok(()),
                left => Err(format!("{left} pods are there")),
            }
        })
        .await
}

async fn edited(story: &Story, cluster: &Cluster, replicas: usize) -> Result<()> {
    cluster.edit(&json!({"replicas": replicas})).await?;
    cluster.comes(story, replicas, COMES).await.map(drop)
}

async fn scaled(story: &Story, cluster: &Cluster, replicas: usize) -> Result<()> {
    let object = format!("etcdclusters/{}", cluster.name);
    story.kubectl(&["scale", &object, &format!("--replicas={replicas}")]).await?;
    cluster.comes(story, replicas, COMES).await.map(drop)
}
