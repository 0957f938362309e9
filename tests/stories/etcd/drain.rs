//! A node is drained: pods are evicted one after the other, and the budget never lets so many go that nobody agrees.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::EvictParams;
use quorate_cluster::settings::NODE_NAME;
use quorate_harness::etcd_cluster::names;
use quorate_harness::{Disturbs, Story};
use serde_json::json;

use super::{NEVER, RETURNS, healthy, return_to, watched, with_operator, writes_go_on};

/// Sooner than a member that was evicted can be back.
const AT_ONCE: Duration = Duration::from_millis(700);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn evictions_take_one_member_after_the_other_and_never_two() -> Result<()> {
    with_operator("etcd-drain", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        let account = watched(&cluster, async |_| {
            let before = cluster.user.listed().await?;
            let members = names(&before);
            let (first, others) = members.split_first().context("nobody is listed")?;
            let pods = [cluster.pod(first).await?.uid().unwrap_or_default()];
            evicted(story, first).await?;
            for other in others {
                let pods = story.api::<Pod>();
                let params = EvictParams::default();
                // The client itself tries again for a while, and by then it may be allowed.
                let early = tokio::time::timeout(AT_ONCE, pods.evict(other, &params)).await;
                ensure!(!matches!(early, Ok(Ok(_))), "{other} was let go together with {first}");
            }
            return_to(story, &cluster, &before, &pods).await?;
            // As kubectl drain does: try until it is allowed.
            for other in others {
                let pods = [cluster.pod(other).await?.uid().unwrap_or_default()];
                evicted(story, other).await?;
                return_to(story, &cluster, &before, &pods).await?;
            }
            Ok(())
        })
        .await?;
        // Each of them cost an election at most.
        let gap = account.longest_gap;
        ensure!(gap < Duration::from_secs(15), "for {gap:?} nothing could be written");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn a_pod_that_no_node_takes_waits_and_comes_back_when_one_does() -> Result<()> {
    with_operator("etcd-cordon", Disturbs::Everything, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |witnesses| {
            let before = cluster.user.listed().await?;
            let member = names(&before).into_iter().next().context("nobody is listed")?;
            let old = [cluster.pod(&member).await?.uid().unwrap_or_default()];
            story.admin.run(&["cordon", NODE_NAME]).await?;
            let away = async {
                evicted(story, &member).await?;
                tokio::time::sleep(NEVER).await;
                writes_go_on(story, witnesses).await
            };
            let away = away.await;
            // In either case: the next story needs the node.
            story.admin.run(&["uncordon", NODE_NAME]).await?;
            away?;
            return_to(story, &cluster, &before, &old).await
        })
        .await?;
        Ok(())
    })
    .await
}

async fn evicted(story: &Story, pod: &str) -> Result<()> {
    let pods = story.api::<Pod>();
    story
        .wait_until(&format!("{pod} to be allowed to go"), RETURNS, async || {
            let gone = pods.evict(pod, &EvictParams::default()).await;
            gone.map(drop).map_err(|error| error.to_string())
        })
        .await
}
