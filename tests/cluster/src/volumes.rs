//! Volumes with an enforced size: provisioner and resizer of the default StorageClass.
//!
//! A volume is a sparse file with a loop device, in a `local` PersistentVolume that the kubelet
//! formats with XFS and mounts. Writes beyond the size fail with ENOSPC, and the volume grows while
//! mounted. Level-triggered: each reconciliation lists all claims, volumes and files.

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
use crate::paths::Paths;
use crate::progress::log;

/// The default StorageClass.
pub const CLASS: &str = "quorate-xfs";
/// The provisioner of the StorageClass.
pub const PROVISIONER: &str = "volumes.quorate-cluster";
/// Reconciled even without an event: an unmount causes none.
const RESYNC_INTERVAL: Duration = Duration::from_secs(2);

/// Serves the StorageClass until the process is ended.
///
/// # Errors
/// If there is no cluster.
pub async fn serve(paths: &Paths) -> Result<()> {
    let client = kubeconfig::client(paths, "volumes").await?;
    std::fs::create_dir_all(paths.volumes())?;
    let mut changes = std::pin::pin!(changes(&client));
    loop {
        if let Err(error) = reconcile(&client, paths).await {
            log(&format!("reconciliation failed, retrying: {error:#}"));
        }
        drop(tokio::time::timeout(RESYNC_INTERVAL, changes.next()).await);
    }
}

/// Yields when a claim or a volume changes.
fn changes(client: &Client) -> impl Stream<Item = ()> + use<> {
    let claims =
        watcher(Api::<PersistentVolumeClaim>::all(client.clone()), watcher::Config::default());
    let volumes = watcher(Api::<PersistentVolume>::all(client.clone()), watcher::Config::default());
    stream::select(
        claims.default_backoff().map(|_event| ()),
        volumes.default_backoff().map(|_event| ()),
    )
}

async fn reconcile(client: &Client, paths: &Paths) -> Result<()> {
    let all = kube::api::ListParams::default();
    let claims = Api::<PersistentVolumeClaim>::all(client.clone());
    let volumes = Api::<PersistentVolume>::all(client.clone());
    let claims = claims.list(&all).await.context("cannot list claims")?.items;
    let volumes = volumes.list(&all).await.context("cannot list volumes")?.items;
    for claim in claims.iter().filter(|claim| claim::is_ours(claim)) {
        if let Err(error) = claim::reconcile(client, paths, claim, &volumes).await {
            log(&format!("claim {}: {error:#}", claim::name(claim)));
        }
    }
    for volume in volumes.iter().filter(|volume| claim::is_released(volume)) {
        if let Err(error) = claim::free(client, paths, volume).await {
            log(&format!("volume {}: {error:#}", claim::name(volume)));
        }
    }
    file::remove_orphans(&paths.volumes(), |file| {
        volumes.iter().any(|volume| claim::name(volume) == file)
            || claims.iter().any(|claim| claim::volume_name(claim) == file)
    })
    .await
}
