//! An EtcdCluster is deleted, and its policy says what becomes of the rest.

use anyhow::{Result, ensure};
use quorate_harness::etcd_cluster::{Cluster, small, uids};
use quorate_harness::{Disturbs, Story};
use serde_json::json;

use super::{NEVER, RETURNS, SAYS, healthy, pod_uids, watched, with_operator, writes_go_on};

#[tokio::test(flavor = "multi_thread")]
async fn volumes_stay_and_a_cluster_of_the_same_name_says_so_and_touches_nothing() -> Result<()> {
    with_operator("etcd-retain", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |witnesses| writes_go_on(story, witnesses).await).await?;
        let volumes = uids(&cluster.claims().await?);
        ensure!(volumes.len() == 3, "{volumes:?}");
        cluster.delete().await?;
        is_gone(story, &cluster).await?;
        tokio::time::sleep(NEVER).await;
        ensure!(uids(&cluster.claims().await?) == volumes, "the volumes did not stay");

        let again = story.make_cluster("main", &small(3, &json!({}))).await?;
        says_volumes_are_there(story, &again, &volumes).await
    })
    .await
}

/// Waits until a new cluster says that it found volumes of an old one, and sees that it leaves them alone.
pub(super) async fn says_volumes_are_there(
    story: &Story,
    cluster: &Cluster,
    volumes: &[(String, String)],
) -> Result<()> {
    let (reason, words) = cluster.says(story, "Stalled", "True", SAYS).await?;
    println!("it says {reason}: {words}");
    for (name, _) in volumes {
        ensure!(words.contains(name), "{name} is not named: {words}");
    }
    tokio::time::sleep(NEVER).await;
    ensure!(uids(&cluster.claims().await?) == volumes, "the volumes were touched");
    ensure!(cluster.pods().await?.is_empty(), "something runs");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn volumes_go_with_a_cluster_that_is_deleted_with_its_data() -> Result<()> {
    with_operator("etcd-delete", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({"deletionPolicy": "Delete"})).await?;
        watched(&cluster, async |witnesses| writes_go_on(story, witnesses).await).await?;
        cluster.delete().await?;
        is_gone(story, &cluster).await?;
        story
            .wait_until("the volumes to be gone", RETURNS, async || {
                match cluster.claims().await.map_err(|error| format!("{error:#}"))?.len() {
                    0 => Ok(()),
                    left => Err(format!("{left} are there")),
                }
            })
            .await?;
        // Nothing of it is left, so another may take its name.
        healthy(story, 1, &json!({"deletionPolicy": "Delete"})).await.map(drop)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn members_that_are_disconnected_go_on_to_serve() -> Result<()> {
    with_operator("etcd-disconnect", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({"deletionPolicy": "Disconnect"})).await?;
        watched(&cluster, async |witnesses| {
            let before = cluster.user.listed().await?;
            let (pods, volumes) = (pod_uids(&cluster).await?, uids(&cluster.claims().await?));
            cluster.delete().await?;
            story
                .wait_until("the object to be gone", RETURNS, async || {
                    match cluster.objects.get_opt(&cluster.name).await {
                        Ok(None) => Ok(()),
                        other => Err(format!("{:?}", other.map(|it| it.is_some()))),
                    }
                })
                .await?;
            tokio::time::sleep(NEVER).await;
            writes_go_on(story, witnesses).await?;
            ensure!(cluster.user.well(3).await? == before, "the members are others");
            ensure!(pod_uids(&cluster).await? == pods, "the pods are others");
            ensure!(uids(&cluster.claims().await?) == volumes, "the volumes are others");
            Ok(())
        })
        .await?;
        Ok(())
    })
    .await
}

/// Waits until the object and all pods are gone.
async fn is_gone(story: &Story, cluster: &Cluster) -> Result<()> {
    story
        .wait_until("the cluster and its pods to be gone", RETURNS, async || {
            let object = cluster.objects.get_opt(&cluster.name).await;
            let object = object.map_err(|error| error.to_string())?.is_some();
            let pods = cluster.pods().await.map_err(|error| format!("{error:#}"))?.len();
            if !object && pods == 0 {
                Ok(())
            } else {
                Err(format!("object: {object}, pods: {pods}"))
            }
        })
        .await
}
