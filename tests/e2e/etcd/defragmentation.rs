//! Defragmentation by threshold and by schedule under load, and recovery from NOSPACE.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use etcd_client::AlarmType;
use quorate_harness::etcd_cluster::{Cluster, condition, summary};
use quorate_harness::{Isolation, TestContext};
use serde_json::{Value, json};

use super::{
    CREATE_TIMEOUT, NO_CHANGE_DELAY, STATUS_TIMEOUT, healthy_cluster, monitored, pod_uids,
    same_members, with_operator, writes_continue,
};

const MEBI: i64 = 1 << 20;
/// The size of a value that is overwritten repeatedly.
const VALUE: usize = 512 << 10;
/// The largest size of a defragmented file, with a wide margin.
const MAX_DEFRAGMENTED_SIZE: i64 = 8 * MEBI;
/// The longest time without a write while files of this size are defragmented.
const MAX_WRITE_GAP: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread")]
async fn fragmented_members_are_defragmented_under_load() -> Result<()> {
    with_operator("etcd-defragment", Isolation::Parallel, async |ctx| {
        let threshold = json!({"defragment": {"reclaimAbove": "10Mi"}});
        let cluster = healthy_cluster(ctx, 3, &threshold).await?;
        let writes = monitored(&cluster, async |monitors| {
            let before = cluster.etcd.member_list().await?;
            let pods = pod_uids(&cluster).await?;
            fragment(&cluster).await?;
            wait_small_files(ctx, &cluster).await?;
            wait_run_completed(ctx, &cluster, "Threshold").await?;
            writes_continue(ctx, monitors).await?;
            ensure!(pod_uids(&cluster).await? == pods, "a pod was recreated");
            same_members(&cluster, &before).await?;
            cluster.wait_healthy(ctx, 3, CREATE_TIMEOUT).await.map(drop)
        })
        .await?;
        ensure!(writes.longest_gap < MAX_WRITE_GAP, "no write for {:?}", writes.longest_gap);
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn members_are_defragmented_on_schedule_and_not_before() -> Result<()> {
    with_operator("etcd-schedule", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |_| {
            fragment(&cluster).await?;
            let yearly = json!({"defragment": {"schedule": "@yearly", "reclaimAbove": "10Mi"}});
            cluster.edit(&yearly).await?;
            let next = wait_next_schedule(ctx, &cluster, None).await?;
            tokio::time::sleep(NO_CHANGE_DELAY).await;
            let files = cluster.etcd.database_files().await?;
            ensure!(
                files.iter().all(|file| file.size > MAX_DEFRAGMENTED_SIZE),
                "defragmented before the schedule: {files:?}"
            );
            cluster.edit(&json!({"defragment": {"schedule": "* * * * *"}})).await?;
            wait_next_schedule(ctx, &cluster, Some(&next)).await?;
            wait_small_files(ctx, &cluster).await?;
            wait_run_completed(ctx, &cluster, "Schedule").await?;
            cluster.wait_healthy(ctx, 3, CREATE_TIMEOUT).await.map(drop)
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn cluster_full_of_old_revisions_recovers_from_nospace() -> Result<()> {
    with_operator("etcd-full", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({"options": {"quota": "32Mi"}})).await?;
        monitored(&cluster, async |monitors| {
            let pods = pod_uids(&cluster).await?;
            fill_quota(&cluster, 4).await?;
            let (reason, message) = wait_not_ready(ctx, &cluster, "NoSpace").await?;
            println!("{reason}: {message}");
            wait_no_alarm(ctx, &cluster).await?;
            writes_continue(ctx, monitors).await?;
            ensure!(pod_uids(&cluster).await? == pods, "a pod was recreated");
            cluster.wait_healthy(ctx, 3, CREATE_TIMEOUT).await.map(drop)
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn cluster_full_of_data_recovers_with_a_larger_quota() -> Result<()> {
    with_operator("etcd-full-data", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({"options": {"quota": "32Mi"}})).await?;
        monitored(&cluster, async |monitors| {
            let before = cluster.etcd.member_list().await?;
            fill_quota(&cluster, usize::MAX).await?;
            let (reason, message) = wait_not_ready(ctx, &cluster, "NoSpaceUnresolved").await?;
            println!("{reason}: {message}");
            ensure!(message.contains("spec.options.quota"), "no remedy in the message: {message}");
            cluster.wait_condition(ctx, "Stalled", "True", STATUS_TIMEOUT).await?;
            // The alarm stays active while no space is reclaimed.
            tokio::time::sleep(NO_CHANGE_DELAY).await;
            let alarms = cluster.etcd.alarms().await?;
            ensure!(
                alarms.contains(&AlarmType::Nospace),
                "the alarm was disarmed without free space"
            );
            cluster.edit(&json!({"options": {"quota": "96Mi"}})).await?;
            wait_no_alarm(ctx, &cluster).await?;
            writes_continue(ctx, monitors).await?;
            cluster.wait_updated(ctx, 3, CREATE_TIMEOUT).await?;
            same_members(&cluster, &before).await
        })
        .await?;
        Ok(())
    })
    .await
}

/// Overwrites large values repeatedly, and compacts all but the last revision.
async fn fragment(cluster: &Cluster) -> Result<()> {
    let value = "x".repeat(VALUE);
    for number in 0..80 {
        cluster.etcd.put(&format!("large/{}", number % 4), &value).await?;
    }
    cluster.etcd.compact().await?;
    let files = cluster.etcd.database_files().await?;
    println!("fragmented: {files:?}");
    Ok(())
}

/// Writes to this many keys until a write is rejected.
pub(super) async fn fill_quota(cluster: &Cluster, keys: usize) -> Result<()> {
    let value = "x".repeat(VALUE);
    for number in 0..400_usize {
        let key = number.checked_rem(keys).unwrap_or_default();
        if let Err(error) = cluster.etcd.put(&format!("large/{key}"), &value).await {
            let alarms = cluster.etcd.alarms().await.unwrap_or_default();
            println!("rejected after {number} large values: {error:#}; {alarms:?}");
            return Ok(());
        }
    }
    anyhow::bail!("a small quota accepted all writes")
}

async fn wait_small_files(ctx: &TestContext, cluster: &Cluster) -> Result<()> {
    ctx.wait_until("all database files to be small", CREATE_TIMEOUT, async || {
        let files = cluster.etcd.database_files().await.map_err(|error| format!("{error:#}"))?;
        let all = files.len() == 3 && files.iter().all(|file| file.size <= MAX_DEFRAGMENTED_SIZE);
        if all { Ok(()) } else { Err(format!("{files:?}")) }
    })
    .await
}

/// Waits until a run has completed in which each member was defragmented once.
async fn wait_run_completed(ctx: &TestContext, cluster: &Cluster, trigger: &str) -> Result<()> {
    ctx.wait_until("the run to complete", STATUS_TIMEOUT, async || {
        let object = cluster.get().await.map_err(|error| format!("{error:#}"))?;
        let status = object.pointer("/status/defragmentation").cloned().unwrap_or_default();
        let members = status.get("members").and_then(Value::as_array).cloned().unwrap_or_default();
        let names: BTreeSet<&str> = members.iter().filter_map(Value::as_str).collect();
        let completed = status.get("completionTime").is_some()
            && status.get("trigger").is_some_and(|found| found == trigger)
            && members.len() == 3
            && names.len() == 3;
        if completed { Ok(()) } else { Err(status.to_string()) }
    })
    .await
}

/// Waits for a next schedule time that differs from the previous one.
async fn wait_next_schedule(
    ctx: &TestContext,
    cluster: &Cluster,
    before: Option<&str>,
) -> Result<String> {
    ctx.wait_until("the next schedule time", STATUS_TIMEOUT, async || {
        let object = cluster.get().await.map_err(|error| format!("{error:#}"))?;
        let next =
            object.pointer("/status/defragmentation/nextScheduleTime").and_then(Value::as_str);
        let next = next.filter(|time| Some(*time) != before);
        next.map(str::to_owned).ok_or_else(|| summary(&object))
    })
    .await
}

/// Waits until Ready is False with this reason.
pub(super) async fn wait_not_ready(
    ctx: &TestContext,
    cluster: &Cluster,
    expected: &str,
) -> Result<(String, String)> {
    ctx.wait_until(
        &format!("Ready to be False with the reason {expected}"),
        CREATE_TIMEOUT,
        async || {
            let object = cluster.get().await.map_err(|error| format!("{error:#}"))?;
            match condition(&object, "Ready") {
                Some((status, reason, message)) if status == "False" && reason == expected => {
                    Ok((reason, message))
                }
                _ => Err(summary(&object)),
            }
        },
    )
    .await
}

/// Waits until no alarm is active.
pub(super) async fn wait_no_alarm(ctx: &TestContext, cluster: &Cluster) -> Result<()> {
    ctx.wait_until("all alarms to be disarmed", CREATE_TIMEOUT, async || {
        let alarms = cluster.etcd.alarms().await.map_err(|error| format!("{error:#}"))?;
        if alarms.is_empty() { Ok(()) } else { Err(format!("{alarms:?}")) }
    })
    .await
    .context("an active alarm")
}
