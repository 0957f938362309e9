//! How fast objects are carried, beside Kubernetes' own migrator and beside one write after the other, in one run.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use quorate::api::names;
use quorate_harness::{Disturbs, Story, tell};
use serde_json::{Value, json};

use super::{APPS, AT_ONCE, MANY_OF, bytes, deleted, many, one_of_many};
use crate::installed::{installed, leader};

const MANY: usize = 1_000;
const LONG: Duration = Duration::from_mins(6);
/// More than an API server was seen to take until it writes in another version.
const LEARNT: Duration = Duration::from_secs(12);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "many minutes; make stories-long tells it"]
async fn objects_are_carried_at_a_rate_beside_that_of_others() -> Result<()> {
    tell("ratio", Disturbs::Everything, async |story| {
        installed(story, async || {
            let told = measured(story).await;
            deleted(story).await?;
            told
        })
        .await
    })
    .await
}

async fn measured(story: &Story) -> Result<()> {
    leader(story).await?;
    paused(story, true).await?;
    let objects = many(story, "v1");
    let make = |number: usize| {
        let objects = objects.clone();
        async move {
            let object = one_of_many("v1", &format!("one-of-{number}"))?;
            objects.create(&PostParams::default(), &object).await?;
            anyhow::Ok(())
        }
    };
    stream::iter(0..MANY).map(make).buffer_unordered(AT_ONCE).try_collect::<()>().await?;

    stale(story, &objects).await?;
    let serial = one_after_the_other(&objects).await?;
    all_fresh(story).await?;

    stale(story, &objects).await?;
    let theirs = by_kubernetes(story).await?;
    all_fresh(story).await?;

    stale(story, &objects).await?;
    let ours = by_the_operator(story).await?;
    all_fresh(story).await?;
    let rate =
        |took: Duration| f64::from(u32::try_from(MANY).unwrap_or_default()) / took.as_secs_f64();
    println!(
        "{MANY} objects: the operator {:.0}/s (listed twice and proven), Kubernetes' migrator {:.0}/s, one after the \
         other {:.0}/s; {:.1} and {:.1} times as fast",
        rate(ours),
        rate(theirs),
        rate(serial),
        rate(ours) / rate(theirs),
        rate(ours) / rate(serial),
    );
    Ok(())
}

/// Everything is stored in v1beta1, and the definition says v1.
async fn stale(story: &Story, objects: &Api<DynamicObject>) -> Result<()> {
    stored_in(story, "v1beta1").await?;
    one_after_the_other_at_once(objects).await?;
    let stored = bytes(story).await?;
    ensure!(stored.values().all(|it| it == "v1beta1"), "not all are stored in v1beta1");
    stored_in(story, "v1").await
}

async fn all_fresh(story: &Story) -> Result<()> {
    let stored = bytes(story).await?;
    ensure!(
        stored.len() == MANY && stored.values().all(|it| it == "v1"),
        "not all are stored in v1"
    );
    Ok(())
}

async fn touch(objects: Api<DynamicObject>, object: DynamicObject) -> Result<()> {
    let nothing =
        Patch::Merge(json!({"metadata": {"resourceVersion": object.metadata.resource_version}}));
    let name = object.metadata.name.unwrap_or_default();
    objects.patch(&name, &PatchParams::default(), &nothing).await?;
    Ok(())
}

async fn one_after_the_other_at_once(objects: &Api<DynamicObject>) -> Result<()> {
    let all = objects.list(&ListParams::default()).await?.items;
    let touched = stream::iter(all).map(|object| touch(objects.clone(), object));
    touched.buffer_unordered(AT_ONCE).try_collect::<()>().await
}

async fn one_after_the_other(objects: &Api<DynamicObject>) -> Result<Duration> {
    let begun = Instant::now();
    for object in objects.list(&ListParams::default()).await?.items {
        touch(objects.clone(), object).await?;
    }
    Ok(begun.elapsed())
}

async fn by_kubernetes(story: &Story) -> Result<Duration> {
    let body = json!({
        "apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration",
        "metadata": {"name": "story-ratio"}, "spec": {"resource": {"group": MANY_OF.0, "resource": "exampleapps"}},
    });
    let file = super::older::tempfile("ratio", &body.to_string())?;
    let begun = Instant::now();
    story.admin.run(&["apply", "--filename", &file]).await?;
    story
        .wait_until("Kubernetes' migrator to succeed", LONG, async || {
            let read = story
                .admin
                .run(&["get", "storageversionmigration", "story-ratio", "-o", "json"])
                .await;
            let read = read.map_err(|error| format!("{error:#}"))?;
            let read: Value = serde_json::from_str(&read).map_err(|error| error.to_string())?;
            let status = read["status"].to_string();
            let done = read["status"]["conditions"].as_array().into_iter().flatten();
            if done.into_iter().any(|it| it["type"] == "Succeeded" && it["status"] == "True") {
                Ok(())
            } else {
                Err(status)
            }
        })
        .await?;
    let took = begun.elapsed();
    story.admin.run(&["delete", "--filename", &file]).await?;
    Ok(took)
}

/// From the beginning that the record tells to the definition that names v1 alone.
async fn by_the_operator(story: &Story) -> Result<Duration> {
    paused(story, false).await?;
    story
        .wait_until("the operator to be done", LONG, async || {
            let record = super::record(story).await.map_err(|error| format!("{error:#}"))?;
            let record = &record[APPS];
            let time = |key: &str| record[key].as_str()?.parse::<jiff::Timestamp>().ok();
            match (record["phase"].as_str(), time("startTime"), time("completionTime")) {
                (Some("Complete"), Some(started), Some(ended))
                    if record["counts"]["written"] == MANY =>
                {
                    Duration::try_from(ended.duration_since(started))
                        .map_err(|error| error.to_string())
                }
                _ => Err(record.to_string()),
            }
        })
        .await
}

async fn paused(story: &Story, paused: bool) -> Result<()> {
    let value = if paused { format!("={}", names::MIGRATION_PAUSED) } else { "-".to_owned() };
    let note = format!("{}{value}", names::MIGRATION_ANNOTATION);
    story.admin.run(&["annotate", "crd", APPS, &note]).await.map(drop)
}

async fn stored_in(story: &Story, version: &str) -> Result<()> {
    let definitions = Api::<CustomResourceDefinition>::all(story.client.clone());
    let mut live = definitions.get(APPS).await?;
    for it in &mut live.spec.versions {
        it.storage = it.name == version;
    }
    let patch = Patch::Merge(json!({"spec": {"versions": live.spec.versions}}));
    definitions.patch(APPS, &PatchParams::default(), &patch).await?;
    tokio::time::sleep(LEARNT).await;
    Ok(())
}
