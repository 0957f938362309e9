//! Provisions, grows and deletes the volume of a claim.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;

use super::{CLASS, PROVISIONER, file, quantity};
use crate::paths::Paths;
use crate::progress::log;
use crate::settings::NODE_NAME;

/// The minimum size of an XFS file system.
const MIN_VOLUME_BYTES: u64 = 300 << 20;
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

/// A name for log lines.
pub(super) fn name(object: &impl Resource) -> String {
    object.meta().name.clone().unwrap_or_default()
}

/// Whether the claim has our StorageClass.
pub(super) fn is_ours(claim: &PersistentVolumeClaim) -> bool {
    claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref()) == Some(CLASS)
}

/// Whether the volume is ours, its claim is deleted, and its policy is Delete.
pub(super) fn is_released(volume: &PersistentVolume) -> bool {
    let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    let policy =
        volume.spec.as_ref().and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    let ours = volume.annotations().get(PROVISIONED_BY).map(String::as_str) == Some(PROVISIONER);
    ours && phase == Some("Released") && policy == Some("Delete")
}

/// The name of the volume of a claim: by UID, so that a recreated claim gets a new volume.
pub(super) fn volume_name(claim: &PersistentVolumeClaim) -> String {
    format!("pvc-{}", claim.uid().unwrap_or_default())
}

/// Provisions or grows the volume of a claim, if needed.
pub(super) async fn reconcile(
    client: &Client,
    paths: &Paths,
    claim: &PersistentVolumeClaim,
    volumes: &[PersistentVolume],
) -> Result<()> {
    let requested = requested_bytes(claim)?;
    let own = volume_name(claim);
    match volumes.iter().find(|volume| volume.name_any() == own) {
        Some(volume) => grow(client, paths, claim, volume, requested).await,
        // The scheduler has selected the node: a pod waits for the volume.
        None if claim.annotations().contains_key(SELECTED_NODE) && !is_bound(claim) => {
            provision(client, paths, claim, requested).await
        }
        None => Ok(()),
    }
}

fn requested_bytes(claim: &PersistentVolumeClaim) -> Result<u64> {
    let requests = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref()?.requests.as_ref());
    let storage = requests.and_then(|requests| requests.get("storage"));
    let bytes = quantity::bytes(storage.context("the claim requests no storage")?)?;
    Ok(bytes.max(MIN_VOLUME_BYTES))
}

fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound")
}

/// File and device first, then the object: after a crash in between they are found by name.
async fn provision(
    client: &Client,
    paths: &Paths,
    claim: &PersistentVolumeClaim,
    size: u64,
) -> Result<()> {
    let name = volume_name(claim);
    let device = file::ensure(&paths.volumes(), &name, size).await?;
    let spec = claim.spec.as_ref();
    let volume: PersistentVolume = serde_json::from_value(json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": { "name": name, "annotations": { PROVISIONED_BY: PROVISIONER } },
        "spec": {
            "capacity": { "storage": size.to_string() },
            "accessModes": spec.and_then(|spec| spec.access_modes.as_ref()),
            "volumeMode": spec.and_then(|spec| spec.volume_mode.as_ref()),
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": CLASS,
            "claimRef": {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "namespace": claim.namespace(), "name": claim.name_any(), "uid": claim.uid(),
            },
            "local": { "path": device, "fsType": "xfs" },
            "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": [
                { "key": "kubernetes.io/hostname", "operator": "In", "values": [NODE_NAME] },
            ]}]}},
        },
    }))?;
    match Api::<PersistentVolume>::all(client.clone()).create(&PostParams::default(), &volume).await
    {
        Ok(_) => log(&format!("claim {}: {size} bytes on {}", claim.name_any(), device.display())),
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        Err(error) => return Err(error).context("cannot create the volume"),
    }
    Ok(())
}

/// Like an external resizer: grows the device, updates the capacity of the volume, and sets the
/// condition on the claim with which the kubelet grows the file system.
async fn grow(
    client: &Client,
    paths: &Paths,
    claim: &PersistentVolumeClaim,
    volume: &PersistentVolume,
    requested: u64,
) -> Result<()> {
    let capacity = volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref()?.get("storage"));
    let size = quantity::bytes(capacity.context("the volume has no capacity")?)?;
    if requested > size {
        file::ensure(&paths.volumes(), &volume.name_any(), requested).await?;
        let capacity = json!({ "spec": { "capacity": { "storage": requested.to_string() } } });
        Api::<PersistentVolume>::all(client.clone())
            .patch(&volume.name_any(), &PatchParams::default(), &Patch::Merge(capacity))
            .await
            .context("cannot write the new capacity")?;
    }
    if requested > size || resize_not_signalled(claim, size)? {
        let namespace = claim.namespace().unwrap_or_default();
        let pending = json!({ "status": { "conditions": [{
            "type": "FileSystemResizePending",
            "status": "True",
            "message": "Waiting for the kubelet to enlarge the file system",
        }]}});
        Api::<PersistentVolumeClaim>::namespaced(client.clone(), &namespace)
            .patch_status(&claim.name_any(), &PatchParams::default(), &Patch::Merge(pending))
            .await
            .context("cannot set the condition for the kubelet")?;
        log(&format!("claim {}: grown to {requested} bytes", claim.name_any()));
    }
    Ok(())
}

/// Whether the claim reports less than the volume has, and the condition for the kubelet is missing
/// after a crash.
fn resize_not_signalled(claim: &PersistentVolumeClaim, size: u64) -> Result<bool> {
    let Some(status) = claim.status.as_ref().filter(|_| is_bound(claim)) else {
        return Ok(false);
    };
    let Some(reported) = status.capacity.as_ref().and_then(|capacity| capacity.get("storage"))
    else {
        return Ok(false);
    };
    let is_signalled = status
        .conditions
        .iter()
        .flatten()
        .any(|condition| condition.type_ == "FileSystemResizePending");
    Ok(!is_signalled && quantity::bytes(reported)? < size)
}

/// Device and file first, then the object: after a crash in between the object is deleted later.
pub(super) async fn free(client: &Client, paths: &Paths, volume: &PersistentVolume) -> Result<()> {
    file::remove(&paths.volumes(), &volume.name_any()).await?;
    let only_this_uid = DeleteParams {
        preconditions: Some(Preconditions {
            uid: volume.uid(),
            resource_version: volume.resource_version(),
        }),
        ..DeleteParams::default()
    };
    let volumes = Api::<PersistentVolume>::all(client.clone());
    volumes.delete(&volume.name_any(), &only_this_uid).await.context("cannot delete the volume")?;
    log(&format!("volume {} deleted", volume.name_any()));
    Ok(())
}
