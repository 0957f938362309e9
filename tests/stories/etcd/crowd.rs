//! Many clusters at once: one that is broken does not hold up the others.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use quorate_harness::etcd_cluster::small;
use quorate_harness::{Disturbs, Story};
use serde_json::json;

use super::{COMES, watched, with_operator};

const MANY: usize = 9;
/// What a machine that does other things as well may make of it.
const SLACK: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn nine_clusters_come_up_as_fast_beside_one_that_is_broken() -> Result<()> {
    with_operator("etcd-crowd", Disturbs::Everything, async |story| {
        // The first time everything is new to the machine.
        all_come(story, "warm").await?;
        let alone = all_come(story, "alone").await?;
        // Unwell in the way that costs most: it is there, and does not answer.
        let sick = story.make_cluster("sick", &small(3, &json!({}))).await?;
        sick.comes(story, 3, COMES).await?;
        let mut silent = Vec::new();
        for pod in sick.pods().await?.iter().take(2) {
            silent.push(story.cut_off(pod)?);
        }
        let never = json!({"placement": {"nodeSelector": {"example.com/no": "node"}}});
        story.make_cluster("never", &small(3, &never)).await?;
        let beside = all_come(story, "beside").await?;
        println!("{MANY} clusters: {alone:.1?} alone, {beside:.1?} beside two that are broken");
        drop(silent);
        watched(&sick, async |_| sick.comes(story, 3, COMES).await.map(drop)).await?;
        let most = alone.saturating_mul(3).checked_div(2).unwrap_or_default();
        ensure!(beside <= most.saturating_add(SLACK), "{beside:.1?} instead of {alone:.1?}");
        Ok(())
    })
    .await
}

/// Makes many clusters at once, waits for all of them, and deletes them; answers with how long they took to come.
async fn all_come(story: &Story, word: &str) -> Result<Duration> {
    let begun = Instant::now();
    let one = async |number: usize| {
        let spec = small(1, &json!({"deletionPolicy": "Delete"}));
        let cluster = story.make_cluster(&format!("{word}-{number}"), &spec).await?;
        cluster.comes(story, 1, COMES).await?;
        anyhow::Ok(cluster)
    };
    let clusters = try_join_all((0..MANY).map(one)).await?;
    let took = begun.elapsed();
    for cluster in &clusters {
        cluster.delete().await?;
    }
    story
        .wait_until("all of them to be gone", COMES, async || {
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
