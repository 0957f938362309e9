//! The CRDs of an older release, and objects that kubectl wrote with them.

use anyhow::{Context, Result, ensure};
use kube::api::{Api, DynamicObject};
use quorate::api::crd;
use quorate_harness::TestContext;
use serde_json::{Value, json};

use super::{APPS_CRD, CLUSTERS_CRD, STEP_TIMEOUT, api};

const ETCD: &str = "etcd.appdelivery.cncf.io";
const APP: &str = "example-app.appdelivery.cncf.io";

/// An older release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Release {
    /// Only v1alpha1, which is stored.
    Alpha,
    /// v1alpha1 and v1beta1, which is stored.
    Beta,
}

impl Release {
    pub(super) const fn stored(self) -> &'static str {
        match self {
            Self::Alpha => "v1alpha1",
            Self::Beta => "v1beta1",
        }
    }
}

/// Applies the CRDs of that release with kubectl, and waits until they are served.
pub(super) async fn install(ctx: &TestContext, release: Release) -> Result<()> {
    for mut crd in crd::all() {
        let name = crd.metadata.name.clone().unwrap_or_default();
        if ![CLUSTERS_CRD, APPS_CRD].contains(&name.as_str()) {
            continue;
        }
        let known: &[&str] = match release {
            Release::Alpha => &["v1alpha1"],
            Release::Beta => &["v1beta1", "v1alpha1"],
        };
        crd.spec.versions.retain(|entry| known.contains(&entry.name.as_str()));
        for version in &mut crd.spec.versions {
            version.storage = version.name == release.stored();
        }
        // Without a conversion webhook, which this test does not run yet, stored objects are not
        // rewritten.
        crd.spec.conversion = None;
        let file = tempfile(&name, &serde_json::to_string(&crd)?)?;
        ctx.admin.run(&["apply", "--filename", &file]).await?;
        wait_served(ctx, &name, release).await?;
    }
    Ok(())
}

/// An established CRD takes some time until every part of the API server uses it.
async fn wait_served(ctx: &TestContext, name: &str, release: Release) -> Result<()> {
    let (plural, group) = name.split_once('.').context("no CRD name")?;
    let path = format!("/apis/{group}/{}/namespaces/{}/{plural}", release.stored(), ctx.namespace);
    let what = format!("{name} to be stored as {}", release.stored());
    ctx.wait_until(&what, STEP_TIMEOUT, async || {
        let chain = |error: anyhow::Error| format!("{error:#}");
        ctx.kubectl(&["get", "--raw", &path]).await.map_err(chain)?;
        let read = ctx.admin.run(&["get", "crd", name, "-o", "json"]).await.map_err(chain)?;
        let stored = format!("\"{}\"", release.stored());
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
    let path = std::env::temp_dir().join(format!("quorate-e2e-{}-{name}.json", std::process::id()));
    std::fs::write(&path, text)?;
    Ok(path.to_str().context("a path that is not UTF-8")?.to_owned())
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
    /// Writes this many objects of each kind with kubectl.
    pub(super) async fn write(
        &mut self,
        ctx: &TestContext,
        release: Release,
        count: usize,
    ) -> Result<()> {
        let mut list = Vec::new();
        for number in 0..count {
            for (group, kind) in [(ETCD, "EtcdCluster"), (APP, "ExampleApp")] {
                let name = format!("{}-{number}", release.stored());
                list.push(json!({
                    "apiVersion": format!("{group}/{}", release.stored()), "kind": kind,
                    "metadata": {"name": name, "labels": {"number": number.to_string()}},
                    "spec": spec(release, kind, number),
                }));
            }
        }
        let file = tempfile(
            "objects",
            &json!({"apiVersion": "v1", "kind": "List", "items": list}).to_string(),
        )?;
        ctx.kubectl(&["create", "--filename", &file]).await?;
        for (group, kind) in [(ETCD, "EtcdCluster"), (APP, "ExampleApp")] {
            let version = release.stored();
            for number in 0..count {
                let name = format!("{version}-{number}");
                let object = api(ctx, group, version, kind).get(&name).await?;
                self.0.push(Written { group, kind, version, name, object });
            }
        }
        Ok(())
    }

    /// Every object with its v1 API.
    pub(super) fn targets(&self, ctx: &TestContext) -> Vec<(Api<DynamicObject>, String)> {
        let target =
            |written: &Written| (api(ctx, written.group, "v1", written.kind), written.name.clone());
        self.0.iter().map(target).collect()
    }

    /// Fails if the spec, the generation or the labels of an object have changed.
    pub(super) async fn unchanged(&self, ctx: &TestContext) -> Result<()> {
        for written in &self.0 {
            let Written { group, kind, version, name, object } = written;
            let now = api(ctx, group, version, kind).get(name).await?;
            let (was, is) = (&object.data["spec"], &now.data["spec"]);
            ensure!(was == is, "{kind} {name}: {was} became {is}");
            ensure!(object.metadata.uid == now.metadata.uid, "{kind} {name} has another uid");
            let (was, is) = (object.metadata.generation, now.metadata.generation);
            ensure!(was == is, "{kind} {name}: the generation was {was:?} and is {is:?}");
            let (was, is) = (&object.metadata.labels, &now.metadata.labels);
            ensure!(was == is, "{kind} {name}: {was:?} became {is:?}");
        }
        Ok(())
    }
}

/// The clusters are paused: the machine cannot run so many pods.
fn spec(release: Release, kind: &str, number: usize) -> Value {
    let selector = json!({"disk": format!("fast-{number}")});
    match (release, kind) {
        (Release::Alpha, "EtcdCluster") => json!({
            "size": 3, "version": "3.6.16", "paused": true, "pod": {"nodeSelector": selector},
        }),
        (Release::Beta, "EtcdCluster") => json!({
            "size": 5, "version": "3.6.16", "paused": true, "nodeSelector": selector, "quota": "4Gi",
        }),
        (Release::Alpha, _) => json!({"appVersion": "1.0.0"}),
        (Release::Beta, _) => json!({"version": "1.0.0", "replicas": 2, "paused": true}),
    }
}
