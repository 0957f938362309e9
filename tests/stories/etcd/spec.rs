//! A spec that cannot be carried out is said to be so, does no harm, and is forgotten as soon as it is taken back.

use anyhow::{Result, ensure};
use quorate_harness::etcd_cluster::{Cluster, small};
use quorate_harness::{Disturbs, Story};
use serde_json::{Value, json};

use super::{
    COMES, NEVER, SAYS, healthy, ids, leader_and_follower, watched, with_operator, writes_go_on,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_no_node_takes_comes_up_once_the_selector_is_taken_back() -> Result<()> {
    with_operator("etcd-selector", Disturbs::Nothing, async |story| {
        let bad = json!({"placement": {"nodeSelector": {"example.com/no": "node"}}});
        let cluster = waits_with_words(story, &bad).await?;
        cluster.edit(&json!({"placement": null})).await?;
        watched(&cluster, async |_| cluster.comes(story, 3, COMES).await.map(drop)).await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn a_cluster_whose_image_is_nowhere_comes_up_once_it_is_taken_back() -> Result<()> {
    with_operator("etcd-image", Disturbs::Nothing, async |story| {
        let bad = json!({"image": {"repository": "registry.example/no/etcd"}});
        let cluster = waits_with_words(story, &bad).await?;
        let good = json!({"image": {"repository": "gcr.io/etcd-development/etcd"}});
        cluster.edit(&good).await?;
        watched(&cluster, async |_| cluster.comes(story, 3, COMES).await.map(drop)).await?;
        Ok(())
    })
    .await
}

/// A class cannot be changed later, so another cluster takes its place.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn a_storage_class_that_is_not_there_is_named_and_leaves_nothing_behind() -> Result<()> {
    with_operator("etcd-class", Disturbs::Nothing, async |story| {
        let bad = json!({"storage": {"className": "no-such-class"}, "deletionPolicy": "Delete"});
        let cluster = waits_with_words(story, &bad).await?;
        cluster.delete().await?;
        story
            .wait_until("nothing to be left of it", COMES, async || {
                let pods = cluster.pods().await.map_err(|error| format!("{error:#}"))?;
                let claims = cluster.claims().await.map_err(|error| format!("{error:#}"))?;
                let object = cluster.objects.get_opt("main").await;
                let object = object.map_err(|error| error.to_string())?;
                match (pods.len(), claims.len(), object) {
                    (0, 0, None) => Ok(()),
                    (pods, claims, _) => Err(format!("{pods} pods, {claims} claims")),
                }
            })
            .await?;
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |witnesses| writes_go_on(story, witnesses).await).await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn a_bad_edit_of_a_running_cluster_costs_no_quorum_and_can_be_taken_back() -> Result<()> {
    with_operator("etcd-bad-edit", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |witnesses| {
            let before = cluster.user.listed().await?;
            let bad = json!({"placement": {"nodeSelector": {"example.com/no": "node"}}});
            // It may be refused, it may wait; it must not take members down.
            if let Err(refused) = cluster.edit(&bad).await {
                println!("refused: {refused:#}");
                return Ok(());
            }
            tokio::time::sleep(NEVER).await;
            writes_go_on(story, witnesses).await?;
            cluster.edit(&json!({"placement": null})).await?;
            let after = cluster.comes(story, 3, COMES).await?;
            ensure!(after.cluster == before.cluster, "it is another cluster");
            Ok(())
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn a_paused_cluster_is_left_alone_until_it_goes_on() -> Result<()> {
    with_operator("etcd-paused", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |witnesses| {
            let before = cluster.user.listed().await?;
            cluster.edit(&json!({"paused": true})).await?;
            cluster.says(story, "Paused", "True", SAYS).await?;
            let (_, follower) = leader_and_follower(&cluster).await?;
            cluster.lose_pods(std::slice::from_ref(&follower)).await?;
            tokio::time::sleep(NEVER).await;
            ensure!(cluster.pod(&follower).await.is_err(), "a paused cluster was mended");
            writes_go_on(story, witnesses).await?;
            cluster.edit(&json!({"paused": false})).await?;
            let after = cluster.comes(story, 3, COMES).await?;
            ensure!(ids(&after) == ids(&before), "{before:?} became {after:?}");
            Ok(())
        })
        .await?;
        Ok(())
    })
    .await
}

/// Makes a cluster that cannot come up, and waits until it says why.
async fn waits_with_words(story: &Story, bad: &Value) -> Result<Cluster> {
    let cluster = story.make_cluster("main", &small(3, bad)).await?;
    let (reason, words) = cluster.says(story, "Ready", "False", SAYS).await?;
    // Not only on its first visit: it must still know what it waits for.
    tokio::time::sleep(NEVER).await;
    let (later, still) = cluster.says(story, "Ready", "False", SAYS).await?;
    println!("first {reason}: {words}\nthen {later}: {still}");
    ensure!(!words.is_empty() && !still.is_empty(), "it does not say what it waits for");
    Ok(cluster)
}
