//! Volumes fill up, and are expanded by the spec.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use quorate_harness::etcd_cluster::Cluster;
use quorate_harness::{Isolation, TestContext};
use serde_json::json;

use super::{CREATE_TIMEOUT, RECOVERY_TIMEOUT, healthy_cluster, ids, monitored, with_operator};

/// Large enough to use up the WAL file that etcd has preallocated.
const VALUE: usize = 512 << 10;
const VALUES: usize = 600;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn cluster_on_full_volumes_recovers_with_its_data_after_expansion() -> Result<()> {
    with_operator("etcd-disk", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({"storage": {"size": "320Mi"}})).await?;
        monitored(&cluster, async |_| {
            let before = cluster.etcd.member_list().await?;
            for pod in cluster.pods().await? {
                ctx.fill_volume(&pod)?;
            }
            write_until_rejected(&cluster).await?;
            cluster.edit(&json!({"storage": {"size": "1Gi"}})).await?;
            wait_expanded(ctx, &cluster, "1Gi").await?;
            let after = cluster.wait_healthy(ctx, 3, CREATE_TIMEOUT).await?;
            ensure!(after.cluster == before.cluster, "the cluster ID has changed");
            ensure!(ids(&after) == ids(&before), "members were replaced: {after:?}");
            Ok(())
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn volumes_of_a_running_cluster_are_expanded() -> Result<()> {
    with_operator("etcd-grow", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        let writes = monitored(&cluster, async |_| {
            cluster.edit(&json!({"storage": {"size": "700Mi"}})).await?;
            wait_expanded(ctx, &cluster, "700Mi").await?;
            cluster.wait_healthy(ctx, 3, CREATE_TIMEOUT).await.map(drop)
        })
        .await?;
        let gap = writes.longest_gap;
        ensure!(gap < Duration::from_secs(15), "no write for {gap:?}");
        Ok(())
    })
    .await
}

/// Writes until a write is rejected.
async fn write_until_rejected(cluster: &Cluster) -> Result<()> {
    let value = "x".repeat(VALUE);
    for number in 0..VALUES {
        if let Err(error) = cluster.etcd.put(&format!("large/{number}"), &value).await {
            println!("rejected after {number} large values: {error:#}");
            return Ok(());
        }
    }
    anyhow::bail!("full volumes accepted {VALUES} large values")
}

/// Waits until every PVC requests the size and has it.
async fn wait_expanded(ctx: &TestContext, cluster: &Cluster, size: &str) -> Result<()> {
    let requested = |pvc: &PersistentVolumeClaim| {
        let requests = pvc.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?;
        Some(requests.get("storage")?.0.clone())
    };
    let capacity = |pvc: &PersistentVolumeClaim| {
        Some(pvc.status.as_ref()?.capacity.as_ref()?.get("storage")?.0.clone())
    };
    ctx.wait_until(&format!("all volumes to have {size}"), RECOVERY_TIMEOUT, async || {
        let pvcs = cluster.pvcs().await.map_err(|error| format!("{error:#}"))?;
        let all: Vec<_> = pvcs.iter().map(|pvc| (requested(pvc), capacity(pvc))).collect();
        let bytes = bytes(size).to_string();
        let expanded = all.iter().all(|(requested, capacity)| {
            let requested = requested.as_deref().unwrap_or_default();
            let capacity = capacity.as_deref().unwrap_or_default();
            [requested, capacity].iter().all(|found| *found == size || *found == bytes)
        });
        if expanded && !all.is_empty() { Ok(()) } else { Err(format!("{all:?}")) }
    })
    .await
}

/// The bytes of a size in Mi or Gi.
fn bytes(size: &str) -> u64 {
    let number = |unit: &str| size.strip_suffix(unit).and_then(|digits| digits.parse::<u64>().ok());
    let mebi = number("Mi").map(|value| value.saturating_mul(1 << 20));
    mebi.or_else(|| number("Gi").map(|value| value.saturating_mul(1 << 30))).unwrap_or_default()
}
