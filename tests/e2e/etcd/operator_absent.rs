//! A cluster without an operator: the operator is stopped, the CRD or the namespace is deleted.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use quorate_harness::etcd_cluster::{Cluster, small_spec, uids};
use quorate_harness::{Isolation, TestContext};
use serde_json::json;

use super::deletion::reports_retained_volumes;
use super::{
    CREATE_TIMEOUT, NO_CHANGE_DELAY, RECOVERY_TIMEOUT, healthy_cluster, ids, leader_and_follower,
    monitored, with_operator, writes_continue,
};
use crate::installation::{start_operator, stop_operator};

const CRD: &str = "etcdclusters.etcd.appdelivery.cncf.io";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn without_an_operator_a_cluster_serves_and_killed_members_restart() -> Result<()> {
    with_operator("etcd-no-operator", Isolation::Serial, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |monitors| {
            let before = cluster.etcd.member_list().await?;
            monitors.invariants.allow_stale_status(true);
            stop_operator(ctx).await?;
            let result = serves_without_operator(ctx, &cluster, monitors).await;
            // In either case, so that the next test has an operator.
            start_operator(ctx).await?;
            result?;
            let after = cluster.wait_healthy(ctx, 3, CREATE_TIMEOUT).await?;
            monitors.invariants.allow_stale_status(false);
            ensure!(ids(&after) == ids(&before), "{before:?} became {after:?}");
            Ok(())
        })
        .await?;
        Ok(())
    })
    .await
}

async fn serves_without_operator(
    ctx: &TestContext,
    cluster: &Cluster,
    monitors: &super::Monitors,
) -> Result<()> {
    writes_continue(ctx, monitors).await?;
    // The kubelet restarts a killed process.
    for pod in cluster.pods().await? {
        ctx.kill_pod(&pod)?;
        let back = async || cluster.etcd.healthy(3).await.map_err(|error| format!("{error:#}"));
        tokio::time::sleep(Duration::from_secs(3)).await;
        ctx.wait_until("the killed member to become healthy", RECOVERY_TIMEOUT, back).await?;
    }
    // A deleted pod is not recreated, and the others serve without it.
    let (_, follower) = leader_and_follower(cluster).await?;
    cluster.delete_pods(&[follower]).await?;
    tokio::time::sleep(NO_CHANGE_DELAY).await;
    writes_continue(ctx, monitors).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn volumes_stay_when_the_crd_is_deleted() -> Result<()> {
    with_operator("etcd-crd", Isolation::Serial, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |monitors| writes_continue(ctx, monitors).await).await?;
        let volumes = uids(&cluster.pvcs().await?);
        ctx.admin.run(&["delete", "crd", CRD, "--timeout=90s"]).await?;
        tokio::time::sleep(NO_CHANGE_DELAY).await;
        ensure!(uids(&cluster.pvcs().await?) == volumes, "the PVCs were not retained");
        // The operator is installed again, and reports the PVCs of the old cluster.
        ctx.ensure_operator().await?;
        let again = ctx.cluster("main");
        ctx.wait_until("a cluster to be accepted again", RECOVERY_TIMEOUT, async || {
            let created = again.create(&small_spec(3, &json!({}))).await;
            created.map_err(|error| format!("{error:#}"))
        })
        .await?;
        reports_retained_volumes(ctx, &again, &volumes).await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn namespace_deleted_during_bootstrap_terminates_without_delaying_others() -> Result<()> {
    with_operator("etcd-namespace", Isolation::Parallel, async |ctx| {
        let namespaces = Api::<Namespace>::all(ctx.client.clone());
        for (number, pause) in [0_u64, 4, 12].into_iter().enumerate() {
            let name = format!("{}-{number}", ctx.namespace);
            let namespace: Namespace = serde_json::from_value(json!({"metadata": {
                "name": name, "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
            }}))?;
            namespaces.create(&PostParams::default(), &namespace).await?;
            Cluster::at(&ctx.client, &name, "main").create(&small_spec(3, &json!({}))).await?;
            tokio::time::sleep(Duration::from_secs(pause)).await;
            namespaces.delete(&name, &DeleteParams::default()).await?;
            wait_deleted(ctx, &namespaces, &name).await?;
        }
        let cluster = healthy_cluster(ctx, 1, &json!({})).await?;
        monitored(&cluster, async |monitors| writes_continue(ctx, monitors).await).await?;
        Ok(())
    })
    .await
}

async fn wait_deleted(ctx: &TestContext, namespaces: &Api<Namespace>, name: &str) -> Result<()> {
    ctx.wait_until(&format!("namespace {name} to be deleted"), RECOVERY_TIMEOUT, async || {
        match namespaces.get_opt(name).await.map_err(|error| error.to_string())? {
            None => Ok(()),
            Some(left) => Err(format!("{:?}", left.status)),
        }
    })
    .await
}
