//! Many clusters at once: a broken one does not delay the others.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use quorate_harness::etcd_cluster::small_spec;
use quorate_harness::{Isolation, TestContext};
use serde_json::json;

use super::{CREATE_TIMEOUT, monitored, with_operator};

const CLUSTERS: usize = 9;
/// Tolerance for a machine that runs other processes as well.
const TIMING_GRACE: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn nine_clusters_start_as_fast_beside_a_broken_one() -> Result<()> {
    with_operator("etcd-many", Isolation::Serial, async |ctx| {
        // The first run fills the caches of the machine.
        create_all(ctx, "warm").await?;
        let alone = create_all(ctx, "alone").await?;
        // Members that are isolated cost most: each probe of them times out.
        let broken = ctx.create_cluster("broken", &small_spec(3, &json!({}))).await?;
        broken.wait_healthy(ctx, 3, CREATE_TIMEOUT).await?;
        let mut isolated = Vec::new();
        for pod in broken.pods().await?.iter().take(2) {
            isolated.push(ctx.isolate_pod(pod)?);
        }
        let never = json!({"placement": {"nodeSelector": {"example.com/no": "node"}}});
        ctx.create_cluster("never", &small_spec(3, &never)).await?;
        let beside = create_all(ctx, "beside").await?;
        println!("{CLUSTERS} clusters: {alone:.1?} alone, {beside:.1?} beside two broken ones");
        drop(isolated);
        monitored(&broken, async |_| broken.wait_healthy(ctx, 3, CREATE_TIMEOUT).await.map(drop))
            .await?;
        let max = alone.saturating_mul(3).checked_div(2).unwrap_or_default();
        ensure!(beside <= max.saturating_add(TIMING_GRACE), "{beside:.1?} instead of {alone:.1?}");
        Ok(())
    })
    .await
}

/// Creates all clusters at once, waits for them, and deletes them; returns how long they took to
/// become healthy.
async fn create_all(ctx: &TestContext, prefix: &str) -> Result<Duration> {
    let started = Instant::now();
    let create = async |number: usize| {
        let spec = small_spec(1, &json!({"deletionPolicy": "Delete"}));
        let cluster = ctx.create_cluster(&format!("{prefix}-{number}"), &spec).await?;
        cluster.wait_healthy(ctx, 1, CREATE_TIMEOUT).await?;
        anyhow::Ok(cluster)
    };
    let clusters = try_join_all((0..CLUSTERS).map(create)).await?;
    let took = started.elapsed();
    for cluster in &clusters {
        cluster.delete().await?;
    }
    ctx.wait_until("all of them to be deleted", CREATE_TIMEOUT, async || {
        for cluster in &clusters {
            let pods = cluster.pods().await.map_err(|error| format!("{error:#}"))?;
            if !pods.is_empty() {
                return Err(format!("{} has pods", cluster.name));
            }
        }
        Ok(())
    })
    .await?;
    Ok(took)
}
