//! A node is drained: pods are evicted one at a time, and the `PodDisruptionBudget` never allows a
//! loss of quorum.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::EvictParams;
use quorate_cluster::settings::NODE_NAME;
use quorate_harness::etcd_cluster::member_names;
use quorate_harness::{Isolation, TestContext};
use serde_json::json;

use super::{
    NO_CHANGE_DELAY, RECOVERY_TIMEOUT, healthy_cluster, monitored, pods_recreated, with_operator,
    writes_continue,
};

/// Less time than an evicted member takes to become ready again.
const EARLY_EVICTION_TIMEOUT: Duration = Duration::from_millis(700);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn only_one_member_is_evicted_at_a_time() -> Result<()> {
    with_operator("etcd-drain", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        let writes = monitored(&cluster, async |_| {
            let before = cluster.etcd.member_list().await?;
            let members = member_names(&before);
            let (first, others) = members.split_first().context("no member is listed")?;
            let pods = [cluster.pod(first).await?.uid().unwrap_or_default()];
            evict(ctx, first).await?;
            for other in others {
                let pods = ctx.api::<Pod>();
                let params = EvictParams::default();
                // The client retries for a while, and by then the eviction may be allowed.
                let early =
                    tokio::time::timeout(EARLY_EVICTION_TIMEOUT, pods.evict(other, &params)).await;
                ensure!(!matches!(early, Ok(Ok(_))), "{other} was evicted together with {first}");
            }
            pods_recreated(ctx, &cluster, &before, &pods).await?;
            // As kubectl drain does: retry until the eviction is allowed.
            for other in others {
                let pods = [cluster.pod(other).await?.uid().unwrap_or_default()];
                evict(ctx, other).await?;
                pods_recreated(ctx, &cluster, &before, &pods).await?;
            }
            Ok(())
        })
        .await?;
        // Each eviction costs one election at most.
        let gap = writes.longest_gap;
        ensure!(gap < Duration::from_secs(15), "no write for {gap:?}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn unschedulable_pod_is_recreated_once_a_node_is_available() -> Result<()> {
    with_operator("etcd-cordon", Isolation::Serial, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |monitors| {
            let before = cluster.etcd.member_list().await?;
            let member = member_names(&before).into_iter().next().context("no member is listed")?;
            let old = [cluster.pod(&member).await?.uid().unwrap_or_default()];
            ctx.admin.run(&["cordon", NODE_NAME]).await?;
            let away = async {
                evict(ctx, &member).await?;
                tokio::time::sleep(NO_CHANGE_DELAY).await;
                writes_continue(ctx, monitors).await
            };
            let away = away.await;
            // In either case: the next test needs the node.
            ctx.admin.run(&["uncordon", NODE_NAME]).await?;
            away?;
            pods_recreated(ctx, &cluster, &before, &old).await
        })
        .await?;
        Ok(())
    })
    .await
}

async fn evict(ctx: &TestContext, pod: &str) -> Result<()> {
    let pods = ctx.api::<Pod>();
    ctx.wait_until(&format!("the eviction of {pod} to be allowed"), RECOVERY_TIMEOUT, async || {
        let evicted = pods.evict(pod, &EvictParams::default()).await;
        evicted.map(drop).map_err(|error| error.to_string())
    })
    .await
}
