//! What a claim or a volume needs next: provisioning, growing, freeing.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;

use super::{CLASS, PROVISIONER, file, quantity};
use crate::places::Places;
use crate::progress::say;
use crate::settings::NODE_NAME;

/// XFS refuses to live on less.
const SMALLEST: u64 = 300 << 20;
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

/// A name for log lines.
pub(super) fn name(object: &impl Resource) -> String {
    object.meta().name.clone().unwrap_or_default()
}

/// Made for our StorageClass.
pub(super) fn is_ours(claim: &PersistentVolumeClaim) -> bool {
    claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref()) == Some(CLASS)
}

/// A volume of ours whose claim is gone, and whose policy is Delete.
pub(super) fn is_released(volume: &PersistentVolume) -> bool {
    let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    let policy =
        volume.spec.as_ref().and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    let ours = volume.annotations().get(PROVISIONED_BY).map(String::as_str) == Some(PROVISIONER);
    ours && phase == Some("Released") && policy == Some("Delete")
}

/// The name of the volume that belongs to a claim: by uid, so that a claim made anew gets a new volume.
pub(super) fn volume_name(claim: &PersistentVolumeClaim) -> String {
    format!("pvc-{}", claim.uid().unwrap_or_default())
}

/// Provisions or grows, if either is due.
pub(super) async fn tend(
    client: &Client,
    places: &Places,
    claim: &PersistentVolumeClaim,
    volumes: &[PersistentVolume],
) -> Result<()> {
    let wanted = wanted(claim)?;
    let own = volume_name(claim);
    match volumes.iter().find(|volume| volume.name_any() == own) {
        Some(volume) => grow(client, places, claim, volume, wanted).await,
        // The scheduler has chosen the node: a pod waits for the volume.
        None if claim.annotations().contains_key(SELECTED_NODE) && !is_bound(claim) => {
            provision(client, places, claim, wanted).await
        }
        None => Ok(()),
    }
}

fn wanted(claim: &PersistentVolumeClaim) -> Result<u64> {
    let requests = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref()?.requests.as_ref());
    let storage = requests.and_then(|requests| requests.get("storage"));
    let bytes = quantity::bytes(storage.context("it asks for no storage")?)?;
    Ok(bytes.max(SMALLEST))
}

fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound")
}

/// File and device first, then the object: if we die between, the next pass finds them by name.
async fn provision(
    client: &Client,
    places: &Places,
    claim: &PersistentVolumeClaim,
    size: u64,
) -> Result<()> {
    let name = volume_name(claim);
    let device = file::ensure(&places.volumes(), &name, size).await?;
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
        Ok(_) => say(&format!("claim {}: {size} bytes on {}", claim.name_any(), device.display())),
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        Err(error) => return Err(error).context("cannot create the volume"),
    }
    Ok(())
}

/// What an external resizer does: enlarge the medium, say so on the volume, and leave the file system to
/// the kubelet, which waits for the condition on the claim.
async fn grow(
    client: &Client,
    places: &Places,
    claim: &PersistentVolumeClaim,
    volume: &PersistentVolume,
    wanted: u64,
) -> Result<()> {
    let capacity = volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref()?.get("storage"));
    let size = quantity::bytes(capacity.context("the volume has no capacity")?)?;
    if wanted > size {
        file::ensure(&places.volumes(), &volume.name_any(), wanted).await?;
        let capacity = json!({ "spec": { "capacity": { "storage": wanted.to_string() } } });
        Api::<PersistentVolume>::all(client.clone())
            .patch(&volume.name_any(), &PatchParams::default(), &Patch::Merge(capacity))
            .await
            .context("cannot write the new capacity")?;
    }
    if wanted > size || file_system_is_behind(claim, size)? {
        let namespace = claim.namespace().unwrap_or_default();
        let pending = json!({ "status": { "conditions": [{
            "type": "FileSystemResizePending",
            "status": "True",
            "message": "Waiting for the kubelet to enlarge the file system",
        }]}});
        Api::<PersistentVolumeClaim>::namespaced(client.clone(), &namespace)
            .patch_status(&claim.name_any(), &PatchParams::default(), &Patch::Merge(pending))
            .await
            .context("cannot tell the kubelet")?;
        say(&format!("claim {}: grown to {wanted} bytes", claim.name_any()));
    }
    Ok(())
}

/// The claim still reports less than the volume has, and the kubelet was not told (we died before).
fn file_system_is_behind(claim: &PersistentVolumeClaim, size: u64) -> Result<bool> {
    let Some(status) = claim.status.as_ref().filter(|_| is_bound(claim)) else {
        return Ok(false);
    };
    let Some(reported) = status.capacity.as_ref().and_then(|capacity| capacity.get("storage"))
    else {
        return Ok(false);
    };
    let told = status
        .conditions
        .iter()
        .flatten()
        .any(|condition| condition.type_ == "FileSystemResizePending");
    Ok(!told && quantity::bytes(reported)? < size)
}

/// Device and file first, then the object: if we die between, the next pass deletes the object.
pub(super) async fn free(
    client: &Client,
    places: &Places,
    volume: &PersistentVolume,
) -> Result<()> {
    file::remove(&places.volumes(), &volume.name_any()).await?;
    let exactly_this = DeleteParams {
        preconditions: Some(Preconditions {
            uid: volume.uid(),
            resource_version: volume.resource_version(),
        }),
        ..DeleteParams::default()
    };
    let volumes = Api::<PersistentVolume>::all(client.clone());
    volumes.delete(&volume.name_any(), &exactly_this).await.context("cannot delete the volume")?;
    say(&format!("volume {} freed", volume.name_any()));
    Ok(())
}
