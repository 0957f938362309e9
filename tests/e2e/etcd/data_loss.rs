//! A member's data directory is wiped while it runs. The member must not rejoin with an empty data
//! directory, and must not bootstrap a second cluster: it is replaced.

use anyhow::{Context, Result, ensure};
use quorate_harness::etcd::MemberList;
use quorate_harness::etcd_cluster::Cluster;
use quorate_harness::{Isolation, TestContext};
use serde_json::json;

use super::{NO_CHANGE_DELAY, healthy_cluster, member_replaced, monitored, with_operator};

#[tokio::test(flavor = "multi_thread")]
async fn initial_member_with_wiped_data_is_replaced_while_its_peers_are_up() -> Result<()> {
    with_operator("etcd-wiped", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |_| {
            let before = cluster.etcd.member_list().await?;
            let first = before.members.first().context("no member is listed")?;
            ctx.wipe_volume(&cluster.pod(&first.name).await?)?;
            replaced_in_same_cluster(ctx, &cluster, &before, first.id).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn initial_member_with_wiped_data_bootstraps_no_cluster_while_isolated() -> Result<()> {
    with_operator("etcd-wiped-isolated", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |_| {
            let before = cluster.etcd.member_list().await?;
            let (first, peers) = before.members.split_first().context("no member is listed")?;
            let mut isolated = Vec::new();
            for peer in peers {
                isolated.push(ctx.isolate_pod(&cluster.pod(&peer.name).await?)?);
            }
            ctx.wipe_volume(&cluster.pod(&first.name).await?)?;
            no_quorum(ctx, &cluster).await?;
            drop(isolated);
            replaced_in_same_cluster(ctx, &cluster, &before, first.id).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn member_with_wiped_data_is_replaced_after_its_pod_is_deleted() -> Result<()> {
    with_operator("etcd-wiped-pod", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |_| {
            let before = cluster.etcd.member_list().await?;
            let first = before.members.first().context("no member is listed")?;
            // The member starts in a new pod, without the state of the old one.
            ctx.wipe_volume(&cluster.pod(&first.name).await?)?;
            cluster.delete_pods(std::slice::from_ref(&first.name)).await?;
            replaced_in_same_cluster(ctx, &cluster, &before, first.id).await
        })
        .await?;
        Ok(())
    })
    .await
}

/// A single member that lost its data cannot be recovered from peers: the status reports it, and no
/// empty member replaces it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn single_member_with_wiped_data_is_never_replaced_by_an_empty_one() -> Result<()> {
    with_operator("etcd-wiped-single", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 1, &json!({})).await?;
        let before = cluster.etcd.member_list().await?;
        let only = before.members.first().context("no member is listed")?;
        ctx.wipe_volume(&cluster.pod(&only.name).await?)?;
        no_quorum(ctx, &cluster).await?;
        let (reason, message) =
            cluster.wait_condition(ctx, "Ready", "False", super::STATUS_TIMEOUT).await?;
        println!("{reason}: {message}");
        ensure!(!message.is_empty(), "the message is empty");
        Ok(())
    })
    .await
}

async fn replaced_in_same_cluster(
    ctx: &TestContext,
    cluster: &Cluster,
    before: &MemberList,
    lost: u64,
) -> Result<()> {
    let after = member_replaced(ctx, cluster, before.members.len(), lost).await?;
    ensure!(after.cluster == before.cluster, "the cluster ID has changed");
    Ok(())
}

/// For some time no linearizable read succeeds, because there is no quorum.
async fn no_quorum(ctx: &TestContext, cluster: &Cluster) -> Result<()> {
    // Until the process is killed it may still respond.
    ctx.wait_until("the wiped member to stop", NO_CHANGE_DELAY, async || {
        match cluster.etcd.member_list().await {
            Ok(list) => Err(format!("a member responds: {list:?}")),
            Err(_unreachable) => Ok(()),
        }
    })
    .await?;
    let started = std::time::Instant::now();
    while started.elapsed() < NO_CHANGE_DELAY {
        if let Ok(list) = cluster.etcd.member_list().await {
            anyhow::bail!("a member has a quorum of its own: {list:?}");
        }
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    }
    Ok(())
}
