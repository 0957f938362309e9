//! Objects of an older release, carried to the version that is stored today: told with the definitions of that release,
//! objects that kubectl wrote, and the bytes in the control plane's etcd.
#![expect(clippy::indexing_slicing, reason = "JSON that is not there reads as null")]
#![expect(clippy::arithmetic_side_effects, reason = "the numbers of a story are small")]

mod crowd;
mod older;
mod owners;
mod ratio;
mod refused;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, stream};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use quorate::api::names;
use quorate_harness::control_plane::Kept;
use quorate_harness::{Disturbs, Story, audit, catalog, tell};
use serde_json::{Value, json};

use super::installed::{ACCOUNT, gone, manifest, rolled_out, uninstalled};
use older::{Objects, Stage};

const SOON: Duration = Duration::from_mins(3);
const CLUSTERS: &str = "etcdclusters.etcd.appdelivery.cncf.io";
/// Where there are thousands, they are of the kind that no controller writes to.
const MANY_OF: (&str, &str) = ("example-app.appdelivery.cncf.io", "ExampleApp");
/// So many calls are made at once where there are thousands.
const AT_ONCE: usize = 8;
const APPS: &str = "exampleapps.example-app.appdelivery.cncf.io";

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_an_older_release_end_stored_in_v1_and_nobody_notices() -> Result<()> {
    tell("migration", Disturbs::Everything, async |story| {
        gone(story).await?;
        story.image(catalog::QUORATE).await?;
        let told = migrated(story).await;
        // The definitions are also there if nobody was installed.
        story.admin.run(&["apply", "--filename", &manifest()?]).await?;
        let gone = uninstalled(story).await;
        told.and(gone)
    })
    .await
}

async fn migrated(story: &Story) -> Result<()> {
    let mut objects = Objects::default();
    older::install(story, Stage::Alpha).await?;
    objects.write(story, Stage::Alpha, 6).await?;
    older::install(story, Stage::Beta).await?;
    objects.write(story, Stage::Beta, 6).await?;
    let stored = bytes(story).await?;
    let count = |version: &str| stored.values().filter(|it| it.as_str() == version).count();
    ensure!(count("v1alpha1") == 12 && count("v1beta1") == 12, "{stored:?}");

    let mark = audit::mark(&story.places)?;
    let writer = Writer::begin(story, &objects);
    story.admin.run(&["apply", "--filename", &manifest()?]).await?;
    rolled_out(story).await?;
    done(story).await?;
    let edits = writer.end().await?;
    ensure!(edits > 0, "nobody wrote meanwhile");

    let stored = bytes(story).await?;
    ensure!(stored.len() == 24 && stored.values().all(|it| it == "v1"), "{stored:?}");
    objects.unchanged(story).await?;
    let carried = once(story, mark)?.len();
    let events = story.admin.run(&["get", "events", "-n", "default", "-o", "json"]).await?;
    ensure!(events.contains("StorageMigrated") && events.contains(CLUSTERS), "{events}");
    println!("24 objects: {carried} writes of the operator, {edits} of others, none noticed");
    Ok(())
}

/// Waits until the definitions name v1 alone and the record is closed. Until then each look proves that no version is in
/// the store that a definition does not name.
async fn done(story: &Story) -> Result<()> {
    story
        .wait_until("everything to be stored in v1", SOON, async || {
            let words = |error: anyhow::Error| format!("{error:#}");
            // First what is said, then what is: the other way round something could be trimmed in between.
            let named = stored_versions(story).await.map_err(words)?;
            named_are_there(story, &named).await.map_err(words)?;
            let all = named.values().all(|it| it == &["v1"]);
            let record = record(story).await.map_err(words)?;
            let closed = [CLUSTERS, APPS].iter().all(|it| record[it]["phase"] == "Complete");
            if all && closed { Ok(()) } else { Err(format!("{named:?} {record}")) }
        })
        .await
}

/// What each definition names as stored.
async fn stored_versions(story: &Story) -> Result<BTreeMap<&'static str, Vec<String>>> {
    let mut named = BTreeMap::new();
    for name in [CLUSTERS, APPS] {
        let read = story.admin.run(&["get", "crd", name, "-o", "json"]).await?;
        let read: Value = serde_json::from_str(&read)?;
        named.insert(name, serde_json::from_value(read["status"]["storedVersions"].clone())?);
    }
    Ok(named)
}

/// Fails when a version is in the store that its definition does not name.
async fn named_are_there(story: &Story, named: &BTreeMap<&'static str, Vec<String>>) -> Result<()> {
    for (key, version) in bytes(story).await? {
        let of = if key.contains("/etcdclusters/") { CLUSTERS } else { APPS };
        let all = named.get(of).map(Vec::as_slice).unwrap_or_default();
        ensure!(all.contains(&version), "{key} is stored as {version}, and {of} names {all:?}");
    }
    Ok(())
}

