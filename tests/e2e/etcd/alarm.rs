//! Alarms without a cause, or without one any more, are reported, checked and disarmed.

use std::time::Duration;

use anyhow::{Result, ensure};
use etcd_client::{AlarmAction, AlarmType};
use quorate_harness::Isolation;
use serde_json::json;

use super::defragmentation::wait_no_alarm;
use super::{
    CREATE_TIMEOUT, healthy_cluster, monitored, pod_uids, same_members, with_operator,
    writes_continue,
};

/// While an alarm is active etcd rejects writes.
const MAX_WRITE_GAP: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn alarm_without_a_cause_is_disarmed_without_restarts() -> Result<()> {
    with_operator("etcd-alarm", Isolation::Parallel, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        let writes = monitored(&cluster, async |monitors| {
            let before = cluster.etcd.member_list().await?;
            let pods = pod_uids(&cluster).await?;
            for alarm in [AlarmType::Nospace, AlarmType::Corrupt] {
                cluster.etcd.alarm(AlarmAction::Activate, alarm).await?;
                wait_no_alarm(ctx, &cluster).await?;
                writes_continue(ctx, monitors).await?;
            }
            ensure!(pod_uids(&cluster).await? == pods, "pods were recreated");
            cluster.wait_healthy(ctx, 3, CREATE_TIMEOUT).await?;
            same_members(&cluster, &before).await
        })
        .await?;
        ensure!(writes.longest_gap < MAX_WRITE_GAP, "no write for {:?}", writes.longest_gap);
        Ok(())
    })
    .await
}
