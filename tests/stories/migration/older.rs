//! An older release, as far as its definitions and the objects that kubectl wrote through them go.

use anyhow::{Context, Result, ensure};
use kube::api::{Api, DynamicObject};
use quorate::api::crd;
use quorate_harness::Story;
use serde_json::{Value, json};

use super::{APPS, CLUSTERS, SOON, api};

const ETCD: &str = "etcd.appdelivery.cncf.io";
const APP: &str = "example-app.appdelivery.cncf.io";

/// Which release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Only v1alpha1, which is stored.
    Alpha,
    /// v1alpha1 and v1beta1, which is stored.
    Beta,
}

impl Stage {
    pub(super) const fn stored(self) -> &'static str {
        match self {
            Self::Alpha => "v1alpha1",
            Self::Beta => "v1beta1",
        }
    }
}

/// Applies the definitions of that release with kubectl, and waits until they are served.
pub(super) async fn install(story: &Story, stage: Stage) -> Result<()> {
    for mut definition in crd::all() {
        let name = definition.metadata.name.clone().unwrap_or_default();
        if ![CLUSTERS, APPS].contains(&name.as_str()) {
            continue;
        }
        let known: &[&str] = match stage {
            Stage::Alpha => &["v1alpha1"],
            Stage::Beta => &["v1beta1", "v1alpha1"],
        };
        definition.spec.versions.retain(|it| known.contains(&it.name.as_str()));
        for version in &mut definition.spec.versions {
            version.storage = version.name == stage.stored();
        }
        // Nobody converts yet, and until somebody does nothing that was stored is written again.
        definition.spec.conversion = None;
        let file = tempfile(&name, &serde_json::to_string(&definition)?)?;
        story.admin.run(&["apply", "--filename", &file]).await?;
        served(story, &name, stage).await?;
    }
    Ok(())
}

/// A definition is established before every part of the API server has heard of it.
async fn served(story: &Story, name: &str, stage: Stage) -> Result<()> {
    let (plural, group) = name.split_once('.').context("a definition's name")?;
    let path = format!("/apis/{group}/{}/namespaces/{}/{plural}", stage.stored(), story.namespace);
    let what = format!("{name} to be stored as {}", stage.stored());
    story
        .wait_until(&what, SOON, async || {
            let words = |error: anyhow::Error| format!("{error:#}");
            story.kubectl(&["get", "--raw", &path]).await.map_err(words)?;
            let read = story.admin.run(&["get", "crd", name, "-o", "json"]).await.map_err(words)?;
            let stored = format!("\"{}\"", stage.stored());
            let status: Value = serde_json::from_str(&read).map_err(|error| error.to_string())?;
            let stored = status["status"]["storedVersions"].to_string().contains(&stored);
            if stored { Ok(()) } else { Err(status["status"].to_string()) }
        })
        .await?;
    // The API server takes up to five seconds until its old storage is gone.
    tokio::time::sleep(std::time::Duration::from_secs(6)).await;
    Ok(())
}

pub(super) fn tempfile(name: &str, text: &str) -> Result<String> {
    let path =
        std::env::temp_dir().join(format!("quorate-story-{}-{name}.json", std::process::id()));
    std::fs::write(&path, text)?;
    Ok(path.to_str().context("a path that is no text")?.to_owned())
}

/// An object as it was written.
struct Written {
    group: &'static str,
    kind: &'static str,
    version: &'static str,
    name: String,
    object: DynamicObject,
}

/// The objects that were written.
#[derive(Default)]
pub(super) struct Objects(Vec<Written>);

impl Objects {
    /// Lets kubectl write so many objects of each kind.
    pub(super) async fn write(&mut self, story: &Story, stage: Stage, count: usize) -> Result<()> {
        let mut list = Vec::new();
        for number in 0..count {
            for (group, kind) in [(ETCD, "EtcdCluster"), (APP, "ExampleApp")] {
                let name = format!("{}-{number}", stage.stored());
                list.push(json!({
                    "apiVersion": format!("{group}/{}", stage.stored()), "kind": kind,
                    "metadata": {"name": name, "labels": {"number": number.to_string()}},
                    "spec": spec(stage, kind, number),
                }));
            }
        }
        let file = tempfile(
            "objects",
            &json!({"apiVersion": "v1", "kind": "List", "items": list}).to_string(),
        )?;
        story.kubectl(&["create", "--filename", &file]).await?;
        for (group, kind) in [(ETCD, "EtcdCluster"), (APP, "ExampleApp")] {
            let version = stage.stored();
            for number in 0..count {
                let name = format!("{version}-{number}");
                let object = api(story, group, version, kind).get(&name).await?;
                self.0.push(Written { group, kind, version, name, object });
            }
        }
        Ok(())
    }

    /// Every object, as somebody edits it who knows only v1.
    pub(super) fn targets(&self, story: &Story) -> Vec<(Api<DynamicObject>, String)> {
        let target = |it: &Written| (api(story, it.group, "v1", it.kind), it.name.clone());
        self.0.iter().map(target).collect()
    }

    /// Fails when an object says something else than it said, or has another generation.
    pub(super) async fn unchanged(&self, story: &Story) -> Result<()> {
        for written in &self.0 {
            let Written { group, kind, version, name, object } = written;
            let now = api(story, group, version, kind).get(name).await?;
            let (was, is) = (&object.data["spec"], &now.data["spec"]);
            ensure!(was == is, "{kind} {name}: {was} is {is}");
            ensure!(object.metadata.uid == now.metadata.uid, "{kind} {name} is another");
            let (was, is) = (object.metadata.generation, now.metadata.generation);
            ensure!(was == is, "{kind} {name}: the generation was {was:?} and is {is:?}");
            let (was, is) = (&object.metadata.labels, &now.metadata.labels);
            ensure!(was == is, "{kind} {name}: {was:?} is {is:?}");
        }
        Ok(())
    }
}

/// Nobody shall run so many pods, so the clusters are paused.
fn spec(stage: Stage, kind: &str, number: usize) -> Value {
    let selector = json!({"disk": format!("fast-{number}")});
    match (stage, kind) {
        (Stage::Alpha, "EtcdCluster") => json!({
            "size": 3, "version": "3.6.16", "paused": true, "pod": {"nodeSelector": selector},
        }),
        (Stage::Beta, "EtcdCluster") => json!({
            "size": 5, "version": "3.6.16", "paused": true, "nodeSelector": selector, "quota": "4Gi",
        }),
        (Stage::Alpha, _) => json!({"appVersion": "1.0.0"}),
        (Stage::Beta, _) => json!({"version": "1.0.0", "replicas": 2, "paused": true}),
    }
}
