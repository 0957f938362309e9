//! Members raise an alarm that there is no reason for, or no more: it is named, looked into, and ended.

use std::time::Duration;

use anyhow::{Result, ensure};
use etcd_client::{AlarmAction, AlarmType};
use quorate_harness::Disturbs;
use serde_json::json;

use super::upkeep::no_alarm;
use super::{COMES, are_the_same, healthy, pod_uids, watched, with_operator, writes_go_on};

/// With its alarm raised etcd takes no writes.
const GAP: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn an_alarm_without_a_reason_is_ended_and_nobody_is_disturbed() -> Result<()> {
    with_operator("etcd-alarm", Disturbs::Nothing, async |story| {
        let cluster = healthy(story, 3, &json!({})).await?;
        let account = watched(&cluster, async |witnesses| {
            let before = cluster.user.listed().await?;
            let pods = pod_uids(&cluster).await?;
            for alarm in [AlarmType::Nospace, AlarmType::Corrupt] {
                cluster.user.alarm(AlarmAction::Activate, alarm).await?;
                no_alarm(story, &cluster).await?;
                writes_go_on(story, witnesses).await?;
            }
            ensure!(pod_uids(&cluster).await? == pods, "members were disturbed");
            cluster.comes(story, 3, COMES).await?;
            are_the_same(&cluster, &before).await
        })
        .await?;
        ensure!(account.longest_gap < GAP, "for {:?} nothing was written", account.longest_gap);
        Ok(())
    })
    .await
}
