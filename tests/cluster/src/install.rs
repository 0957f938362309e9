//! Puts the operator of this checkout into a cluster: builds it, loads its image, applies `deploy/install.yaml`.

use anyhow::{Context, Result};
use kube::config::Kubeconfig;
use serde_json::{Value, json};

use crate::images::catalog;
use crate::kubectl::Kubectl;
use crate::places::Places;
use crate::progress::{Step, say};
use crate::settings::Settings;
use crate::{kubeconfig, up};

/// Where the operator lives.
pub const NAMESPACE: &str = "quorate-system";
/// On the template of its pods: which content of the image they were made for.
pub const IMAGE_ANNOTATION: &str = "quorate-cluster/image";

/// Installs into the cluster of the current kubeconfig, or into the local one if none is set.
///
/// # Errors
/// If the image cannot be built, or the operator does not become ready.
pub async fn install(settings: &Settings, places: &Places) -> Result<()> {
    let Some(server) = foreign_cluster(settings) else {
        let kubectl = Kubectl::admin(&settings.kubernetes, places).await?;
        return install_local(settings, places, &kubectl).await;
    };
    say(&format!(
        "  installing into {server}, the cluster of your current kubeconfig; it must be able to pull the image {} (build it with the Dockerfile)",
        catalog::QUORATE
    ));
    let kubectl = Kubectl::of_user(settings, places).await?;
    kubectl.run(&["apply", "--filename", manifest()]).await?;
    rolled_out(&kubectl).await
}

/// Installs into the local cluster, starting it if it is not there.
///
/// # Errors
/// As [`install`].
pub async fn install_local(settings: &Settings, places: &Places, kubectl: &Kubectl) -> Result<()> {
    up::up(settings, places).await?;
    put_in(places, kubectl).await
}

/// Installs into the local cluster, which is up.
///
/// # Errors
/// As [`install`].
pub async fn put_in(places: &Places, kubectl: &Kubectl) -> Result<()> {
    let image = catalog::image(catalog::QUORATE, places).await?;
    image.import(places).await?;
    let manifests = kubectl
        .run(&["create", "--dry-run=client", "--output=json", "--filename", manifest()])
        .await?;
    kubectl.apply_as_user(&marked(&manifests, &image.key()?)?).await?;
    rolled_out(kubectl).await
}

/// A Deployment does not notice that an image has a new content under its old name. With the content's key in
/// the template of its pods it does, and the same key again changes nothing.
fn marked(manifests: &str, key: &str) -> Result<String> {
    let documents = serde_json::Deserializer::from_str(manifests).into_iter::<Value>();
    let mut items = documents.collect::<Result<Vec<_>, _>>().context("kubectl printed no JSON")?;
    for item in items.iter_mut().filter(|item| item.get("kind") == Some(&json!("Deployment"))) {
        let template = item.pointer_mut("/spec/template/metadata").and_then(Value::as_object_mut);
        let template = template.context("a Deployment without a template")?;
        let annotations = template.entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(IMAGE_ANNOTATION.to_owned(), json!(key));
        }
    }
    Ok(json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string())
}

fn manifest() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/install.yaml")
}

async fn rolled_out(kubectl: &Kubectl) -> Result<()> {
    let step = Step::begin("waiting for the operator");
    let status = ["rollout", "status", "deployment/quorate", "--timeout=120s"];
    kubectl
        .run(&[&["--namespace", NAMESPACE], &status[..]].concat())
        .await
        .context("the operator does not become ready")?;
    step.done("its Deployment is complete");
    Ok(())
}

/// The server of the current context, as kubectl would find it, unless there is none or it is our own.
fn foreign_cluster(settings: &Settings) -> Option<String> {
    let config = Kubeconfig::read().ok()?;
    let current = config.current_context?;
    let context = config.contexts.into_iter().find(|context| context.name == current)?;
    let name = context.context?.cluster;
    let cluster = config.clusters.into_iter().find(|cluster| cluster.name == name)?;
    let server = cluster.cluster?.server?;
    (server != kubeconfig::server(&settings.network)).then_some(server)
}
