//! Puts the operator of this checkout into a cluster: builds it, loads its image, applies `deploy/install.yaml`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kube::config::Kubeconfig;

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
pub async fn install(settings: &Settings, places: &Places) -> Result<Kubectl> {
    match current_kubeconfig() {
        Some(path) if !is_local(&path, settings) => {
            let kubectl = Kubectl::of_user(path, settings, places).await?;
            say(&format!(
                "  installing into the cluster of {}; it must be able to pull the image {} (build it with the Dockerfile)",
                kubectl.kubeconfig.display(),
                catalog::QUORATE
            ));
            apply(&kubectl).await?;
            Ok(kubectl)
        }
        Some(_) | None => {
            let local = Kubectl::admin(&settings.kubernetes, places).await?;
            install_local(settings, places, &local).await?;
            Ok(local)
        }
    }
}

/// Installs into the local cluster, starting it if it is not there.
///
/// # Errors
/// As [`install`].
pub async fn install_local(settings: &Settings, places: &Places, kubectl: &Kubectl) -> Result<()> {
    up::up(settings, places).await?;
    let fresh = catalog::image(catalog::QUORATE, places)
        .await?
        .import(places)
        .await?;
    let running = kubectl
        .run(&["--namespace", NAMESPACE, "get", "deployment", "quorate"])
        .await
        .is_ok();
    apply(kubectl).await?;
    if fresh && running {
        // The image has a new content under its old name, which a Deployment does not notice.
        kubectl
            .run(&[
                "--namespace",
                NAMESPACE,
                "rollout",
                "restart",
                "deployment/quorate",
            ])
            .await?;
        rolled_out(kubectl).await?;
    }
    Ok(())
}

async fn apply(kubectl: &Kubectl) -> Result<()> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/install.yaml");
    kubectl
        .apply_file(&manifest)
        .await
        .context("cannot apply deploy/install.yaml")?;
    rolled_out(kubectl).await
}

async fn rolled_out(kubectl: &Kubectl) -> Result<()> {
    let step = Step::begin("waiting for the operator");
    kubectl
        .run(&[
            "--namespace",
            NAMESPACE,
            "rollout",
            "status",
            "deployment/quorate",
            "--timeout=120s",
        ])
        .await
        .context("the operator does not become ready")?;
    step.done("its Deployment is complete");
    Ok(())
}

/// `KUBECONFIG` (its first file), or the user's default file.
fn current_kubeconfig() -> Option<PathBuf> {
    let named = std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty());
    let named = named.and_then(|value| std::env::split_paths(&value).next());
    let default = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".kube/config"));
    named.or_else(default).filter(|path| path.exists())
}

fn is_local(path: &Path, settings: &Settings) -> bool {
    let own = kubeconfig::server(&settings.network);
    Kubeconfig::read_from(path).is_ok_and(|config| {
        let current = config.current_context.unwrap_or_default();
        let context = config
            .contexts
            .into_iter()
            .find(|context| context.name == current);
        let cluster = context
            .and_then(|context| context.context)
            .map(|context| context.cluster);
        config.clusters.into_iter().any(|named| {
            Some(&named.name) == cluster.as_ref()
                && named.cluster.and_then(|cluster| cluster.server).as_ref() == Some(&own)
        })
    })
}
