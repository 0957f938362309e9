//! Deletion of an EtcdCluster under each deletion policy.

use anyhow::{Result, ensure};
use quorate_harness::etcd_cluster::{Cluster, small_spec, uids};
use quorate_harness::{Isolation, TestContext};
use serde_json::json;

use super::{
    NO_CHANGE_DELAY, RECOVERY_TIMEOUT, STATUS_TIMEOUT, healthy_cluster, monitored, pod_uids,
    with_operator, writes_continue,
};

#[tokio::test(flavor = "multi_thread")]
async fn retained_volumes_are_reported_and_not_used_by_a_new_cluster_of_the_same_name() -> Result<()>
{
    with_operator("etcd-retain", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |monitors| writes_continue(ctx, monitors).await).await?;
        let volumes = uids(&cluster.pvcs().await?);
        ensure!(volumes.len() == 3, "{volumes:?}");
        cluster.delete().await?;
        wait_deleted(ctx, &cluster).await?;
        tokio::time::sleep(NO_CHANGE_DELAY).await;
        ensure!(uids(&cluster.pvcs().await?) == volumes, "the PVCs were not retained");

        let again = ctx.create_cluster("main", &small_spec(3, &json!({}))).await?;
        reports_retained_volumes(ctx, &again, &volumes).await
    })
    .await
}

/// Waits until a new cluster reports the PVCs of an old one, and checks that it does not use them.
pub(super) async fn reports_retained_volumes(
    ctx: &TestContext,
    cluster: &Cluster,
    volumes: &[(String, String)],
) -> Result<()> {
    let (reason, message) = cluster.wait_condition(ctx, "Stalled", "True", STATUS_TIMEOUT).await?;
    println!("{reason}: {message}");
    for (name, _) in volumes {
        ensure!(message.contains(name), "{name} is not in the message: {message}");
    }
    tokio::time::sleep(NO_CHANGE_DELAY).await;
    ensure!(uids(&cluster.pvcs().await?) == volumes, "the PVCs have changed");
    ensure!(cluster.pods().await?.is_empty(), "a pod exists");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn volumes_are_deleted_with_deletion_policy_delete() -> Result<()> {
    with_operator("etcd-delete", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({"deletionPolicy": "Delete"})).await?;
        monitored(&cluster, async |monitors| writes_continue(ctx, monitors).await).await?;
        cluster.delete().await?;
        wait_deleted(ctx, &cluster).await?;
        ctx.wait_until("the PVCs to be deleted", RECOVERY_TIMEOUT, async || {
            match cluster.pvcs().await.map_err(|error| format!("{error:#}"))?.len() {
                0 => Ok(()),
                left => Err(format!("{left} are left")),
            }
        })
        .await?;
        // No object is left, so a new cluster may have the same name.
        healthy_cluster(ctx, 1, &json!({"deletionPolicy": "Delete"})).await.map(drop)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn disconnected_members_continue_to_serve() -> Result<()> {
    with_operator("etcd-disconnect", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({"deletionPolicy": "Disconnect"})).await?;
        monitored(&cluster, async |monitors| {
            let before = cluster.etcd.member_list().await?;
            let (pods, volumes) = (pod_uids(&cluster).await?, uids(&cluster.pvcs().await?));
            cluster.delete().await?;
            ctx.wait_until("the object to be deleted", RECOVERY_TIMEOUT, async || {
                match cluster.objects.get_opt(&cluster.name).await {
                    Ok(None) => Ok(()),
                    other => Err(format!("{:?}", other.map(|object| object.is_some()))),
                }
            })
            .await?;
            tokio::time::sleep(NO_CHANGE_DELAY).await;
            writes_continue(ctx, monitors).await?;
            ensure!(cluster.etcd.healthy(3).await? == before, "the members have changed");
            ensure!(pod_uids(&cluster).await? == pods, "the pods have changed");
            ensure!(uids(&cluster.pvcs().await?) == volumes, "the PVCs have changed");
            Ok(())
        })
        .await?;
        Ok(())
    })
    .await
}

/// Waits until the object and all pods are deleted.
async fn wait_deleted(ctx: &TestContext, cluster: &Cluster) -> Result<()> {
    ctx.wait_until("the cluster and its pods to be deleted", RECOVERY_TIMEOUT, async || {
        let object = cluster.objects.get_opt(&cluster.name).await;
        let object = object.map_err(|error| error.to_string())?.is_some();
        let pods = cluster.pods().await.map_err(|error| format!("{error:#}"))?.len();
        if !object && pods == 0 { Ok(()) } else { Err(format!("object: {object}, pods: {pods}")) }
    })
    .await
}
