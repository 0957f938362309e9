//! A member's data is taken away behind its back. It must not come back without its memory, and must not found a
//! second cluster: it is replaced.

use anyhow::{Context, Result, ensure};
use quorate_harness::etcd::Listed;
use quorate_harness::etcd_cluster::Cluster;
use quorate_harness::{Disturbs, Story};
use serde_json::json;

use super::{NEVER, healthy, replaced, watched, with_operator};

#[tokio::test(flavor = "multi_thread")]
async fn a_founder_whose_data_is_gone_is_replaced_while_its_peers_are_up() -> Result<()> {
    with_operator("etcd-emptied", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |_| {
            let before = cluster.user.listed().await?;
            let first = before.members.first().context("nobody is listed")?;
            story.empty_volume(&cluster.pod(&first.name).await?)?;
            is_another(story, &cluster, &before, first.id).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn a_founder_whose_data_is_gone_founds_nothing_while_its_peers_are_away() -> Result<()> {
    with_operator("etcd-emptied-alone", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |_| {
            let before = cluster.user.listed().await?;
            let (first, peers) = before.members.split_first().context("nobody is listed")?;
            let mut away = Vec::new();
            for peer in peers {
                away.push(story.cut_off(&cluster.pod(&peer.name).await?)?);
            }
            story.empty_volume(&cluster.pod(&first.name).await?)?;
            nobody_answers(story, &cluster).await?;
            drop(away);
            is_another(story, &cluster, &before, first.id).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn a_member_whose_data_is_gone_while_it_has_no_pod_is_replaced() -> Result<()> {
    with_operator("etcd-emptied-later", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |_| {
            let before = cluster.user.listed().await?;
            let first = before.members.first().context("nobody is listed")?;
            // It starts in a new pod, which remembers nothing of the old one.
            story.empty_volume(&cluster.pod(&first.name).await?)?;
            cluster.lose_pods(std::slice::from_ref(&first.name)).await?;
            is_another(story, &cluster, &before, first.id).await
        })
        .await?;
        Ok(())
    })
    .await
}

/// A single member that lost its data has nobody to learn from: it says so, and nothing empty takes its place.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn an_only_member_whose_data_is_gone_is_never_replaced_by_an_empty_one() -> Result<()> {
    with_operator("etcd-emptied-only", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 1, &json!({})).await?;
        let before = cluster.user.listed().await?;
        let only = before.members.first().context("nobody is listed")?;
        story.empty_volume(&cluster.pod(&only.name).await?)?;
        nobody_answers(story, &cluster).await?;
        let (reason, words) = cluster.says(story, "Ready", "False", super::SAYS).await?;
        println!("it says {reason}: {words}");
        ensure!(!words.is_empty(), "it says nothing about it");
        Ok(())
    })
    .await
}

async fn is_another(story: &Story, cluster: &Cluster, before: &Listed, lost: u64) -> Result<()> {
    let after = replaced(story, cluster, before.members.len(), lost).await?;
    ensure!(after.cluster == before.cluster, "it founded another cluster");
    Ok(())
}

/// For some time nobody reads with a quorum, because there is none.
async fn nobody_answers(story: &Story, cluster: &Cluster) -> Result<()> {
    // Until the process is gone it may have the last word.
    story
        .wait_until("the emptied member to be silent", NEVER, async || {
            match cluster.user.listed().await {
                Ok(listed) => Err(format!("somebody answers: {listed:?}")),
                Err(_silent) => Ok(()),
            }
        })
        .await?;
    let begun = std::time::Instant::now();
    while begun.elapsed() < NEVER {
        if let Ok(listed) = cluster.user.listed().await {
            anyhow::bail!("somebody answers with a quorum of their own: {listed:?}");
        }
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    }
    Ok(())
}
