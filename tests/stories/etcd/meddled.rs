//! Somebody deletes what belongs to a cluster, on purpose or not: it is made again, and nothing is lost.
//! Secrets are not among it: the operator does not watch them, and may take an hour to miss one.

use anyhow::{Context, Result, ensure};
use quorate::api::names;
use quorate_harness::etcd_cluster::Cluster;
use quorate_harness::{Disturbs, Story};
use serde_json::json;

use super::{
    COMES, RETURNS, healthy, ids, leader_and_follower, watched, with_operator, writes_go_on,
};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn services_and_the_budget_of_a_cluster_are_made_again_when_they_are_deleted() -> Result<()> {
    with_operator("etcd-meddled", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |witnesses| {
            let things = [
                format!("service/{}", cluster.name),
                format!("service/{}", names::client_service(&cluster.name)),
                format!("poddisruptionbudget/{}", cluster.name),
            ];
            for thing in things {
                made_again(story, &thing).await.with_context(|| thing.clone())?;
                writes_go_on(story, witnesses).await?;
            }
            cluster.comes(story, 3, COMES).await.map(drop)
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn a_member_whose_object_is_deleted_is_the_same_member_again() -> Result<()> {
    with_operator("etcd-adopted", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |_| {
            let before = cluster.user.listed().await?;
            let (leader, _) = leader_and_follower(&cluster).await?;
            made_again(story, &format!("etcdmember/{leader}")).await?;
            returned(story, &cluster, &leader).await?;
            let after = cluster.comes(story, 3, COMES).await?;
            ensure!(ids(&after) == ids(&before), "{before:?} became {after:?}");
            Ok(())
        })
        .await?;
        Ok(())
    })
    .await
}

/// Waits until the member has a pod again: it went with its object.
async fn returned(story: &Story, cluster: &Cluster, member: &str) -> Result<()> {
    story
        .wait_until("the member to have a pod again", RETURNS, async || {
            cluster.pod(member).await.map(drop).map_err(|error| format!("{error:#}"))
        })
        .await
}

/// Deletes something, and waits until there is another of its name.
async fn made_again(story: &Story, thing: &str) -> Result<()> {
    let uid = "--output=jsonpath={.metadata.uid}";
    let old = story.kubectl(&["get", thing, uid]).await?;
    story.kubectl(&["delete", thing, "--wait=false"]).await?;
    story
        .wait_until(&format!("another {thing}"), RETURNS, async || {
            match story.kubectl(&["get", thing, uid]).await {
                Ok(now) if now != old => Ok(()),
                Ok(_) => Err("it is the old one".to_owned()),
                Err(error) => Err(format!("{error:#}")),
            }
        })
        .await
}
