//! Scaling up, down, to zero and back: one member at a time, without losing data.

use anyhow::{Context, Result, ensure};
use quorate_harness::etcd_cluster::{Cluster, uids};
use quorate_harness::{Isolation, TestContext};
use serde_json::json;

use super::{
    CREATE_TIMEOUT, NO_CHANGE_DELAY, RECOVERY_TIMEOUT, healthy_cluster, ids, monitored,
    with_operator,
};

#[tokio::test(flavor = "multi_thread")]
async fn scaling_3_5_3_1_by_edit_and_by_kubectl_scale() -> Result<()> {
    with_operator("etcd-scale", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |_| {
            kubectl_scale(ctx, &cluster, 5).await?;
            edit_replicas(ctx, &cluster, 3).await?;
            kubectl_scale(ctx, &cluster, 1).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn scaling_3_5_3_1_3_4_3() -> Result<()> {
    with_operator("etcd-scale-long", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |_| {
            edit_replicas(ctx, &cluster, 5).await?;
            kubectl_scale(ctx, &cluster, 3).await?;
            edit_replicas(ctx, &cluster, 1).await?;
            kubectl_scale(ctx, &cluster, 3).await?;
            edit_replicas(ctx, &cluster, 4).await?;
            kubectl_scale(ctx, &cluster, 3).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn replicas_changed_while_scaling_converge_to_the_last_value() -> Result<()> {
    with_operator("etcd-in-flight", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |_| {
            cluster.edit(&json!({"replicas": 5})).await?;
            tokio::time::sleep(std::time::Duration::from_secs(3)).await;
            edit_replicas(ctx, &cluster, 1).await?;
            cluster.edit(&json!({"replicas": 5})).await?;
            cluster.edit(&json!({"replicas": 3})).await?;
            edit_replicas(ctx, &cluster, 3).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn hibernated_cluster_keeps_its_volumes_and_resumes_with_the_same_members() -> Result<()> {
    with_operator("etcd-hibernate", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |_| {
            let before = cluster.etcd.member_list().await?;
            let volumes = uids(&cluster.pvcs().await?);
            cluster.edit(&json!({"replicas": 0})).await?;
            wait_no_pods(ctx, &cluster).await?;
            tokio::time::sleep(NO_CHANGE_DELAY).await;
            wait_no_pods(ctx, &cluster).await.context("while hibernated")?;
            ensure!(uids(&cluster.pvcs().await?) == volumes, "the PVCs have changed");
            cluster.edit(&json!({"replicas": 3})).await?;
            let after = cluster.wait_healthy(ctx, 3, CREATE_TIMEOUT).await?;
            ensure!(after.cluster == before.cluster, "the cluster ID has changed");
            ensure!(ids(&after) == ids(&before), "{before:?} became {after:?}");
            Ok(())
        })
        .await?;
        Ok(())
    })
    .await
}

async fn wait_no_pods(ctx: &TestContext, cluster: &Cluster) -> Result<()> {
    ctx.wait_until("all pods to be deleted", RECOVERY_TIMEOUT, async || {
        match cluster.pods().await.map_err(|error| format!("{error:#}"))?.len() {
            0 => Ok(()),
            left => Err(format!("{left} pods are left")),
        }
    })
    .await
}

async fn edit_replicas(ctx: &TestContext, cluster: &Cluster, replicas: usize) -> Result<()> {
    cluster.edit(&json!({"replicas": replicas})).await?;
    cluster.wait_healthy(ctx, replicas, CREATE_TIMEOUT).await.map(drop)
}

async fn kubectl_scale(ctx: &TestContext, cluster: &Cluster, replicas: usize) -> Result<()> {
    let object = format!("etcdclusters/{}", cluster.name);
    ctx.kubectl(&["scale", &object, &format!("--replicas={replicas}")]).await?;
    cluster.wait_healthy(ctx, replicas, CREATE_TIMEOUT).await.map(drop)
}
