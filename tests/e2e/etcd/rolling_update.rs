//! Rolling updates while the cluster serves: another version or other options, one member after the
//! other and the leader last; and the way back to the previous version.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use quorate_harness::etcd_cluster::{Cluster, uids};
use quorate_harness::{Isolation, TestContext, catalog};
use serde_json::{Value, json};
use tokio::time;

use super::{
    CREATE_TIMEOUT, RECOVERY_TIMEOUT, healthy_cluster, leader_and_follower, member_replaced,
    monitored, same_members, with_operator,
};

/// Three members, one after the other, on a small machine.
pub(super) const ROLLOUT_TIMEOUT: Duration = Duration::from_mins(8);
const OBSERVE_INTERVAL: Duration = Duration::from_millis(200);
/// About two seconds.
const MAX_UNHEALTHY_OBSERVATIONS: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn patch_version_and_options_roll_out_one_member_at_a_time_leader_last() -> Result<()> {
    with_operator("etcd-patch", Isolation::Parallel, async |ctx| {
        let cluster = cluster_with_version(ctx, &["3.6.10", "3.6.16"]).await?;
        monitored(&cluster, async |_| {
            let before = cluster.etcd.member_list().await?;
            let (leader, _) = leader_and_follower(&cluster).await?;
            let change = json!({"version": "3.6.16", "options": {"snapshotCount": 20_000}});
            cluster.edit(&change).await?;
            let rollout =
                observe_rollout(&cluster, cluster.wait_updated(ctx, 3, ROLLOUT_TIMEOUT)).await?;
            ensure!(rollout.recreated.len() == 3, "{:?} were recreated", rollout.recreated);
            ensure!(
                rollout.recreated.last() == Some(&leader),
                "{leader} was the leader: {:?}",
                rollout.recreated
            );
            all_members_run(&cluster, "3.6.16").await?;
            same_members(&cluster, &before).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn each_minor_version_upgrades_to_the_next() -> Result<()> {
    for (from, to) in [("3.5.35", "3.6.16"), ("3.6.16", "3.7.3")] {
        with_operator("etcd-minor", Isolation::Parallel, async |ctx| {
            let cluster = cluster_with_version(ctx, &[from, to]).await?;
            monitored(&cluster, async |_| {
                let before = cluster.etcd.member_list().await?;
                cluster.edit(&json!({"version": to})).await?;
                let rollout = observe_rollout(&cluster, wait_version(ctx, &cluster, to)).await?;
                ensure!(
                    rollout.targets.last().is_some_and(|target| target == to),
                    "{:?}",
                    rollout.targets
                );
                ensure!(rollout.recreated.len() == 3, "{:?} were recreated", rollout.recreated);
                all_members_run(&cluster, to).await?;
                same_members(&cluster, &before).await
            })
            .await?;
            Ok(())
        })
        .await
        .with_context(|| format!("from {from} to {to}"))?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn upgrade_is_reverted_half_way_and_started_again() -> Result<()> {
    with_operator("etcd-reverted", Isolation::Parallel, async |ctx| {
        let cluster = cluster_with_version(ctx, &["3.5.35", "3.6.16"]).await?;
        monitored(&cluster, async |_| {
            cluster.edit(&json!({"version": "3.6.16"})).await?;
            wait_first_member_version(ctx, &cluster, "3.6.16").await?;
            cluster.edit(&json!({"version": "3.5.35"})).await?;
            observe_rollout(&cluster, wait_version(ctx, &cluster, "3.5.35")).await?;
            all_members_run(&cluster, "3.5.35").await?;
            cluster.edit(&json!({"version": "3.6.16"})).await?;
            observe_rollout(&cluster, wait_version(ctx, &cluster, "3.6.16")).await?;
            all_members_run(&cluster, "3.6.16").await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn member_lost_during_an_upgrade_is_replaced_and_the_upgrade_continues() -> Result<()> {
    with_operator("etcd-lost-upgrade", Isolation::Parallel, async |ctx| {
        let cluster = cluster_with_version(ctx, &["3.5.35", "3.6.16"]).await?;
        monitored(&cluster, async |_| {
            let before = cluster.etcd.member_list().await?;
            cluster.edit(&json!({"version": "3.6.16"})).await?;
            wait_first_member_version(ctx, &cluster, "3.6.16").await?;
            let (_, follower) = leader_and_follower(&cluster).await?;
            cluster.delete_pod_and_pvc(&follower).await?;
            member_replaced(ctx, &cluster, 3, before.id_of(&follower).context("no follower")?)
                .await?;
            wait_version(ctx, &cluster, "3.6.16").await?;
            all_members_run(&cluster, "3.6.16").await
        })
        .await?;
        Ok(())
    })
    .await
}

/// Three members of the first version; the images of all versions are imported.
pub(super) async fn cluster_with_version(ctx: &TestContext, versions: &[&str]) -> Result<Cluster> {
    for version in versions {
        ctx.image(&catalog::etcd_name(version)).await?;
    }
    let first = versions.first().context("no version")?;
    let cluster = healthy_cluster(ctx, 3, &json!({"version": first})).await?;
    ctx.wait_until("all pods to be ready", RECOVERY_TIMEOUT, async || {
        let pods = cluster.pods().await.map_err(|error| format!("{error:#}"))?;
        let ready = pods.iter().filter(|pod| is_ready(pod)).count();
        if ready == 3 { Ok(()) } else { Err(format!("{ready} are")) }
    })
    .await?;
    Ok(cluster)
}

/// Waits until all members run a version, and the status reports it.
pub(super) async fn wait_version(
    ctx: &TestContext,
    cluster: &Cluster,
    version: &str,
) -> Result<()> {
    ctx.wait_until(&format!("etcd {version}"), ROLLOUT_TIMEOUT, async || {
        let object = cluster.get().await.map_err(|error| format!("{error:#}"))?;
        let current = object.pointer("/status/currentVersion").and_then(Value::as_str);
        let summary = quorate_harness::etcd_cluster::summary(&object);
        if current == Some(version) { Ok(()) } else { Err(format!("{current:?}: {summary}")) }
    })
    .await?;
    cluster.wait_updated(ctx, 3, ROLLOUT_TIMEOUT).await
}

/// Waits until the first member runs a version.
pub(super) async fn wait_first_member_version(
    ctx: &TestContext,
    cluster: &Cluster,
    version: &str,
) -> Result<()> {
    ctx.wait_until(&format!("one member of {version}"), ROLLOUT_TIMEOUT, async || {
        let probes = cluster.etcd.probe_all().await.map_err(|error| format!("{error:#}"))?;
        let new = probes
            .iter()
            .filter_map(|(_, probe)| probe.as_ref())
            .any(|probe| probe.version == version);
        if new { Ok(()) } else { Err("no member does".to_owned()) }
    })
    .await
}

pub(super) async fn all_members_run(cluster: &Cluster, version: &str) -> Result<()> {
    for (name, probe) in cluster.etcd.probe_all().await? {
        let found = probe.map(|probe| probe.version);
        ensure!(found.as_deref() == Some(version), "{name} runs {found:?}");
    }
    Ok(())
}

/// What was observed during a rolling update.
#[derive(Default)]
pub(super) struct Rollout {
    /// The reported target versions, in their order.
    pub(super) targets: Vec<String>,
    /// How many observations in a row found fewer than two healthy members.
    unhealthy_observations: usize,
    /// The members whose pods were recreated, in their order, over all steps.
    pub(super) recreated: Vec<String>,
}

/// Observes a rolling update, and fails if two members are unhealthy at once, or members of three
/// minor versions run at the same time.
pub(super) async fn observe_rollout(
    cluster: &Cluster,
    action: impl Future<Output = Result<()>>,
) -> Result<Rollout> {
    let mut rollout = Rollout::default();
    let mut pods = uids(&cluster.pods().await?);
    let watch = async {
        loop {
            time::sleep(OBSERVE_INTERVAL).await;
            if let Err(error) = observe(cluster, &mut rollout, &mut pods).await {
                return error;
            }
        }
    };
    tokio::select! {
        result = action => result,
        error = watch => Err(error),
    }?;
    Ok(rollout)
}

async fn observe(
    cluster: &Cluster,
    rollout: &mut Rollout,
    before: &mut Vec<(String, String)>,
) -> Result<()> {
    // A failed read is repeated with the next observation.
    let (Ok(object), Ok(pods)) = (cluster.get().await, cluster.pods().await) else {
        return Ok(());
    };
    if let Ok(probes) = cluster.etcd.probe_all().await {
        let found = probes.iter().filter_map(|(_, probe)| probe.as_ref());
        let healthy = found.filter(|probe| probe.linearizable_read_ok).count();
        // During an election no linearizable read succeeds; two members must not be unhealthy for
        // longer.
        let unhealthy = rollout.unhealthy_observations.saturating_add(1);
        rollout.unhealthy_observations = if healthy >= 2 { 0 } else { unhealthy };
        ensure!(
            rollout.unhealthy_observations < MAX_UNHEALTHY_OBSERVATIONS,
            "only {healthy} members are healthy: {probes:?}"
        );
    }
    let target =
        object.pointer("/status/targetVersion").and_then(Value::as_str).unwrap_or_default();
    if rollout.targets.last().is_none_or(|last| last != target) {
        rollout.targets.push(target.to_owned());
    }
    let now = uids(&pods);
    let new = now.iter().filter(|pod| !before.contains(pod));
    rollout.recreated.extend(new.map(|(name, _)| name.clone()));
    *before = now;
    let images = pods.iter().filter_map(|pod| pod.spec.as_ref()?.containers.first()?.image.clone());
    let minor = |image: String| {
        image.rsplit_once('.').map(|(minor, _)| minor.to_owned()).unwrap_or_default()
    };
    let minors: BTreeSet<String> = images.map(minor).collect();
    ensure!(minors.len() <= 2, "members of {minors:?} run at the same time");
    Ok(())
}

pub(super) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    ready && pod.metadata.deletion_timestamp.is_none()
}

/// Waits until the Updating condition has this reason.
pub(super) async fn wait_update_reason(
    ctx: &TestContext,
    cluster: &Cluster,
    reason: &str,
) -> Result<(String, String)> {
    ctx.wait_until(&format!("the reason {reason}"), CREATE_TIMEOUT, async || {
        let object = cluster.get().await.map_err(|error| format!("{error:#}"))?;
        let found = quorate_harness::etcd_cluster::condition(&object, "Updating");
        match found {
            Some((_, found, message)) if found == reason => Ok((found, message)),
            other => Err(format!("{other:?}")),
        }
    })
    .await
}
