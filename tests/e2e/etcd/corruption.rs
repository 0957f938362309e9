//! Data corruption: a few bytes of a member's database file are changed, and etcd's compaction hash
//! check finds it.

use anyhow::{Context, Result, ensure};
use etcd_client::AlarmType;
use quorate_harness::etcd_cluster::Cluster;
use quorate_harness::{Isolation, TestContext};
use serde_json::json;

use super::defragmentation::{wait_no_alarm, wait_not_ready};
use super::{
    CREATE_TIMEOUT, NO_CHANGE_DELAY, STATUS_TIMEOUT, healthy_cluster, leader_and_follower,
    member_replaced, monitored, pod_uids, same_members, with_operator, writes_continue,
};

const KEY: &str = "precious";
const RIGHT: &str = "value-written-by-an-application-0000";
const WRONG: [&str; 2] =
    ["value-written-by-an-application-1111", "value-written-by-an-application-2222"];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn corrupt_member_is_replaced_and_the_written_data_stays() -> Result<()> {
    with_operator("etcd-corrupt", Isolation::Parallel, async |ctx| {
        for leads in [false, true] {
            corrupt_one(ctx, leads).await.with_context(|| format!("leader: {leads}"))?;
        }
        Ok(())
    })
    .await
}

async fn corrupt_one(ctx: &TestContext, leads: bool) -> Result<()> {
    let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
    monitored(&cluster, async |monitors| {
        cluster.etcd.put(KEY, RIGHT).await?;
        wait_persisted(ctx, &cluster).await?;
        let before = cluster.etcd.member_list().await?;
        let (leader, follower) = leader_and_follower(&cluster).await?;
        let corrupt = if leads { leader } else { follower };
        let lost = before.id_of(&corrupt).context("the member is not listed")?;
        ctx.corrupt_database(&cluster.pod(&corrupt).await?, RIGHT, WRONG[0])?;
        cluster.etcd.compact().await?;
        wait_detected(ctx, &cluster).await?;
        let after = member_replaced(ctx, &cluster, 3, lost).await?;
        ensure!(after.cluster == before.cluster, "the cluster ID has changed");
        wait_no_alarm(ctx, &cluster).await?;
        writes_continue(ctx, monitors).await?;
        for endpoint in cluster.etcd.endpoints().await? {
            let found = endpoint.get_prefix(KEY).await?;
            let kept = found.first().is_some_and(|entry| entry.value == RIGHT);
            ensure!(kept, "{} has {found:?}", endpoint.member);
        }
        Ok(())
    })
    .await?;
    cluster.delete().await?;
    ctx.wait_until("the cluster to be deleted", CREATE_TIMEOUT, async || {
        let pods = cluster.pods().await.map_err(|error| format!("{error:#}"))?;
        if pods.is_empty() { Ok(()) } else { Err(format!("{} pods are left", pods.len())) }
    })
    .await?;
    ctx.kubectl(&["delete", "pvc", "--all"]).await.map(drop)
}

/// Without a writer: writes are rejected until a user decides, which is what this test asserts.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn without_a_majority_no_corrupt_member_is_replaced_and_user_action_is_required() -> Result<()>
{
    with_operator("etcd-corrupt-all", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        cluster.etcd.put(KEY, RIGHT).await?;
        wait_persisted(ctx, &cluster).await?;
        let before = cluster.etcd.member_list().await?;
        let pods = pod_uids(&cluster).await?;
        let (leader, _) = leader_and_follower(&cluster).await?;
        let others = before.members.iter().filter(|member| member.name != leader);
        for (other, wrong) in others.zip(WRONG) {
            ctx.corrupt_database(&cluster.pod(&other.name).await?, RIGHT, wrong)?;
        }
        cluster.etcd.compact().await?;
        wait_detected(ctx, &cluster).await?;
        let (_, message) = wait_not_ready(ctx, &cluster, "CorruptionUnresolved").await?;
        println!("{message}");
        for member in &before.members {
            ensure!(
                message.contains(&member.name),
                "{} is not in the message: {message}",
                member.name
            );
        }
        cluster.wait_condition(ctx, "Stalled", "True", STATUS_TIMEOUT).await?;
        // A pending change waits.
        cluster.edit(&json!({"options": {"snapshotCount": 20_000}, "replicas": 5})).await?;
        tokio::time::sleep(NO_CHANGE_DELAY).await;
        ensure!(pod_uids(&cluster).await? == pods, "pods were recreated");
        same_members(&cluster, &before).await?;
        let alarms = cluster.etcd.alarms().await?;
        ensure!(alarms.contains(&AlarmType::Corrupt), "the alarm was disarmed: {alarms:?}");
        Ok(())
    })
    .await
}

/// Waits until the written value is in every member's database file.
async fn wait_persisted(ctx: &TestContext, cluster: &Cluster) -> Result<()> {
    ctx.wait_until("the written value to be in all database files", STATUS_TIMEOUT, async || {
        for pod in cluster.pods().await.map_err(|error| format!("{error:#}"))? {
            let contains =
                ctx.database_contains(&pod, RIGHT).map_err(|error| format!("{error:#}"))?;
            if !contains {
                return Err(format!("not in the file of {:?}", pod.metadata.name));
            }
        }
        Ok(())
    })
    .await
}

/// Waits for etcd's check, which compares the members' compaction hashes once a minute.
async fn wait_detected(ctx: &TestContext, cluster: &Cluster) -> Result<()> {
    ctx.wait_until("etcd to detect the corruption", CREATE_TIMEOUT, async || {
        let alarms = cluster.etcd.alarms().await.map_err(|error| format!("{error:#}"))?;
        let list = cluster.etcd.member_list().await.map_err(|error| format!("{error:#}"))?;
        let detected = alarms.contains(&AlarmType::Corrupt) || list.members.len() < 3;
        if detected { Ok(()) } else { Err(format!("{alarms:?}")) }
    })
    .await
}
