//! The way from one release to another while the cluster serves: several steps for one edit, another goal on the way, down and
//! up again; and a change that does not start, which is taken back by itself.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{LimitRange, LimitRangeItem, LimitRangeSpec, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::api::PostParams;
use quorate_harness::etcd_cluster::Cluster;
use quorate_harness::{Disturbs, Story};
use serde_json::{Value, json};
use tokio::time;

use super::change::{
    PATIENCE, all_run, is_ready, one_by_one, one_runs, runs, says_because, with_release,
};
use super::{
    COMES, NEVER, RETURNS, are_the_same, leader_and_follower, watched, with_operator, writes_go_on,
};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn the_whole_way_is_gone_for_one_edit() -> Result<()> {
    with_operator("etcd-whole-way", Disturbs::Nothing, async |story| {
        let way = ["3.5.21", "3.5.35", "3.6.16", "3.7.3"];
        let cluster = with_release(story, &way).await?;
        watched(&cluster, async |_| {
            let before = cluster.user.listed().await?;
            cluster.edit(&json!({"version": "3.7.3"})).await?;
            let course = one_by_one(&cluster, runs(story, &cluster, "3.7.3")).await?;
            let steps = course.targets.iter().skip_while(|it| *it == "3.5.21");
            let steps: Vec<&str> = steps.map(String::as_str).collect();
            ensure!(steps == way[1..], "{steps:?}");
            ensure!(course.renewed.len() == 9, "{:?} were made anew", course.renewed);
            all_run(&cluster, "3.7.3").await?;
            are_the_same(&cluster, &before).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn another_version_is_asked_for_while_one_comes_in() -> Result<()> {
    with_operator("etcd-again", Disturbs::Nothing, async |story| {
        let cluster = with_release(story, &["3.6.10", "3.6.16", "3.7.3"]).await?;
        watched(&cluster, async |_| {
            cluster.edit(&json!({"version": "3.6.16"})).await?;
            one_runs(story, &cluster, "3.6.16").await?;
            cluster.edit(&json!({"version": "3.7.3"})).await?;
            one_by_one(&cluster, runs(story, &cluster, "3.7.3")).await?;
            all_run(&cluster, "3.7.3").await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn a_cluster_goes_down_a_minor_version_changes_its_mind_and_goes_again() -> Result<()> {
    with_operator("etcd-down", Disturbs::Nothing, async |story| {
        let cluster = with_release(story, &["3.6.16", "3.5.35"]).await?;
        watched(&cluster, async |_| {
            let before = cluster.user.listed().await?;
            cluster.edit(&json!({"version": "3.5.35"})).await?;
            one_runs(story, &cluster, "3.5.35").await?;
            cluster.edit(&json!({"version": "3.6.16"})).await?;
            one_by_one(&cluster, runs(story, &cluster, "3.6.16")).await?;
            all_run(&cluster, "3.6.16").await?;
            cluster.edit(&json!({"version": "3.5.35"})).await?;
            let course = one_by_one(&cluster, runs(story, &cluster, "3.5.35")).await?;
            ensure!(course.renewed.len() == 3, "{:?} were made anew", course.renewed);
            all_run(&cluster, "3.5.35").await?;
            are_the_same(&cluster, &before).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn a_bad_image_is_taken_back_by_itself() -> Result<()> {
    let nowhere = json!({"image": {"repository": "registry.invalid/etcd"}});
    taken_back("etcd-bad-image", &nowhere, async |_| Ok(())).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn memory_that_does_not_suffice_is_taken_back_by_itself() -> Result<()> {
    let limits = json!({"memory": "8Mi"});
    let little = json!({"resources": {"requests": limits, "limits": limits}});
    taken_back("etcd-little-memory", &little, async |_| Ok(())).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn resources_that_the_namespace_does_not_grant_are_taken_back_by_themselves() -> Result<()> {
    let limits = json!({"memory": "2Gi"});
    let much = json!({"resources": {"requests": {"memory": "64Mi"}, "limits": limits}});
    taken_back("etcd-refused", &much, grant_little).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn a_pod_that_is_lost_while_a_bad_change_is_judged_comes_back_as_it_was() -> Result<()> {
    with_operator("etcd-lost-judged", Disturbs::Nothing, async |story: &Story| {
        let cluster = with_release(story, &["3.6.16"]).await?;
        watched(&cluster, async |witnesses| {
            let before = cluster.user.listed().await?;
            cluster.edit(&json!({"image": {"repository": "registry.invalid/etcd"}})).await?;
            let tries = a_bad_pod(story, &cluster).await?;
            let (leader, _) = leader_and_follower(&cluster).await?;
            let mut others = cluster.pods().await?.into_iter().map(|it| it.name_any());
            let lost = others.find(|it| *it != tries && *it != leader);
            let lost = lost.context("nobody is left to lose")?;
            let pod = cluster.pod(&lost).await?.uid();
            cluster.lose_pods(std::slice::from_ref(&lost)).await?;
            story
                .wait_until("it to run again, as it did", RETURNS, async || {
                    let pod_now = cluster.pod(&lost).await.map_err(|error| format!("{error:#}"))?;
                    let is_other = pod_now.uid() != pod && is_ready(&pod_now);
                    if is_other { Ok(()) } else { Err(format!("{:?}", image(&pod_now))) }
                })
                .await?;
            // The change is judged as if nothing had happened.
            says_because(story, &cluster, "RolledBack").await?;
            writes_go_on(story, witnesses).await?;
            let object = cluster.look().await?;
            let member = object.pointer("/status/rollback/member").and_then(Value::as_str);
            ensure!(member == Some(tries.as_str()), "{member:?} instead of {tries}");
            cluster.edit(&json!({"image": null})).await?;
            cluster.is_updated(story, 3, COMES.max(PATIENCE)).await?;
            are_the_same(&cluster, &before).await
        })
        .await?;
        Ok(())
    })
    .await
}

/// Waits until a member was made of a bad image, and answers with its name.
async fn a_bad_pod(story: &Story, cluster: &Cluster) -> Result<String> {
    story
        .wait_until("a pod of the bad image", COMES, async || {
            let pods = cluster.pods().await.map_err(|error| format!("{error:#}"))?;
            let is_bad = |it: &Pod| image(it).is_some_and(|it| it.starts_with("registry.invalid"));
            let bad = pods.iter().find(|it| is_bad(it)).map(ResourceExt::name_any);
            bad.ok_or_else(|| "there is none".to_owned())
        })
        .await
}

fn image(pod: &Pod) -> Option<String> {
    pod.spec.as_ref()?.containers.first()?.image.clone()
}

/// The admin lets no container have more than a gibibyte of memory.
async fn grant_little(story: &Story) -> Result<()> {
    let limits = [LimitRangeItem {
        type_: "Container".to_owned(),
        max: Some([("memory".to_owned(), Quantity("1Gi".to_owned()))].into()),
        ..LimitRangeItem::default()
    }];
    let range = LimitRange {
        metadata: ObjectMeta { name: Some("little".to_owned()), ..ObjectMeta::default() },
        spec: Some(LimitRangeSpec { limits: limits.into() }),
    };
    story.api::<LimitRange>().create(&PostParams::default(), &range).await?;
    Ok(())
}

/// A change with which no member starts costs one member for a while, and is taken back; it stays so until the spec is changed.
async fn taken_back(
    title: &'static str,
    change: &Value,
    first: impl AsyncFnOnce(&Story) -> Result<()>,
) -> Result<()> {
    with_operator(title, Disturbs::Nothing, async |story: &Story| {
        let cluster = with_release(story, &["3.6.16"]).await?;
        watched(&cluster, async |witnesses| {
            let before = cluster.user.listed().await?;
            first(story).await?;
            cluster.edit(change).await?;
            let plot = async {
                let (reason, words) = says_because(story, &cluster, "RolledBack").await?;
                println!(
                    "{reason}: {words}\n{}",
                    story.kubectl(&["describe", "etcdcluster"]).await?
                );
                Ok(())
            };
            let course = one_by_one(&cluster, plot).await?;
            let touched: BTreeSet<_> = course.renewed.iter().collect();
            ensure!(touched.len() == 1, "{touched:?} were touched");
            // Longer than it would take to touch another.
            time::sleep(NEVER).await;
            let ready = cluster.pods().await?.iter().filter(|it| is_ready(it)).count();
            ensure!(ready == 3, "{ready} members run as before");
            let object = cluster.look().await?;
            let member = object.pointer("/status/rollback/member").and_then(Value::as_str);
            ensure!(member.is_some_and(|it| touched.iter().any(|name| *name == it)), "{member:?}");
            let events =
                story.kubectl(&["get", "events", "--field-selector=reason=TakenBack"]).await?;
            ensure!(events.contains("Warning"), "no Event: {events}");
            writes_go_on(story, witnesses).await?;
            let names = change.as_object().context("no change")?.keys();
            let undone =
                names.map(|name| (name.clone(), Value::Null)).collect::<serde_json::Map<_, _>>();
            cluster.edit(&Value::Object(undone)).await?;
            cluster.is_updated(story, 3, COMES.max(PATIENCE)).await?;
            are_the_same(&cluster, &before).await
        })
        .await?;
        Ok(())
    })
    .await
}
