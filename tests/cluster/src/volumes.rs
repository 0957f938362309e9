//! Volumes of real size: a small provisioner and resizer for the default StorageClass.
//!
//! A volume is a sparse file behind a loop device, handed to Kubernetes as a `local` PersistentVolume that
//! the kubelet formats with XFS and mounts. It fills up (ENOSPC), grows while it is mounted, and is freed.
//! Level-triggered: each pass looks at all claims, volumes and files, and does what is missing.

mod claim;
pub(crate) mod file;
mod quantity;

use std::time::Duration;

use anyhow::{Context, Result};
use futures::{Stream, StreamExt, stream};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};

use crate::kubeconfig;
use crate::places::Places;
use crate::progress::say;

/// The default StorageClass.
pub const CLASS: &str = "quorate-xfs";
/// Who serves it.
pub const PROVISIONER: &str = "volumes.quorate-cluster";
/// Looked at even when nothing seems to have happened: an unmount makes no event.
const RESYNC: Duration = Duration::from_secs(2);

/// Serves the StorageClass until the process is ended.
///
/// # Errors
/// If there is no cluster.
pub async fn serve(places: &Places) -> Result<()> {
    let client = kubeconfig::client(places, "volumes").await?;
    std::fs::create_dir_all(places.volumes())?;
    let mut bell = std::pin::pin!(bell(&client));
    loop {
        if let Err(error) = pass(&client, places).await {
            say(&format!("this pass failed, the next one tries again: {error:#}"));
        }
        drop(tokio::time::timeout(RESYNC, bell.next()).await);
    }
}

/// Rings when a claim or a volume changes.
fn bell(client: &Client) -> impl Stream<Item = ()> + use<> {
    let claims =
        watcher(Api::<PersistentVolumeClaim>::all(client.clone()), watcher::Config::default());
    let volumes = watcher(Api::<PersistentVolume>::all(client.clone()), watcher::Config::default());
    stream::select(
        claims.default_backoff().map(|_event| ()),
        volumes.default_backoff().map(|_event| ()),
    )
}

async fn pass(client: &Client, places: &Places) -> Result<()> {
    let all = kube::api::ListParams::default();
    let claims = Api::<PersistentVolumeClaim>::all(client.clone());
    let volumes = Api::<PersistentVolume>::all(client.clone());
    let claims = claims.list(&all).await.context("cannot list claims")?.items;
    let volumes = volumes.list(&all).await.context("cannot list volumes")?.items;
    for claim in claims.iter().filter(|claim| claim::is_ours(claim)) {
        if let Err(error) = claim::tend(client, places, claim, &volumes).await {
            say(&format!("claim {}: {error:#}", claim::name(claim)));
        }
    }
    for volume in volumes.iter().filter(|volume| claim::is_released(volume)) {
        if let Err(error) = claim::free(client, places, volume).await {
            say(&format!("volume {}: {error:#}", claim::name(volume)));
        }
    }
    file::remove_orphans(&places.volumes(), |file| {
        volumes.iter().any(|volume| claim::name(volume) == file)
            || claims.iter().any(|claim| claim::volume_name(claim) == file)
    })
    .await
}
