//! Puts the operator of this checkout into a cluster: builds it, loads its image, applies `deploy/install.yaml`.

use std::path::Path;

use anyhow::{Context, Result};
use kube::config::Kubeconfig;
use serde_json::json;

use crate::images::catalog;
use crate::kubectl::Kubectl;
use crate::places::Places;
use crate::progress::{Step, say};
use crate::settings::Settings;
use crate::{kubeconfig, up};

/// Where the operator lives.
pub const NAMESPACE: &str = "quorate-system";

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
    apply(&kubectl).await?;
    rolled_out(&kubectl).await
}

/// Installs into the local cluster, starting it if it is not there.
///
/// # Errors
/// As [`install`].
pub async fn install_local(settings: &Settings, places: &Places, kubectl: &Kubectl) -> Result<()> {
    up::up(settings, places).await?;
    let image = catalog::image(catalog::QUORATE, places).await?;
    image.import(places).await?;
    apply(kubectl).await?;
    // A Deployment does not notice that an image has a new content under its old name. With the content's key
    // in the pods' template it does, and the same key again changes nothing.
    let annotation = json!({ "spec": { "template": { "metadata": { "annotations": {
        "quorate-cluster/image": image.key()?,
    }}}}});
    let patch = annotation.to_string();
    kubectl
        .run(&["--namespace", NAMESPACE, "patch", "deployment", "quorate", "--patch", &patch])
        .await?;
    rolled_out(kubectl).await
}

async fn apply(kubectl: &Kubectl) -> Result<()> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/install.yaml");
    kubectl.apply_file(&manifest).await.map(drop).context("cannot apply deploy/install.yaml")
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