/// The versions in which the story's objects are stored, read from the bytes in etcd.
async fn bytes(story: &Story) -> Result<BTreeMap<String, String>> {
    let mut etcd = story.control_plane().await?;
    let mut found = BTreeMap::new();
    for kind in
        ["etcd.appdelivery.cncf.io/etcdclusters", "example-app.appdelivery.cncf.io/exampleapps"]
    {
        for Kept { key, value } in
            etcd.all(&format!("/registry/{kind}/{}/", story.namespace)).await?
        {
            let object: Value = serde_json::from_slice(&value).context(key.clone())?;
            let version = object["apiVersion"].as_str().unwrap_or_default();
            let version = version.split('/').next_back().unwrap_or_default();
            found.insert(key, version.to_owned());
        }
    }
    Ok(found)
}

/// One of many, as it is written in a version.
fn one_of_many(version: &str, name: &str) -> Result<DynamicObject> {
    let (group, kind) = MANY_OF;
    let key = if version == "v1alpha1" { "appVersion" } else { "version" };
    Ok(serde_json::from_value(json!({
        "apiVersion": format!("{group}/{version}"), "kind": kind,
        "metadata": {"name": name}, "spec": {key: "0.0.1"},
    }))?)
}

/// Many objects, as somebody sees them in a version.
fn many(story: &Story, version: &str) -> Api<DynamicObject> {
    let (group, kind) = MANY_OF;
    api(story, group, version, kind)
}

/// Deletes many objects some at once: one call for all takes longer than a call may.
async fn deleted(story: &Story) -> Result<()> {
    let objects = many(story, "v1");
    let delete = |key: String| {
        let objects = objects.clone();
        let name = key.split('/').next_back().unwrap_or_default().to_owned();
        async move { drop(objects.delete(&name, &DeleteParams::default()).await) }
    };
    stream::iter(bytes(story).await?.into_keys())
        .map(delete)
        .buffer_unordered(AT_ONCE)
        .collect::<()>()
        .await;
    Ok(())
}

/// What the operator has written down, by definition.
async fn record(story: &Story) -> Result<Value> {
    let get = ["get", "configmap", names::MIGRATION_RECORD, "--ignore-not-found", "-o", "json"];
    let read = story.admin.run(&[&["-n", "quorate-system"], &get[..]].concat()).await?;
    let read: Value = serde_json::from_str(if read.is_empty() { "{}" } else { &read })?;
    let mut record = json!({});
    for (key, text) in read["data"].as_object().into_iter().flatten() {
        record[key] = serde_json::from_str(text.as_str().unwrap_or_default())?;
    }
    Ok(record)
}

/// Fails when the operator carried an object twice; answers with the resource versions of those that it carried, from before that.
/// A rehearsal names no version. Of two calls that name the same version the first has written nothing: the object was stored in
/// today's version already.
fn once(story: &Story, mark: audit::Mark) -> Result<Vec<u64>> {
    let mut writes: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for call in audit::since(&story.places, mark)? {
        let target = &call.object_ref;
        let sent = call.request_object.unwrap_or_default();
        let ours = call.user.username == ACCOUNT && target.subresource.is_empty();
        let named = sent["metadata"]["resourceVersion"].as_str().filter(|_| sent["spec"].is_null());
        if let Some(named) = named
            && ours
            && call.verb == "patch"
            && call.response_status.code == 200
        {
            let kind = &target.resource;
            if ["etcdclusters", "exampleapps"].contains(&kind.as_str()) {
                let name = format!("{kind}/{}/{}", target.namespace, target.name);
                writes.entry(name).or_default().insert(named.parse()?);
            }
        }
    }
    let twice: Vec<_> = writes.iter().filter(|(_, times)| times.len() > 1).collect();
    ensure!(twice.is_empty(), "written more than once: {twice:?}");
    Ok(writes.into_values().flatten().collect())
}

/// Objects of a kind in one version.
fn api(story: &Story, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(story.client.clone(), &story.namespace, &resource)
}

/// Somebody who keeps editing objects: a note on each in turn, which changes no spec.
struct Writer {
    stop: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<u64>,
}

impl Writer {
    fn begin(story: &Story, objects: &Objects) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let targets = objects.targets(story);
        let ended = stop.clone();
        let task = tokio::spawn(async move {
            let edits = AtomicU64::new(0);
            while !ended.load(Ordering::Relaxed) {
                for (api, name) in &targets {
                    let count = edits.load(Ordering::Relaxed).to_string();
                    let note = Patch::Merge(json!({"metadata": {"annotations": {"note": count}}}));
                    // Until somebody converts, nobody can write at all.
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

    async fn end(self) -> Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        Ok(self.task.await?)
    }
}
