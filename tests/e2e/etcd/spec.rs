//! A spec that cannot be satisfied is reported, does no harm, and the cluster recovers once the
//! spec is reverted.

use anyhow::{Result, ensure};
use quorate_harness::etcd_cluster::{Cluster, small_spec};
use quorate_harness::{Isolation, TestContext};
use serde_json::{Value, json};

use super::{
    CREATE_TIMEOUT, NO_CHANGE_DELAY, STATUS_TIMEOUT, healthy_cluster, ids, leader_and_follower,
    monitored, with_operator, writes_continue,
};

#[tokio::test(flavor = "multi_thread")]
async fn unschedulable_cluster_starts_once_the_node_selector_is_reverted() -> Result<()> {
    with_operator("etcd-selector", Isolation::Parallel, async |ctx| {
        let bad = json!({"placement": {"nodeSelector": {"example.com/no": "node"}}});
        let cluster = create_unstartable(ctx, &bad).await?;
        cluster.edit(&json!({"placement": null})).await?;
        monitored(&cluster, async |_| cluster.wait_healthy(ctx, 3, CREATE_TIMEOUT).await.map(drop))
            .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn cluster_with_missing_image_starts_once_the_image_is_reverted() -> Result<()> {
    with_operator("etcd-image", Isolation::Parallel, async |ctx| {
        let bad = json!({"image": {"repository": "registry.example/no/etcd"}});
        let cluster = create_unstartable(ctx, &bad).await?;
        let good = json!({"image": {"repository": "gcr.io/etcd-development/etcd"}});
        cluster.edit(&good).await?;
        monitored(&cluster, async |_| cluster.wait_healthy(ctx, 3, CREATE_TIMEOUT).await.map(drop))
            .await?;
        Ok(())
    })
    .await
}

/// The storage class is immutable, so the cluster is deleted and created again.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn cluster_with_missing_storage_class_is_reported_and_deleted_completely() -> Result<()> {
    with_operator("etcd-class", Isolation::Parallel, async |ctx| {
        let bad = json!({"storage": {"className": "no-such-class"}, "deletionPolicy": "Delete"});
        let cluster = create_unstartable(ctx, &bad).await?;
        cluster.delete().await?;
        ctx.wait_until("all objects of the cluster to be deleted", CREATE_TIMEOUT, async || {
            let pods = cluster.pods().await.map_err(|error| format!("{error:#}"))?;
            let pvcs = cluster.pvcs().await.map_err(|error| format!("{error:#}"))?;
            let object = cluster.objects.get_opt("main").await;
            let object = object.map_err(|error| error.to_string())?;
            match (pods.len(), pvcs.len(), object) {
                (0, 0, None) => Ok(()),
                (pods, pvcs, _) => Err(format!("{pods} pods, {pvcs} PVCs")),
            }
        })
        .await?;
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |monitors| writes_continue(ctx, monitors).await).await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn bad_edit_of_a_running_cluster_keeps_quorum_and_can_be_reverted() -> Result<()> {
    with_operator("etcd-bad-edit", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |monitors| {
            let before = cluster.etcd.member_list().await?;
            let bad = json!({"placement": {"nodeSelector": {"example.com/no": "node"}}});
            // The edit may be rejected or wait; it must not stop members.
            if let Err(rejected) = cluster.edit(&bad).await {
                println!("rejected: {rejected:#}");
                return Ok(());
            }
            tokio::time::sleep(NO_CHANGE_DELAY).await;
            writes_continue(ctx, monitors).await?;
            cluster.edit(&json!({"placement": null})).await?;
            let after = cluster.wait_healthy(ctx, 3, CREATE_TIMEOUT).await?;
            ensure!(after.cluster == before.cluster, "the cluster ID has changed");
            Ok(())
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn paused_cluster_is_not_repaired_until_it_is_resumed() -> Result<()> {
    with_operator("etcd-paused", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |monitors| {
            let before = cluster.etcd.member_list().await?;
            cluster.edit(&json!({"paused": true})).await?;
            cluster.wait_condition(ctx, "Paused", "True", STATUS_TIMEOUT).await?;
            let (_, follower) = leader_and_follower(&cluster).await?;
            cluster.delete_pods(std::slice::from_ref(&follower)).await?;
            tokio::time::sleep(NO_CHANGE_DELAY).await;
            ensure!(cluster.pod(&follower).await.is_err(), "a paused cluster was repaired");
            writes_continue(ctx, monitors).await?;
            cluster.edit(&json!({"paused": false})).await?;
            let after = cluster.wait_healthy(ctx, 3, CREATE_TIMEOUT).await?;
            ensure!(ids(&after) == ids(&before), "{before:?} became {after:?}");
            Ok(())
        })
        .await?;
        Ok(())
    })
    .await
}

/// Creates a cluster that cannot start, and waits until Ready reports why.
async fn create_unstartable(ctx: &TestContext, bad: &Value) -> Result<Cluster> {
    let cluster = ctx.create_cluster("main", &small_spec(3, bad)).await?;
    let (reason, message) = cluster.wait_condition(ctx, "Ready", "False", STATUS_TIMEOUT).await?;
    // The message must persist over further reconciliations.
    tokio::time::sleep(NO_CHANGE_DELAY).await;
    let (later, still) = cluster.wait_condition(ctx, "Ready", "False", STATUS_TIMEOUT).await?;
    println!("first {reason}: {message}\nthen {later}: {still}");
    ensure!(!message.is_empty() && !still.is_empty(), "the message is empty");
    Ok(cluster)
}
