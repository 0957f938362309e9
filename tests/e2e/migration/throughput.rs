//! The throughput of the storage migration, beside Kubernetes' own migrator and beside sequential
//! writes, in one run.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use quorate::api::names;
use quorate_harness::{Isolation, TestContext, run};
use serde_json::{Value, json};

use super::{APPS_CRD, BULK_KIND, CONCURRENCY, bulk_api, bulk_object, delete_all, stored_objects};
use crate::installation::{leader, with_installation};

const OBJECTS: usize = 1_000;
const MIGRATION_TIMEOUT: Duration = Duration::from_mins(6);
/// More than an API server takes to write in another storage version.
const STORAGE_VERSION_DELAY: Duration = Duration::from_secs(12);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn migration_throughput_beside_other_migrators() -> Result<()> {
    run("migration-rate", Isolation::Serial, async |ctx| {
        with_installation(ctx, async || {
            let result = measure(ctx).await;
            delete_all(ctx).await?;
            result
        })
        .await
    })
    .await
}

async fn measure(ctx: &TestContext) -> Result<()> {
    leader(ctx).await?;
    set_paused(ctx, true).await?;
    let objects = bulk_api(ctx, "v1");
    let create = |number: usize| {
        let objects = objects.clone();
        async move {
            let object = bulk_object("v1", &format!("one-of-{number}"))?;
            objects.create(&PostParams::default(), &object).await?;
            anyhow::Ok(())
        }
    };
    stream::iter(0..OBJECTS).map(create).buffer_unordered(CONCURRENCY).try_collect::<()>().await?;

    store_in_v1beta1(ctx, &objects).await?;
    let sequential = rewrite_sequentially(&objects).await?;
    all_in_v1(ctx).await?;

    store_in_v1beta1(ctx, &objects).await?;
    let kubernetes = by_kubernetes(ctx).await?;
    all_in_v1(ctx).await?;

    store_in_v1beta1(ctx, &objects).await?;
    let operator = by_operator(ctx).await?;
    all_in_v1(ctx).await?;
    let rate =
        |took: Duration| f64::from(u32::try_from(OBJECTS).unwrap_or_default()) / took.as_secs_f64();
    println!(
        "{OBJECTS} objects: the operator {:.0}/s (listed twice and verified), Kubernetes' migrator {:.0}/s, \
         sequential writes {:.0}/s; {:.1} and {:.1} times as fast",
        rate(operator),
        rate(kubernetes),
        rate(sequential),
        rate(operator) / rate(kubernetes),
        rate(operator) / rate(sequential),
    );
    Ok(())
}

/// Stores all objects in v1beta1, and sets the storage version to v1 again.
async fn store_in_v1beta1(ctx: &TestContext, objects: &Api<DynamicObject>) -> Result<()> {
    set_storage_version(ctx, "v1beta1").await?;
    rewrite_concurrently(objects).await?;
    let stored = stored_objects(ctx).await?;
    ensure!(stored.values().all(|version| version == "v1beta1"), "not all are stored in v1beta1");
    set_storage_version(ctx, "v1").await
}

async fn all_in_v1(ctx: &TestContext) -> Result<()> {
    let stored = stored_objects(ctx).await?;
    ensure!(
        stored.len() == OBJECTS && stored.values().all(|version| version == "v1"),
        "not all are stored in v1"
    );
    Ok(())
}

async fn rewrite(objects: Api<DynamicObject>, object: DynamicObject) -> Result<()> {
    let empty =
        Patch::Merge(json!({"metadata": {"resourceVersion": object.metadata.resource_version}}));
    let name = object.metadata.name.unwrap_or_default();
    objects.patch(&name, &PatchParams::default(), &empty).await?;
    Ok(())
}

async fn rewrite_concurrently(objects: &Api<DynamicObject>) -> Result<()> {
    let all = objects.list(&ListParams::default()).await?.items;
    let rewrites = stream::iter(all).map(|object| rewrite(objects.clone(), object));
    rewrites.buffer_unordered(CONCURRENCY).try_collect::<()>().await
}

async fn rewrite_sequentially(objects: &Api<DynamicObject>) -> Result<Duration> {
    let started = Instant::now();
    for object in objects.list(&ListParams::default()).await?.items {
        rewrite(objects.clone(), object).await?;
    }
    Ok(started.elapsed())
}

async fn by_kubernetes(ctx: &TestContext) -> Result<Duration> {
    let body = json!({
        "apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration",
        "metadata": {"name": "e2e-throughput"}, "spec": {"resource": {"group": BULK_KIND.0, "resource": "exampleapps"}},
    });
    let file = super::previous_release::tempfile("throughput", &body.to_string())?;
    let started = Instant::now();
    ctx.admin.run(&["apply", "--filename", &file]).await?;
    ctx.wait_until("Kubernetes' migrator to succeed", MIGRATION_TIMEOUT, async || {
        let read = ctx
            .admin
            .run(&["get", "storageversionmigration", "e2e-throughput", "-o", "json"])
            .await;
        let read = read.map_err(|error| format!("{error:#}"))?;
        let read: Value = serde_json::from_str(&read).map_err(|error| error.to_string())?;
        let status = read["status"].to_string();
        let done = read["status"]["conditions"].as_array().into_iter().flatten();
        if done
            .into_iter()
            .any(|condition| condition["type"] == "Succeeded" && condition["status"] == "True")
        {
            Ok(())
        } else {
            Err(status)
        }
    })
    .await?;
    let took = started.elapsed();
    ctx.admin.run(&["delete", "--filename", &file]).await?;
    Ok(took)
}

/// From the start time to the completion time of the record.
async fn by_operator(ctx: &TestContext) -> Result<Duration> {
    set_paused(ctx, false).await?;
    ctx.wait_until("the operator to complete the migration", MIGRATION_TIMEOUT, async || {
        let record = super::record(ctx).await.map_err(|error| format!("{error:#}"))?;
        let record = &record[APPS_CRD];
        let time = |key: &str| record[key].as_str()?.parse::<jiff::Timestamp>().ok();
        match (record["phase"].as_str(), time("startTime"), time("completionTime")) {
            (Some("Complete"), Some(started), Some(completed))
                if record["counts"]["written"] == OBJECTS =>
            {
                Duration::try_from(completed.duration_since(started))
                    .map_err(|error| error.to_string())
            }
            _ => Err(record.to_string()),
        }
    })
    .await
}

async fn set_paused(ctx: &TestContext, paused: bool) -> Result<()> {
    let value = if paused { format!("={}", names::MIGRATION_PAUSED) } else { "-".to_owned() };
    let annotation = format!("{}{value}", names::MIGRATION_ANNOTATION);
    ctx.admin.run(&["annotate", "crd", APPS_CRD, &annotation]).await.map(drop)
}

async fn set_storage_version(ctx: &TestContext, version: &str) -> Result<()> {
    let crds = Api::<CustomResourceDefinition>::all(ctx.client.clone());
    let mut crd = crds.get(APPS_CRD).await?;
    for entry in &mut crd.spec.versions {
        entry.storage = entry.name == version;
    }
    let patch = Patch::Merge(json!({"spec": {"versions": crd.spec.versions}}));
    crds.patch(APPS_CRD, &PatchParams::default(), &patch).await?;
    tokio::time::sleep(STORAGE_VERSION_DELAY).await;
    Ok(())
}
