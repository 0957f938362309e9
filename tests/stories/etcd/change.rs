//! Members are made different while the cluster serves: another release, other options, one member after the other and
//! the leader last; and it can be taken back.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use quorate_harness::etcd_cluster::{Cluster, uids};
use quorate_harness::{Disturbs, Story, catalog};
use serde_json::{Value, json};
use tokio::time;

use super::{
    COMES, RETURNS, are_the_same, healthy, leader_and_follower, replaced, watched, with_operator,
};

/// Three members, one after the other, on a small machine.
pub(super) const PATIENCE: Duration = Duration::from_mins(8);
const OFTEN: Duration = Duration::from_millis(200);
/// So many looks, about two seconds.
const TOO_LONG: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_release_and_other_options_reach_one_member_after_the_other() -> Result<()> {
    with_operator("etcd-patch", Disturbs::Nothing, async |story| {
        let cluster = with_release(story, &["3.6.10", "3.6.16"]).await?;
        watched(&cluster, async |_| {
            let before = cluster.user.listed().await?;
            let (leader, _) = leader_and_follower(&cluster).await?;
            let change = json!({"version": "3.6.16", "options": {"snapshotCount": 20_000}});
            cluster.edit(&change).await?;
            let course = one_by_one(&cluster, cluster.is_updated(story, 3, PATIENCE)).await?;
            ensure!(course.renewed.len() == 3, "{:?} were made anew", course.renewed);
            ensure!(course.renewed.last() == Some(&leader), "{leader} led: {:?}", course.renewed);
            all_run(&cluster, "3.6.16").await?;
            are_the_same(&cluster, &before).await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn each_minor_version_is_reached_from_the_one_before() -> Result<()> {
    for (from, to) in [("3.5.35", "3.6.16"), ("3.6.16", "3.7.3")] {
        with_operator("etcd-minor", Disturbs::Nothing, async |story| {
            let cluster = with_release(story, &[from, to]).await?;
            watched(&cluster, async |_| {
                let before = cluster.user.listed().await?;
                cluster.edit(&json!({"version": to})).await?;
                let course = one_by_one(&cluster, runs(story, &cluster, to)).await?;
                ensure!(course.targets.last().is_some_and(|it| it == to), "{:?}", course.targets);
                ensure!(course.renewed.len() == 3, "{:?} were made anew", course.renewed);
                all_run(&cluster, to).await?;
                are_the_same(&cluster, &before).await
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
#[ignore = "minutes; make stories-long tells it"]
async fn an_upgrade_is_taken_back_half_way_and_begun_again() -> Result<()> {
    with_operator("etcd-taken-back", Disturbs::Nothing, async |story| {
        let cluster = with_release(story, &["3.5.35", "3.6.16"]).await?;
        watched(&cluster, async |_| {
            cluster.edit(&json!({"version": "3.6.16"})).await?;
            one_runs(story, &cluster, "3.6.16").await?;
            cluster.edit(&json!({"version": "3.5.35"})).await?;
            one_by_one(&cluster, runs(story, &cluster, "3.5.35")).await?;
            all_run(&cluster, "3.5.35").await?;
            cluster.edit(&json!({"version": "3.6.16"})).await?;
            one_by_one(&cluster, runs(story, &cluster, "3.6.16")).await?;
            all_run(&cluster, "3.6.16").await
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; make stories-long tells it"]
async fn a_member_that_is_lost_during_an_upgrade_is_replaced_and_it_goes_on() -> Result<()> {
    with_operator("etcd-lost-upgrade", Disturbs::Nothing, async |story| {
        let cluster = with_release(story, &["3.5.35", "3.6.16"]).await?;
        watched(&cluster, async |_| {
            let before = cluster.user.listed().await?;
            cluster.edit(&json!({"version": "3.6.16"})).await?;
            one_runs(story, &cluster, "3.6.16").await?;
            let (_, follower) = leader_and_follower(&cluster).await?;
            cluster.lose_member(&follower).await?;
            replaced(story, &cluster, 3, before.id_of(&follower).context("nobody")?).await?;
            runs(story, &cluster, "3.6.16").await?;
            all_run(&cluster, "3.6.16").await
        })
        .await?;
        Ok(())
    })
    .await
}

/// Three members of the first release; the others are there for later.
pub(super) async fn with_release(story: &Story, releases: &[&str]) -> Result<Cluster> {
    for release in releases {
        story.image(&catalog::etcd_name(release)).await?;
    }
    let first = releases.first().context("no release")?;
    let cluster = healthy(story, 3, &json!({"version": first})).await?;
    story
        .wait_until("all pods to be ready", RETURNS, async || {
            let pods = cluster.pods().await.map_err(|error| format!("{error:#}"))?;
            let ready = pods.iter().filter(|it| is_ready(it)).count();
            if ready == 3 { Ok(()) } else { Err(format!("{ready} are")) }
        })
        .await?;
    Ok(cluster)
}

/// Waits until all members run a release, and the cluster says so.
pub(super) async fn runs(story: &Story, cluster: &Cluster, release: &str) -> Result<()> {
    story
        .wait_until(&format!("etcd {release}"), PATIENCE, async || {
            let object = cluster.look().await.map_err(|error| format!("{error:#}"))?;
            let said = object.pointer("/status/currentVersion").and_then(Value::as_str);
            let there = said == Some(release);
            let words = quorate_harness::etcd_cluster::summary(&object);
            if there { Ok(()) } else { Err(format!("{said:?}: {words}")) }
        })
        .await?;
    cluster.is_updated(story, 3, PATIENCE).await
}

/// Waits until the first member answers with a release.
pub(super) async fn one_runs(story: &Story, cluster: &Cluster, release: &str) -> Result<()> {
    story
        .wait_until(&format!("one member of {release}"), PATIENCE, async || {
            let asked = cluster.user.ask_all().await.map_err(|error| format!("{error:#}"))?;
            let new =
                asked.iter().filter_map(|(_, it)| it.as_ref()).any(|it| it.version == release);
            if new { Ok(()) } else { Err("none does".to_owned()) }
        })
        .await
}

pub(super) async fn all_run(cluster: &Cluster, release: &str) -> Result<()> {
    for (name, answer) in cluster.user.ask_all().await? {
        let version = answer.map(|it| it.version);
        ensure!(version.as_deref() == Some(release), "{name} runs {version:?}");
    }
    Ok(())
}

/// What was seen while members were made anew.
#[derive(Default)]
pub(super) struct Course {
    /// The steps that were told, in their order.
    pub(super) targets: Vec<String>,
    /// How many looks in a row found fewer than two members that agree.
    too_few: usize,
    /// Whose pods were replaced, in their order, over all steps.
    pub(super) renewed: Vec<String>,
}

/// Lets something happen, and fails if two members are away at once, or members of three minor versions meet.
pub(super) async fn one_by_one(
    cluster: &Cluster,
    plot: impl Future<Output = Result<()>>,
) -> Result<Course> {
    let mut course = Course::default();
    let mut pods = uids(&cluster.pods().await?);
    let watch = async {
        loop {
            time::sleep(OFTEN).await;
            if let Err(error) = look(cluster, &mut course, &mut pods).await {
                return error;
            }
        }
    };
    tokio::select! {
        told = plot => told,
        error = watch => Err(error),
    }?;
    Ok(course)
}

async fn look(
    cluster: &Cluster,
    course: &mut Course,
    before: &mut Vec<(String, String)>,
) -> Result<()> {
    // Whoever cannot be asked just now is asked again.
    let (Ok(object), Ok(pods)) = (cluster.look().await, cluster.pods().await) else {
        return Ok(());
    };
    if let Ok(asked) = cluster.user.ask_all().await {
        let well = asked.iter().filter(|(_, it)| it.as_ref().is_some_and(|it| it.agrees)).count();
        // An election takes a moment in which nobody agrees; two that are away for longer are too many.
        course.too_few = if well >= 2 { 0 } else { course.too_few.saturating_add(1) };
        ensure!(course.too_few < TOO_LONG, "only {well} members answer: {asked:?}");
    }
    let target =
        object.pointer("/status/targetVersion").and_then(Value::as_str).unwrap_or_default();
    if course.targets.last().is_none_or(|it| it != target) {
        course.targets.push(target.to_owned());
    }
    let now = uids(&pods);
    let new = now.iter().filter(|it| !before.contains(it));
    course.renewed.extend(new.map(|(name, _)| name.clone()));
    *before = now;
    let images = pods.iter().filter_map(|it| it.spec.as_ref()?.containers.first()?.image.clone());
    let minor = |it: String| it.rsplit_once('.').map(|(it, _)| it.to_owned()).unwrap_or_default();
    let minors: BTreeSet<String> = images.map(minor).collect();
    ensure!(minors.len() <= 2, "members of {minors:?} meet");
    Ok(())
}

pub(super) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready =
        conditions.into_iter().flatten().any(|it| it.type_ == "Ready" && it.status == "True");
    ready && pod.metadata.deletion_timestamp.is_none()
}

/// Waits until the cluster says what it does, or why it does nothing.
pub(super) async fn says_because(
    story: &Story,
    cluster: &Cluster,
    reason: &str,
) -> Result<(String, String)> {
    story
        .wait_until(&format!("the reason {reason}"), COMES, async || {
            let object = cluster.look().await.map_err(|error| format!("{error:#}"))?;
            let found = quorate_harness::etcd_cluster::condition_of(&object, "Updating");
            match found {
                Some((_, why, words)) if why == reason => Ok((why, words)),
                other => Err(format!("{other:?}")),
            }
        })
        .await
}
