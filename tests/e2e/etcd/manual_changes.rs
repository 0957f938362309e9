//! A user deletes objects of a cluster: they are recreated, and no data is lost. Secrets are not
//! covered: the operator does not watch them, and may take an hour to notice a missing one.

use anyhow::{Context, Result, ensure};
use quorate::api::names;
use quorate_harness::etcd_cluster::Cluster;
use quorate_harness::{Isolation, TestContext};
use serde_json::json;

use super::{
    CREATE_TIMEOUT, RECOVERY_TIMEOUT, healthy_cluster, ids, leader_and_follower, monitored,
    with_operator, writes_continue,
};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn deleted_services_and_pdb_are_recreated() -> Result<()> {
    with_operator("etcd-drift", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |monitors| {
            let objects = [
                format!("service/{}", cluster.name),
                format!("service/{}", names::client_service(&cluster.name)),
                format!("poddisruptionbudget/{}", cluster.name),
            ];
            for object in objects {
                delete_and_wait_recreated(ctx, &object).await.with_context(|| object.clone())?;
                writes_continue(ctx, monitors).await?;
            }
            cluster.wait_healthy(ctx, 3, CREATE_TIMEOUT).await.map(drop)
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn deleted_etcdmember_is_recreated_for_the_same_member() -> Result<()> {
    with_operator("etcd-adopted", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |_| {
            let before = cluster.etcd.member_list().await?;
            let (leader, _) = leader_and_follower(&cluster).await?;
            delete_and_wait_recreated(ctx, &format!("etcdmember/{leader}")).await?;
            wait_pod(ctx, &cluster, &leader).await?;
            let after = cluster.wait_healthy(ctx, 3, CREATE_TIMEOUT).await?;
            ensure!(ids(&after) == ids(&before), "{before:?} became {after:?}");
            Ok(())
        })
        .await?;
        Ok(())
    })
    .await
}

/// Waits until the member has a pod again: the old pod is deleted with its owner.
async fn wait_pod(ctx: &TestContext, cluster: &Cluster, member: &str) -> Result<()> {
    ctx.wait_until("the member to have a pod again", RECOVERY_TIMEOUT, async || {
        cluster.pod(member).await.map(drop).map_err(|error| format!("{error:#}"))
    })
    .await
}

/// Deletes an object, and waits until another of its name exists.
async fn delete_and_wait_recreated(ctx: &TestContext, object: &str) -> Result<()> {
    let uid = "--output=jsonpath={.metadata.uid}";
    let old = ctx.kubectl(&["get", object, uid]).await?;
    ctx.kubectl(&["delete", object, "--wait=false"]).await?;
    ctx.wait_until(&format!("another {object}"), RECOVERY_TIMEOUT, async || {
        match ctx.kubectl(&["get", object, uid]).await {
            Ok(now) if now != old => Ok(()),
            Ok(_) => Err("the old object exists".to_owned()),
            Err(error) => Err(format!("{error:#}")),
        }
    })
    .await
}
