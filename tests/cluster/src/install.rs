//! Installs the operator of this checkout: builds and imports its image, applies
//! `deploy/install.yaml`.

use anyhow::{Context, Result};
use kube::config::Kubeconfig;
use serde_json::{Value, json};

use crate::images::catalog;
use crate::kubectl::Kubectl;
use crate::paths::Paths;
use crate::progress::{Step, log};
use crate::settings::Settings;
use crate::{kubeconfig, up};

/// The namespace of the operator.
pub const NAMESPACE: &str = "quorate-system";
/// On the operator's pod template: the key of the image content.
pub const IMAGE_ANNOTATION: &str = "quorate-cluster/image";

/// Installs into the cluster of the current kubeconfig, or into the local one if none is set.
///
/// # Errors
/// If the image cannot be built, or the operator does not become ready.
pub async fn install(settings: &Settings, paths: &Paths) -> Result<()> {
    let Some(server) = other_cluster(settings) else {
        let kubectl = Kubectl::admin(&settings.kubernetes, paths).await?;
        return install_local(settings, paths, &kubectl).await;
    };
    log(&format!(
        "  installing into {server}, the cluster of your current kubeconfig; that cluster must be able to pull the image {} (build the image with the Dockerfile)",
        catalog::QUORATE
    ));
    let kubectl = Kubectl::of_user(settings, paths).await?;
    kubectl.run(&["apply", "--filename", manifest()]).await?;
    wait_for_rollout(&kubectl).await
}

/// Starts the local cluster if needed and installs the operator.
///
/// # Errors
/// As [`install`].
pub async fn install_local(settings: &Settings, paths: &Paths, kubectl: &Kubectl) -> Result<()> {
    up::up(settings, paths).await?;
    install_operator(paths, kubectl).await
}

/// Installs the operator into the running local cluster.
///
/// # Errors
/// As [`install`].
pub async fn install_operator(paths: &Paths, kubectl: &Kubectl) -> Result<()> {
    let image = catalog::image(catalog::QUORATE, paths).await?;
    image.import(paths).await?;
    let manifests = kubectl
        .run(&["create", "--dry-run=client", "--output=json", "--filename", manifest()])
        .await?;
    kubectl.apply_as_user(&with_image_key(&manifests, &image.key()?)?).await?;
    wait_for_rollout(kubectl).await
}

/// A Deployment does not roll out new content under the same image name. With the key of the
/// content in the pod template it does, and the same key changes nothing.
fn with_image_key(manifests: &str, key: &str) -> Result<String> {
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

async fn wait_for_rollout(kubectl: &Kubectl) -> Result<()> {
    let step = Step::begin("waiting for the operator");
    let status = ["rollout", "status", "deployment/quorate", "--timeout=120s"];
    kubectl
        .run(&[&["--namespace", NAMESPACE], &status[..]].concat())
        .await
        .context("the operator does not become ready")?;
    step.done("Deployment is complete");
    Ok(())
}

/// The server of the current kubeconfig context, unless there is none or it is the local cluster.
fn other_cluster(settings: &Settings) -> Option<String> {
    let config = Kubeconfig::read().ok()?;
    let current = config.current_context?;
    let context = config.contexts.into_iter().find(|context| context.name == current)?;
    let name = context.context?.cluster;
    let cluster = config.clusters.into_iter().find(|cluster| cluster.name == name)?;
    let server = cluster.cluster?.server?;
    (server != kubeconfig::server(&settings.network)).then_some(server)
}
