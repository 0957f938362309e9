//! The operator's leader is killed at random times, or another replica takes over: every operation
//! is completed.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use quorate_harness::etcd_cluster::{Cluster, small_spec};
use quorate_harness::{Isolation, TestContext};
use serde_json::json;

use super::{
    RECOVERY_TIMEOUT, healthy_cluster, leader_and_follower, member_replaced, monitored,
    with_operator,
};
use crate::installation::{NAMESPACE, leader, replicas, wait_other_leader, wait_rollout};

/// After each kill a lease must expire before reconciliation continues.
const STEP_TIMEOUT: Duration = Duration::from_mins(10);
/// The longest time that a leader lives.
const MAX_KILL_DELAY: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn every_operation_completes_although_the_leader_is_killed_repeatedly() -> Result<()> {
    with_operator("etcd-killed-operator", Isolation::Serial, async |ctx| {
        let cluster = ctx.create_cluster("main", &small_spec(3, &json!({}))).await?;
        while_leader_is_killed(ctx, cluster.wait_healthy(ctx, 3, STEP_TIMEOUT))
            .await
            .context("bootstrap")?;
        monitored(&cluster, async |monitors| {
            // While no replica leads, the status is not updated.
            monitors.invariants.allow_stale_status(true);
            set_replicas(ctx, &cluster, 5).await?;
            while_leader_is_killed(ctx, cluster.wait_healthy(ctx, 5, STEP_TIMEOUT))
                .await
                .context("scale up")?;
            while_leader_is_killed(ctx, replace_follower(ctx, &cluster, 5))
                .await
                .context("replace")?;
            set_replicas(ctx, &cluster, 3).await?;
            while_leader_is_killed(ctx, cluster.wait_healthy(ctx, 3, STEP_TIMEOUT))
                .await
                .context("scale down")?;
            Ok(())
        })
        .await?;
        wait_rollout(ctx).await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn new_leader_continues_where_the_old_one_stopped() -> Result<()> {
    with_operator("etcd-new-leader", Isolation::Serial, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |monitors| {
            monitors.invariants.allow_stale_status(true);
            for replicas in [5_usize, 3] {
                let old = leader(ctx).await?;
                cluster.edit(&json!({"replicas": replicas})).await?;
                tokio::time::sleep(Duration::from_secs(2)).await;
                let delete = ["-n", NAMESPACE, "delete", "pod", &old.name_any(), "--wait=false"];
                ctx.admin.run(&delete).await?;
                wait_other_leader(ctx, &old).await?;
                cluster.wait_healthy(ctx, replicas, STEP_TIMEOUT).await?;
            }
            Ok(())
        })
        .await?;
        wait_rollout(ctx).await
    })
    .await
}

/// A leader that is paused past its lease must not repeat what another has done meanwhile.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn leader_paused_while_another_scaled_does_no_harm_when_resumed() -> Result<()> {
    with_operator("etcd-paused-leader", Isolation::Serial, async |ctx| {
        let cluster = healthy_cluster(ctx, 3, &json!({})).await?;
        monitored(&cluster, async |monitors| {
            monitors.invariants.allow_stale_status(true);
            let old = leader(ctx).await?;
            cluster.edit(&json!({"replicas": 5})).await?;
            tokio::time::sleep(Duration::from_secs(2)).await;
            let paused = ctx.pause_pod(&old)?;
            wait_other_leader(ctx, &old).await?;
            cluster.wait_healthy(ctx, 5, STEP_TIMEOUT).await?;
            cluster.edit(&json!({"replicas": 3})).await?;
            drop(paused);
            cluster.wait_healthy(ctx, 3, STEP_TIMEOUT).await.map(drop)
        })
        .await?;
        wait_rollout(ctx).await
    })
    .await
}

/// Sets `spec.replicas`. Right after a kill no webhook may respond.
async fn set_replicas(ctx: &TestContext, cluster: &Cluster, replicas: usize) -> Result<()> {
    ctx.wait_until("the edit to be accepted", RECOVERY_TIMEOUT, async || {
        let edited = cluster.edit(&json!({"replicas": replicas})).await;
        edited.map_err(|error| format!("{error:#}"))
    })
    .await
}

async fn replace_follower(ctx: &TestContext, cluster: &Cluster, voters: usize) -> Result<()> {
    let before = cluster.etcd.member_list().await?;
    let (_, follower) = leader_and_follower(cluster).await?;
    cluster.delete_pod_and_pvc(&follower).await?;
    let lost = before.id_of(&follower).context("the follower is not listed")?;
    let started = std::time::Instant::now();
    // One wait is not enough where each kill costs a lease.
    loop {
        match member_replaced(ctx, cluster, voters, lost).await {
            Ok(_) => return Ok(()),
            Err(error) if started.elapsed() > STEP_TIMEOUT => return Err(error),
            Err(_not_yet) => {}
        }
    }
}

/// Runs an action while each leader is killed within seconds, at a random time. The first kill
/// comes early, before the action can have completed.
pub(super) async fn while_leader_is_killed<T>(
    ctx: &TestContext,
    action: impl Future<Output = Result<T>>,
) -> Result<T> {
    let mut kills = 0_u32;
    let kill = async {
        let mut delay = random_delay(MAX_KILL_DELAY.checked_div(4).unwrap_or_default());
        loop {
            tokio::time::sleep(delay).await;
            match Box::pin(kill_leader(ctx)).await {
                Ok(killed) => kills = kills.saturating_add(killed),
                Err(error) => return error,
            }
            // Until a replica leads, a kill would test nothing.
            if let Err(error) = Box::pin(leader(ctx)).await {
                return error;
            }
            delay = random_delay(MAX_KILL_DELAY);
        }
    };
    // Boxed, because a test thread has a small stack.
    let result = tokio::select! {
        result = Box::pin(action) => result,
        error = Box::pin(kill) => Err(error),
    }?;
    println!("the leader was killed {kills} times");
    ensure!(kills > 0, "the action completed before the first kill");
    Ok(result)
}

fn random_delay(max: Duration) -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let max = u64::try_from(max.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(u64::from(now.subsec_micros()).checked_rem(max).unwrap_or_default())
}

/// Kills the holder of the lease, if there is one, and deletes its pod. Returns the number of
/// killed replicas.
pub(super) async fn kill_leader(ctx: &TestContext) -> Result<u32> {
    let pods = Api::<Pod>::namespaced(ctx.client.clone(), NAMESPACE);
    let leases =
        Api::<k8s_openapi::api::coordination::v1::Lease>::namespaced(ctx.client.clone(), NAMESPACE);
    let lease = leases.get_opt("quorate").await?.and_then(|lease| lease.spec);
    let holder = lease.and_then(|spec| spec.holder_identity).unwrap_or_default();
    let all = replicas(ctx).await?;
    let leads = all.iter().filter(|pod| holder.starts_with(&pod.name_any()));
    let mut killed = 0_u32;
    for pod in leads {
        // A pod that has not started yet has no process to kill.
        killed = killed.saturating_add(u32::from(ctx.kill_pod(pod).is_ok()));
        // A killed container is restarted with a growing backoff; a new pod is not.
        drop(pods.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await);
    }
    Ok(killed)
}
