//! Version changes while the cluster serves: several steps for one edit, another target meanwhile,
//! downgrade and upgrade; and the automatic rollback of a change with which members do not start.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{LimitRange, LimitRangeItem, LimitRangeSpec, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::api::PostParams;
use quorate_harness::etcd_cluster::Cluster;
use quorate_harness::{Isolation, TestContext};
use serde_json::{Value, json};
use tokio::time;

use super::rolling_update::{
    ROLLOUT_TIMEOUT, all_members_run, cluster_with_version, is_ready, observe_rollout,
    wait_first_member_version, wait_update_reason, wait_version,
};
use super::{
    CREATE_TIMEOUT, NO_CHANGE_DELAY, RECOVERY_TIMEOUT, leader_and_follower, monitored,
    same_members, with_operator, writes_continue,
};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn one_edit_upgrades_through_all_minor_versions() -> Result<()> {
    with_operator("etcd-upgrade-path", Isolation::Parallel, async |ctx| {
        let path = ["3.5.21", "3.5.35", "3.6.16", "3.7.3"];
        let cluster = cluster_with_version(ctx, &path).await?;
        monitored(&cluster, async |_| {
            let before = cluster.etcd.member_list().await?;
            cluster.edit(&json!({"version": "3.7.3"})).await?;
            let rollout = observe_rollout(&cluster, wait_version(ctx, &cluster, "3.7.3")).await?;
            let steps = rollout.targets.iter().skip_while(|target| *target == "3.5.21");
            let steps: Vec<&str> = steps.map(String::as_str).collect();
            ensure!(steps == path[1..], "{steps:?}");
            ensure!(rollout.recreated.len() == 9, "{:?} were recreated", rollout.recreated);
            all_members_run(&cluster, "3.7.3").await?;
            same_members(&cluster, &before).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn target_version_is_changed_during_an_upgrade() -> Result<()> {
    with_operator("etcd-retarget", Isolation::Parallel, async |ctx| {
        let cluster = cluster_with_version(ctx, &["3.6.10", "3.6.16", "3.7.3"]).await?;
        monitored(&cluster, async |_| {
            cluster.edit(&json!({"version": "3.6.16"})).await?;
            wait_first_member_version(ctx, &cluster, "3.6.16").await?;
            cluster.edit(&json!({"version": "3.7.3"})).await?;
            observe_rollout(&cluster, wait_version(ctx, &cluster, "3.7.3")).await?;
            all_members_run(&cluster, "3.7.3").await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn downgrade_is_reverted_half_way_and_completed_later() -> Result<()> {
    with_operator("etcd-downgrade", Isolation::Parallel, async |ctx| {
        let cluster = cluster_with_version(ctx, &["3.6.16", "3.5.35"]).await?;
        monitored(&cluster, async |_| {
            let before = cluster.etcd.member_list().await?;
            cluster.edit(&json!({"version": "3.5.35"})).await?;
            wait_first_member_version(ctx, &cluster, "3.5.35").await?;
            cluster.edit(&json!({"version": "3.6.16"})).await?;
            observe_rollout(&cluster, wait_version(ctx, &cluster, "3.6.16")).await?;
            all_members_run(&cluster, "3.6.16").await?;
            cluster.edit(&json!({"version": "3.5.35"})).await?;
            let rollout = observe_rollout(&cluster, wait_version(ctx, &cluster, "3.5.35")).await?;
            ensure!(rollout.recreated.len() == 3, "{:?} were recreated", rollout.recreated);
            all_members_run(&cluster, "3.5.35").await?;
            same_members(&cluster, &before).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn missing_image_is_rolled_back() -> Result<()> {
    let missing = json!({"image": {"repository": "registry.invalid/etcd"}});
    rolled_back("etcd-bad-image", &missing, async |_| Ok(())).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn insufficient_memory_is_rolled_back() -> Result<()> {
    let limits = json!({"memory": "8Mi"});
    let little = json!({"resources": {"requests": limits, "limits": limits}});
    rolled_back("etcd-little-memory", &little, async |_| Ok(())).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn resources_beyond_the_limit_range_are_rolled_back() -> Result<()> {
    let limits = json!({"memory": "2Gi"});
    let much = json!({"resources": {"requests": {"memory": "64Mi"}, "limits": limits}});
    rolled_back("etcd-rejected", &much, create_limit_range).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn pod_lost_during_canary_is_recreated_from_previous_template() -> Result<()> {
    with_operator("etcd-lost-canary", Isolation::Parallel, async |ctx: &TestContext| {
        let cluster = cluster_with_version(ctx, &["3.6.16"]).await?;
        monitored(&cluster, async |monitors| {
            let before = cluster.etcd.member_list().await?;
            cluster.edit(&json!({"image": {"repository": "registry.invalid/etcd"}})).await?;
            let canary = wait_canary(ctx, &cluster).await?;
            let (leader, _) = leader_and_follower(&cluster).await?;
            let mut others = cluster.pods().await?.into_iter().map(|pod| pod.name_any());
            let lost = others.find(|name| *name != canary && *name != leader);
            let lost = lost.context("no other follower")?;
            let pod = cluster.pod(&lost).await?.uid();
            cluster.delete_pods(std::slice::from_ref(&lost)).await?;
            ctx.wait_until(
                "the pod to run again with the previous template",
                RECOVERY_TIMEOUT,
                async || {
                    let pod_now = cluster.pod(&lost).await.map_err(|error| format!("{error:#}"))?;
                    let is_other = pod_now.uid() != pod && is_ready(&pod_now);
                    if is_other { Ok(()) } else { Err(format!("{:?}", image(&pod_now))) }
                },
            )
            .await?;
            // The canary is still evaluated.
            wait_update_reason(ctx, &cluster, "RolledBack").await?;
            writes_continue(ctx, monitors).await?;
            let object = cluster.get().await?;
            let member = object.pointer("/status/rollback/member").and_then(Value::as_str);
            ensure!(member == Some(canary.as_str()), "{member:?} instead of {canary}");
            cluster.edit(&json!({"image": null})).await?;
            cluster.wait_updated(ctx, 3, CREATE_TIMEOUT.max(ROLLOUT_TIMEOUT)).await?;
            same_members(&cluster, &before).await
        })
        .await?;
        Ok(())
    })
    .await
}

/// Waits until a pod has the bad image, and returns its name.
async fn wait_canary(ctx: &TestContext, cluster: &Cluster) -> Result<String> {
    ctx.wait_until("a pod with the bad image", CREATE_TIMEOUT, async || {
        let pods = cluster.pods().await.map_err(|error| format!("{error:#}"))?;
        let is_bad =
            |pod: &Pod| image(pod).is_some_and(|image| image.starts_with("registry.invalid"));
        let bad = pods.iter().find(|pod| is_bad(pod)).map(ResourceExt::name_any);
        bad.ok_or_else(|| "no pod has it".to_owned())
    })
    .await
}

fn image(pod: &Pod) -> Option<String> {
    pod.spec.as_ref()?.containers.first()?.image.clone()
}

/// A `LimitRange` that allows no container more than a gibibyte of memory.
async fn create_limit_range(ctx: &TestContext) -> Result<()> {
    let limits = [LimitRangeItem {
        type_: "Container".to_owned(),
        max: Some([("memory".to_owned(), Quantity("1Gi".to_owned()))].into()),
        ..LimitRangeItem::default()
    }];
    let range = LimitRange {
        metadata: ObjectMeta { name: Some("little".to_owned()), ..ObjectMeta::default() },
        spec: Some(LimitRangeSpec { limits: limits.into() }),
    };
    ctx.api::<LimitRange>().create(&PostParams::default(), &range).await?;
    Ok(())
}

/// A change with which no member starts affects one member only, and is rolled back until the spec
/// is changed.
async fn rolled_back(
    name: &'static str,
    change: &Value,
    prepare: impl AsyncFnOnce(&TestContext) -> Result<()>,
) -> Result<()> {
    with_operator(name, Isolation::Parallel, async |ctx: &TestContext| {
        let cluster = cluster_with_version(ctx, &["3.6.16"]).await?;
        monitored(&cluster, async |monitors| {
            let before = cluster.etcd.member_list().await?;
            prepare(ctx).await?;
            cluster.edit(change).await?;
            let action = async {
                let (reason, message) = wait_update_reason(ctx, &cluster, "RolledBack").await?;
                println!(
                    "{reason}: {message}\n{}",
                    ctx.kubectl(&["describe", "etcdcluster"]).await?
                );
                Ok(())
            };
            let rollout = observe_rollout(&cluster, action).await?;
            let recreated: BTreeSet<_> = rollout.recreated.iter().collect();
            ensure!(recreated.len() == 1, "{recreated:?} were recreated");
            // Longer than the recreation of another pod would take.
            time::sleep(NO_CHANGE_DELAY).await;
            let ready = cluster.pods().await?.iter().filter(|pod| is_ready(pod)).count();
            ensure!(ready == 3, "{ready} members are ready");
            let object = cluster.get().await?;
            let member = object.pointer("/status/rollback/member").and_then(Value::as_str);
            let reported = |member: &str| recreated.iter().any(|name| *name == member);
            ensure!(member.is_some_and(reported), "{member:?}");
            let events =
                ctx.kubectl(&["get", "events", "--field-selector=reason=RolledBack"]).await?;
            ensure!(events.contains("Warning"), "no Event: {events}");
            writes_continue(ctx, monitors).await?;
            let fields = change.as_object().context("no change")?.keys();
            let removed = fields.map(|field| (field.clone(), Value::Null));
            cluster.edit(&Value::Object(removed.collect())).await?;
            cluster.wait_updated(ctx, 3, CREATE_TIMEOUT.max(ROLLOUT_TIMEOUT)).await?;
            same_members(&cluster, &before).await
        })
        .await?;
        Ok(())
    })
    .await
}
