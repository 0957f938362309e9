//! Disks fill up, and grow when the spec says so.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use quorate_harness::etcd_cluster::Cluster;
use quorate_harness::{Disturbs, Story};
use serde_json::json;

use super::{COMES, RETURNS, healthy, ids, watched, with_operator};

/// Large enough to use up what etcd has set aside for its log.
const VALUE: usize = 512 << 10;
const VALUES: usize = 600;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn a_cluster_on_full_disks_goes_on_with_its_data_once_they_have_grown() -> Result<()> {
    with_operator("etcd-disk", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({"storage": {"size": "320Mi"}})).await?;
        watched(&cluster, async |_| {
            let before = cluster.user.listed().await?;
            for pod in cluster.pods().await? {
                story.fill_volume(&pod)?;
            }
            refuses_writes(&cluster).await?;
            cluster.edit(&json!({"storage": {"size": "1Gi"}})).await?;
            have_grown(story, &cluster, "1Gi").await?;
            let after = cluster.comes(story, 3, COMES).await?;
            ensure!(after.cluster == before.cluster, "it is another cluster");
            ensure!(ids(&after) == ids(&before), "members were given up: {after:?}");
            Ok(())
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn disks_grow_under_a_running_cluster() -> Result<()> {
    with_operator("etcd-grow", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        let account = watched(&cluster, async |_| {
            cluster.edit(&json!({"storage": {"size": "700Mi"}})).await?;
            have_grown(story, &cluster, "700Mi").await?;
            cluster.comes(story, 3, COMES).await.map(drop)
        })
        .await?;
        let gap = account.longest_gap;
        ensure!(gap < Duration::from_secs(15), "for {gap:?} nothing could be written");
        Ok(())
    })
    .await
}

/// Writes until nobody takes any more.
async fn refuses_writes(cluster: &Cluster) -> Result<()> {
    let value = "x".repeat(VALUE);
    for number in 0..VALUES {
        if let Err(refused) = cluster.user.put(&format!("large/{number}"), &value).await {
            println!("refused after {number} large values: {refused:#}");
            return Ok(());
        }
    }
    anyhow::bail!("full disks took {VALUES} large values")
}

/// Waits until every claim asks for the size and has it.
async fn have_grown(story: &Story, cluster: &Cluster, size: &str) -> Result<()> {
    let asks = |claim: &PersistentVolumeClaim| {
        let requests = claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?;
        Some(requests.get("storage")?.0.clone())
    };
    let has = |claim: &PersistentVolumeClaim| {
        Some(claim.status.as_ref()?.capacity.as_ref()?.get("storage")?.0.clone())
    };
    story
        .wait_until(&format!("all volumes to have {size}"), RETURNS, async || {
            let claims = cluster.claims().await.map_err(|error| format!("{error:#}"))?;
            let all: Vec<_> = claims.iter().map(|claim| (asks(claim), has(claim))).collect();
            let bytes = bytes(size).to_string();
            let grown = all.iter().all(|(asks, has)| {
                let has = has.as_deref().unwrap_or_default();
                let asks = asks.as_deref().unwrap_or_default();
                [asks, has].iter().all(|it| *it == size || *it == bytes)
            });
            if grown && !all.is_empty() { Ok(()) } else { Err(format!("{all:?}")) }
        })
        .await
}

/// Of sizes in Mi or Gi.
fn bytes(size: &str) -> u64 {
    let number = |unit: &str| size.strip_suffix(unit).and_then(|it| it.parse::<u64>().ok());
    let mebi = number("Mi").map(|it| it.saturating_mul(1 << 20));
    mebi.or_else(|| number("Gi").map(|it| it.saturating_mul(1 << 30))).unwrap_or_default()
}
