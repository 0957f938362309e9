//! Storage version migration of an older release's objects: with the CRDs of that release, objects
//! that kubectl wrote, and the bytes in the control plane's etcd.
#![expect(clippy::indexing_slicing, reason = "a missing JSON field reads as null")]
#![expect(clippy::arithmetic_side_effects, reason = "the numbers of a test are small")]

mod managed_fields;
mod many_objects;
mod previous_release;
mod throughput;
mod unknown_version;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, stream};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use quorate::api::names;
use quorate_harness::control_plane::StoredObject;
use quorate_harness::{Isolation, TestContext, audit, catalog, run};
use serde_json::{Value, json};

use super::installation::{
    SERVICE_ACCOUNT, manifest, uninstall, uninstall_if_present, wait_rollout,
};
use previous_release::{Objects, Release};

const STEP_TIMEOUT: Duration = Duration::from_mins(3);
const CLUSTERS_CRD: &str = "etcdclusters.etcd.appdelivery.cncf.io";
/// Thousands of objects are of this kind, because no controller writes to it.
const BULK_KIND: (&str, &str) = ("example-app.appdelivery.cncf.io", "ExampleApp");
/// Concurrent calls for thousands of objects.
const CONCURRENCY: usize = 8;
const APPS_CRD: &str = "exampleapps.example-app.appdelivery.cncf.io";

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_an_older_release_are_migrated_to_v1_without_visible_changes() -> Result<()> {
    run("migration", Isolation::Serial, async |ctx| {
        uninstall_if_present(ctx).await?;
        ctx.image(catalog::QUORATE).await?;
        let result = migrate(ctx).await;
        // Also if the operator was not installed: the CRDs exist.
        ctx.admin.run(&["apply", "--filename", &manifest()?]).await?;
        let uninstalled = uninstall(ctx).await;
        result.and(uninstalled)
    })
    .await
}

async fn migrate(ctx: &TestContext) -> Result<()> {
    let mut objects = Objects::default();
    previous_release::install(ctx, Release::Alpha).await?;
    objects.write(ctx, Release::Alpha, 6).await?;
    previous_release::install(ctx, Release::Beta).await?;
    objects.write(ctx, Release::Beta, 6).await?;
    let stored = stored_objects(ctx).await?;
    let count = |version: &str| stored.values().filter(|stored| stored.as_str() == version).count();
    ensure!(count("v1alpha1") == 12 && count("v1beta1") == 12, "{stored:?}");

    let mark = audit::mark(&ctx.paths)?;
    let writer = Writer::start(ctx, &objects);
    ctx.admin.run(&["apply", "--filename", &manifest()?]).await?;
    wait_rollout(ctx).await?;
    wait_migrated(ctx).await?;
    let edits = writer.stop().await?;
    ensure!(edits > 0, "no concurrent write succeeded");

    let stored = stored_objects(ctx).await?;
    ensure!(stored.len() == 24 && stored.values().all(|version| version == "v1"), "{stored:?}");
    objects.unchanged(ctx).await?;
    let rewritten = rewritten_once(ctx, mark)?.len();
    let events = ctx.admin.run(&["get", "events", "-n", "default", "-o", "json"]).await?;
    ensure!(events.contains("StorageMigrated") && events.contains(CLUSTERS_CRD), "{events}");
    println!("24 objects: {rewritten} writes of the operator, {edits} of another client");
    Ok(())
}

/// Waits until the CRDs list v1 alone and the record is closed. Each observation until then checks
/// that no version is stored that its CRD does not list.
async fn wait_migrated(ctx: &TestContext) -> Result<()> {
    ctx.wait_until("all objects to be stored in v1", STEP_TIMEOUT, async || {
        let chain = |error: anyhow::Error| format!("{error:#}");
        // First the CRDs, then the store: the other way round a version could be trimmed in
        // between.
        let listed = stored_versions(ctx).await.map_err(chain)?;
        stored_versions_are_listed(ctx, &listed).await.map_err(chain)?;
        let all = listed.values().all(|versions| versions == &["v1"]);
        let record = record(ctx).await.map_err(chain)?;
        let closed = [CLUSTERS_CRD, APPS_CRD].iter().all(|crd| record[crd]["phase"] == "Complete");
        if all && closed { Ok(()) } else { Err(format!("{listed:?} {record}")) }
    })
    .await
}

/// `status.storedVersions` of each CRD.
async fn stored_versions(ctx: &TestContext) -> Result<BTreeMap<&'static str, Vec<String>>> {
    let mut listed = BTreeMap::new();
    for name in [CLUSTERS_CRD, APPS_CRD] {
        let read = ctx.admin.run(&["get", "crd", name, "-o", "json"]).await?;
        let read: Value = serde_json::from_str(&read)?;
        listed.insert(name, serde_json::from_value(read["status"]["storedVersions"].clone())?);
    }
    Ok(listed)
}

/// Fails if a version is stored that its CRD does not list.
async fn stored_versions_are_listed(
    ctx: &TestContext,
    listed: &BTreeMap<&'static str, Vec<String>>,
) -> Result<()> {
    for (key, version) in stored_objects(ctx).await? {
        let crd = if key.contains("/etcdclusters/") { CLUSTERS_CRD } else { APPS_CRD };
        let all = listed.get(crd).map(Vec::as_slice).unwrap_or_default();
        ensure!(all.contains(&version), "{key} is stored as {version}, and {crd} lists {all:?}");
    }
    Ok(())
}

