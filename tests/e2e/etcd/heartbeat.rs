//! The heartbeat interval is derived from the round-trip time that the members measure.

use std::time::Duration;

use anyhow::{Result, ensure};
use quorate_harness::etcd_cluster::{member_names, uids};
use quorate_harness::{Isolation, TestContext};
use serde_json::{Value, json};

use super::{
    healthy_cluster, monitored, pods_recreated, same_members, with_operator, writes_continue,
};

/// In each direction: the round trip exceeds etcd's default heartbeat interval of 100 ms.
const ADDED_DELAY: Duration = Duration::from_millis(80);
/// Two measurements three minutes apart, one that was too early, and a rolling update of three
/// members.
const TUNING_TIMEOUT: Duration = Duration::from_mins(15);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn heartbeat_interval_grows_with_the_peer_round_trip_time() -> Result<()> {
    with_operator("etcd-heartbeat", Isolation::Serial, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        let default = reported_heartbeat(&cluster.get().await?);
        ensure!(default == Some("100".to_owned()), "not etcd's default: {default:?}");
        monitored(&cluster, async |monitors| {
            let before = cluster.etcd.member_list().await?;
            let members = member_names(&before);
            let latency = ctx.add_latency(&members, ADDED_DELAY).await?;
            // Only new connections are delayed, so all pods are recreated. The status lags behind
            // meanwhile.
            monitors.invariants.allow_stale_status(true);
            let pods: Vec<String> =
                uids(&cluster.pods().await?).into_iter().map(|(_, uid)| uid).collect();
            cluster.delete_pods(&members).await?;
            pods_recreated(ctx, &cluster, &before, &pods).await?;
            monitors.invariants.allow_stale_status(false);

            let is_slower = async || {
                let object = cluster.get().await.map_err(|error| format!("{error:#}"))?;
                match reported_heartbeat(&object) {
                    Some(heartbeat) if heartbeat == "250" => Ok(()),
                    other => Err(format!("the heartbeat is {other:?}")),
                }
            };
            ctx.wait_until("a longer heartbeat interval", TUNING_TIMEOUT, is_slower).await?;
            cluster.wait_updated(ctx, 3, TUNING_TIMEOUT).await?;
            for pod in cluster.pods().await? {
                let spec = serde_json::to_string(&pod.spec)?;
                ensure!(spec.contains("--heartbeat-interval=250"), "{spec}");
                ensure!(spec.contains("--election-timeout=2500"), "{spec}");
            }
            same_members(&cluster, &before).await?;
            writes_continue(ctx, monitors).await?;
            drop(latency);
            Ok(())
        })
        .await?;
        spec_overrides_tuning(ctx).await
    })
    .await
}

/// A value in the spec is used, whatever was measured.
async fn spec_overrides_tuning(ctx: &TestContext) -> Result<()> {
    let cluster = ctx.cluster("main");
    cluster.edit(&json!({"options": {"heartbeatMilliseconds": 150}})).await?;
    cluster.wait_updated(ctx, 3, TUNING_TIMEOUT).await?;
    let object = cluster.get().await?;
    ensure!(reported_heartbeat(&object).is_none(), "{object}");
    Ok(())
}

/// The heartbeat interval in `status.tuning`.
fn reported_heartbeat(object: &Value) -> Option<String> {
    let tuning = object.pointer("/status/tuning")?.as_array()?;
    let found =
        tuning.iter().find(|entry| entry.get("option") == Some(&json!("heartbeat-interval")))?;
    Some(found.get("value")?.as_str()?.to_owned())
}
