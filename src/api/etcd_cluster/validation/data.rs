//! Validation of a cluster's storage, quota and compaction.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::{Cluster, storage_of};
use crate::api::etcd_cluster::v1::{AutoCompaction, CompactionMode, Medium, Options, Storage};
use crate::api::field::Field;
use crate::api::storage_limits;
use crate::api::strings::{Quota, VolumeSize};
use crate::api::validation::Findings;
use crate::api::validation::rules::size;
use crate::api::validation::rules::volume::{VolumeFields, VolumePaths, volume};

const VOLUME: VolumePaths =
    VolumePaths { size: "spec.storage.size", class: "spec.storage.className", kind: "EtcdCluster" };

/// Volume fields size and class, and the immutable medium.
pub(super) fn storage(old: Option<&Cluster>, new: &Cluster, findings: &mut Findings) {
    let (was, now) = (old.map(storage_of), storage_of(new));
    let before = was.as_ref().map(volume_of);
    volume(before.as_ref(), &volume_of(&now), &VOLUME, findings);
    if now.medium.known() == Some(&Medium::Memory) {
        findings
            .warn("`spec.storage.medium` \"Memory\": the data is lost with a majority of the pods");
    }
    let Some(was) = was else { return };
    let medium = |field: &Field<Medium>| field.known().copied().unwrap_or(Medium::Disk);
    if medium(&was.medium) != medium(&now.medium) {
        findings.forbidden(
            "spec.storage.medium",
            format!(
                "may not be changed from \"{}\"; create a new EtcdCluster and copy the data",
                medium(&was.medium),
            ),
        );
    }
}

fn volume_of(storage: &Storage) -> VolumeFields<'_> {
    VolumeFields { size: &storage.size, class: &storage.class_name }
}

/// Settings of etcd must be consistent and fit the volume.
pub(super) fn options(new: &Cluster, findings: &mut Findings) {
    let Some(options) = new.spec.options.known() else { return };
    let Options {
        quota,
        auto_compaction,
        snapshot_count: _,
        heartbeat_milliseconds,
        election_milliseconds,
    } = options;
    quota_fits(quota, new, findings);
    compaction(&auto_compaction.clone().or_default(), findings);
    let pair = heartbeat_milliseconds.known().zip(election_milliseconds.known());
    if let Some((heartbeat, election)) = pair {
        let min = heartbeat.saturating_mul(5);
        if *election < min {
            findings.invalid(
                "spec.options.electionMilliseconds",
                format!(
                    "must be at least {min}: five times `spec.options.heartbeatMilliseconds`, or a \
                     late heartbeat starts an election"
                ),
            );
        }
    }
}

fn quota_fits(quota: &Field<Quota>, new: &Cluster, findings: &mut Findings) {
    let path = "spec.options.quota";
    let Some(quota) = size(quota.known().map(Quota::as_str)) else { return };
    if let Some(error) = storage_limits::quota_error(quota) {
        return findings.invalid(path, error);
    }
    let Some(volume) = size(storage_of(new).size.known().map(VolumeSize::as_str)) else { return };
    if let Some(error) = storage_limits::quota_error_for_volume(volume, VOLUME.size, quota) {
        findings.invalid(path, error);
    } else if quota > volume.div_euclid(2) {
        findings.warn(
            "`spec.options.quota` is over half the volume: defragmentation needs space for two files",
        );
    }
}

fn compaction(compaction: &AutoCompaction, findings: &mut Findings) {
    let AutoCompaction { mode, retention_seconds, retention_revisions } = compaction;
    let path = "spec.options.autoCompaction";
    match mode.known().copied().unwrap_or(CompactionMode::Periodic) {
        CompactionMode::Periodic if retention_revisions.is_set() => findings.invalid(
            format!("{path}.retentionRevisions"),
            "requires `mode` \"Revision\"; set it, or use `retentionSeconds` for \"Periodic\"",
        ),
        CompactionMode::Revision if retention_seconds.is_set() => findings.invalid(
            format!("{path}.retentionSeconds"),
            "requires `mode` \"Periodic\"; set it, or use `retentionRevisions` for \"Revision\"",
        ),
        CompactionMode::Periodic | CompactionMode::Revision => {}
    }
}