/// The keys of the test's objects with the versions in which they are stored, from the bytes in
/// etcd.
async fn stored_objects(ctx: &TestContext) -> Result<BTreeMap<String, String>> {
    let mut etcd = ctx.control_plane().await?;
    let mut found = BTreeMap::new();
    for kind in
        ["etcd.appdelivery.cncf.io/etcdclusters", "example-app.appdelivery.cncf.io/exampleapps"]
    {
        for StoredObject { key, value } in
            etcd.list(&format!("/registry/{kind}/{}/", ctx.namespace)).await?
        {
            let object: Value = serde_json::from_slice(&value).context(key.clone())?;
            let version = object["apiVersion"].as_str().unwrap_or_default();
            let version = version.split('/').next_back().unwrap_or_default();
            found.insert(key, version.to_owned());
        }
    }
    Ok(found)
}

/// An object of the bulk kind in a version.
fn bulk_object(version: &str, name: &str) -> Result<DynamicObject> {
    let (group, kind) = BULK_KIND;
    let key = if version == "v1alpha1" { "appVersion" } else { "version" };
    Ok(serde_json::from_value(json!({
        "apiVersion": format!("{group}/{version}"), "kind": kind,
        "metadata": {"name": name}, "spec": {key: "0.0.1"},
    }))?)
}

/// The API of the bulk kind in a version.
fn bulk_api(ctx: &TestContext, version: &str) -> Api<DynamicObject> {
    let (group, kind) = BULK_KIND;
    api(ctx, group, version, kind)
}

/// Deletes the objects one by one: a single call for all would time out.
async fn delete_all(ctx: &TestContext) -> Result<()> {
    let objects = bulk_api(ctx, "v1");
    let delete = |key: String| {
        let objects = objects.clone();
        let name = key.split('/').next_back().unwrap_or_default().to_owned();
        async move { drop(objects.delete(&name, &DeleteParams::default()).await) }
    };
    stream::iter(stored_objects(ctx).await?.into_keys())
        .map(delete)
        .buffer_unordered(CONCURRENCY)
        .collect::<()>()
        .await;
    Ok(())
}

/// The operator's migration record, by CRD.
async fn record(ctx: &TestContext) -> Result<Value> {
    let get = ["get", "configmap", names::MIGRATION_RECORD, "--ignore-not-found", "-o", "json"];
    let read = ctx.admin.run(&[&["-n", "quorate-system"], &get[..]].concat()).await?;
    let read: Value = serde_json::from_str(if read.is_empty() { "{}" } else { &read })?;
    let mut record = json!({});
    for (key, text) in read["data"].as_object().into_iter().flatten() {
        record[key] = serde_json::from_str(text.as_str().unwrap_or_default())?;
    }
    Ok(record)
}

/// Fails if the operator rewrote an object twice; returns the resource versions of the rewritten
/// objects before the write. A dry run has no resource version. Of two calls with the same resource
/// version the first has written nothing: the object was already stored in the storage version.
fn rewritten_once(ctx: &TestContext, mark: audit::Mark) -> Result<Vec<u64>> {
    let mut writes: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for call in audit::writes_since(&ctx.paths, mark)? {
        let target = &call.object_ref;
        let sent = call.request_object.unwrap_or_default();
        let by_operator = call.user.username == SERVICE_ACCOUNT && target.subresource.is_empty();
        let revision =
            sent["metadata"]["resourceVersion"].as_str().filter(|_| sent["spec"].is_null());
        if let Some(revision) = revision
            && by_operator
            && call.verb == "patch"
            && call.response_status.code == 200
        {
            let kind = &target.resource;
            if ["etcdclusters", "exampleapps"].contains(&kind.as_str()) {
                let name = format!("{kind}/{}/{}", target.namespace, target.name);
                writes.entry(name).or_default().insert(revision.parse()?);
            }
        }
    }
    let twice: Vec<_> = writes.iter().filter(|(_, times)| times.len() > 1).collect();
    ensure!(twice.is_empty(), "written more than once: {twice:?}");
    Ok(writes.into_values().flatten().collect())
}

/// The API of a kind in one version.
fn api(ctx: &TestContext, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(ctx.client.clone(), &ctx.namespace, &resource)
}

/// A client that edits the objects in turn: an annotation, which does not change the spec.
struct Writer {
    stop: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<u64>,
}

impl Writer {
    fn start(ctx: &TestContext, objects: &Objects) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let targets = objects.targets(ctx);
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let edits = AtomicU64::new(0);
            while !stopped.load(Ordering::Relaxed) {
                for (api, name) in &targets {
                    let count = edits.load(Ordering::Relaxed).to_string();
                    let note = Patch::Merge(json!({"metadata": {"annotations": {"note": count}}}));
                    // Until the conversion webhook runs, every write fails.
                    if api.patch(name, &PatchParams::default(), &note).await.is_ok() {
                        edits.fetch_add(1, Ordering::Relaxed);
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
            edits.into_inner()
        });
        Self { stop, task }
    }

    async fn stop(self) -> Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        Ok(self.task.await?)
    }
}
