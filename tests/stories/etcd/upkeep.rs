//! Files are rewritten, by threshold and by schedule, under load; and a cluster that is full takes writes again.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use etcd_client::AlarmType;
use quorate_harness::etcd_cluster::{Cluster, condition_of, summary};
use quorate_harness::{Disturbs, Story};
use serde_json::{Value, json};

use super::{
    COMES, NEVER, SAYS, are_the_same, healthy, pod_uids, watched, with_operator, writes_go_on,
};

const MEBI: i64 = 1 << 20;
/// What is written over and over again.
const VALUE: usize = 512 << 10;
/// What of it is left in files that were rewritten, with much to spare.
const SMALL: i64 = 8 * MEBI;
/// How long nobody may be able to write while files of this size are rewritten.
const GAP: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread")]
async fn files_are_rewritten_under_load_where_much_is_free_in_them() -> Result<()> {
    with_operator("etcd-rewrite", Disturbs::Nothing, async |story| {
        let asked = json!({"defragment": {"reclaimAbove": "10Mi"}});
        let cluster = healthy(story, 3, &asked).await?;
        let account = watched(&cluster, async |witnesses| {
            let before = cluster.user.listed().await?;
            let pods = pod_uids(&cluster).await?;
            half_empty(&cluster).await?;
            are_small(story, &cluster).await?;
            has_ended(story, &cluster, "Threshold").await?;
            writes_go_on(story, witnesses).await?;
            ensure!(pod_uids(&cluster).await? == pods, "somebody was started anew");
            are_the_same(&cluster, &before).await?;
            cluster.comes(story, 3, COMES).await.map(drop)
        })
        .await?;
        ensure!(account.longest_gap < GAP, "for {:?} nothing was written", account.longest_gap);
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn files_are_rewritten_when_their_time_has_come_and_not_before() -> Result<()> {
    with_operator("etcd-schedule", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        watched(&cluster, async |_| {
            half_empty(&cluster).await?;
            let far = json!({"defragment": {"schedule": "@yearly", "reclaimAbove": "10Mi"}});
            cluster.edit(&far).await?;
            let next = says_next(story, &cluster, None).await?;
            tokio::time::sleep(NEVER).await;
            let files = cluster.user.files().await?;
            ensure!(files.iter().all(|it| it.size > SMALL), "it was not the time yet: {files:?}");
            cluster.edit(&json!({"defragment": {"schedule": "* * * * *"}})).await?;
            says_next(story, &cluster, Some(&next)).await?;
            are_small(story, &cluster).await?;
            has_ended(story, &cluster, "Schedule").await?;
            cluster.comes(story, 3, COMES).await.map(drop)
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn a_cluster_that_is_full_of_history_takes_writes_again_by_itself() -> Result<()> {
    with_operator("etcd-full", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({"options": {"quota": "32Mi"}})).await?;
        watched(&cluster, async |witnesses| {
            let pods = pod_uids(&cluster).await?;
            fill(&cluster, 4).await?;
            let (reason, words) = trouble(story, &cluster, "NoSpace").await?;
            println!("it says {reason}: {words}");
            no_alarm(story, &cluster).await?;
            writes_go_on(story, witnesses).await?;
            ensure!(pod_uids(&cluster).await? == pods, "somebody was started anew");
            cluster.comes(story, 3, COMES).await.map(drop)
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn a_cluster_that_is_full_of_data_asks_for_a_larger_quota_and_takes_it() -> Result<()> {
    with_operator("etcd-stuffed", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({"options": {"quota": "32Mi"}})).await?;
        watched(&cluster, async |witnesses| {
            let before = cluster.user.listed().await?;
            fill(&cluster, usize::MAX).await?;
            let (reason, words) = trouble(story, &cluster, "NoSpaceUnresolved").await?;
            println!("it says {reason}: {words}");
            ensure!(words.contains("spec.options.quota"), "it says no way out: {words}");
            cluster.says(story, "Stalled", "True", SAYS).await?;
            // It stays so: no alarm is ended without room.
            tokio::time::sleep(NEVER).await;
            let alarms = cluster.user.alarms().await?;
            ensure!(alarms.contains(&AlarmType::Nospace), "the alarm was ended without room");
            cluster.edit(&json!({"options": {"quota": "96Mi"}})).await?;
            no_alarm(story, &cluster).await?;
            writes_go_on(story, witnesses).await?;
            cluster.is_updated(story, 3, COMES).await?;
            are_the_same(&cluster, &before).await
        })
        .await?;
        Ok(())
    })
    .await
}

/// Writes much over and over again, and forgets all but the last of it.
async fn half_empty(cluster: &Cluster) -> Result<()> {
    let value = "x".repeat(VALUE);
    for number in 0..80 {
        cluster.user.put(&format!("large/{}", number % 4), &value).await?;
    }
    cluster.user.forget().await?;
    let files = cluster.user.files().await?;
    println!("much is free: {files:?}");
    Ok(())
}

/// Writes to so many keys, until nobody takes any more.
pub(super) async fn fill(cluster: &Cluster, keys: usize) -> Result<()> {
    let value = "x".repeat(VALUE);
    for number in 0..400_usize {
        let key = number.checked_rem(keys).unwrap_or_default();
        if let Err(refused) = cluster.user.put(&format!("large/{key}"), &value).await {
            let alarms = cluster.user.alarms().await.unwrap_or_default();
            println!("refused after {number} large values: {refused:#}; {alarms:?}");
            return Ok(());
        }
    }
    anyhow::bail!("a small quota took everything")
}

async fn are_small(story: &Story, cluster: &Cluster) -> Result<()> {
    story
        .wait_until("all files to be small", COMES, async || {
            let files = cluster.user.files().await.map_err(|error| format!("{error:#}"))?;
            let all = files.len() == 3 && files.iter().all(|it| it.size <= SMALL);
            if all { Ok(()) } else { Err(format!("{files:?}")) }
        })
        .await
}

/// Waits until a round is over, in which each member had one turn.
async fn has_ended(story: &Story, cluster: &Cluster, occasion: &str) -> Result<()> {
    story
        .wait_until("the round to be over", SAYS, async || {
            let object = cluster.look().await.map_err(|error| format!("{error:#}"))?;
            let upkeep = object.pointer("/status/defragmentation").cloned().unwrap_or_default();
            let turns =
                upkeep.get("members").and_then(Value::as_array).cloned().unwrap_or_default();
            let members: BTreeSet<&str> = turns.iter().filter_map(Value::as_str).collect();
            let fine = upkeep.get("completionTime").is_some()
                && upkeep.get("trigger").is_some_and(|it| it == occasion)
                && turns.len() == 3
                && members.len() == 3;
            if fine { Ok(()) } else { Err(upkeep.to_string()) }
        })
        .await
}

/// The time at which files are looked at next, if it is another than before.
async fn says_next(story: &Story, cluster: &Cluster, before: Option<&str>) -> Result<String> {
    story
        .wait_until("the next time to be told", SAYS, async || {
            let object = cluster.look().await.map_err(|error| format!("{error:#}"))?;
            let next =
                object.pointer("/status/defragmentation/nextScheduleTime").and_then(Value::as_str);
            let next = next.filter(|it| Some(*it) != before);
            next.map(str::to_owned).ok_or_else(|| summary(&object))
        })
        .await
}

/// Waits until it is not ready for this reason.
pub(super) async fn trouble(
    story: &Story,
    cluster: &Cluster,
    why: &str,
) -> Result<(String, String)> {
    story
        .wait_until(&format!("it to say {why}"), COMES, async || {
            let object = cluster.look().await.map_err(|error| format!("{error:#}"))?;
            match condition_of(&object, "Ready") {
                Some((status, reason, words)) if status == "False" && reason == why => {
                    Ok((reason, words))
                }
                _ => Err(summary(&object)),
            }
        })
        .await
}

/// Waits until no alarm is raised.
pub(super) async fn no_alarm(story: &Story, cluster: &Cluster) -> Result<()> {
    story
        .wait_until("the alarm to be over", COMES, async || {
            let alarms = cluster.user.alarms().await.map_err(|error| format!("{error:#}"))?;
            if alarms.is_empty() { Ok(()) } else { Err(format!("{alarms:?}")) }
        })
        .await
        .context("an alarm")
}
