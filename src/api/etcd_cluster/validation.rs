//! Validation of an EtcdCluster beyond its schema, against its previous state.
//! The order follows the spec, so that the errors read like it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod data;
mod security;

use serde_json::Value;

use crate::api::etcd_cluster::v1::status::EtcdClusterStatus;
use crate::api::etcd_cluster::v1::{
    Backup, Defragment, DeletionPolicy, EtcdClusterSpec, Medium, Storage,
};
use crate::api::field::Field;
use crate::api::names;
use crate::api::strings::{EtcdVersion, ReportedVersion};
use crate::api::validation::features::Feature;
use crate::api::validation::rules::version::{VersionRequest, version};
use crate::api::validation::rules::{self, HubObject, backup, pod, require_feature};
use crate::api::validation::{Findings, ValidationContext, hints};

/// A cluster in the hub version.
pub(super) type Cluster = HubObject<EtcdClusterSpec, EtcdClusterStatus>;

/// Validates a cluster, against its previous state on an update.
pub(crate) fn validate(
    old: Option<&Value>,
    new: &Value,
    context: &ValidationContext<'_>,
    findings: &mut Findings,
) {
    let (old, new) = (old.map(Cluster::read), Cluster::read(new));
    let old = old.as_ref();
    if old.is_none() {
        rules::name(&new.name, names::MAX_CLUSTER_NAME_LENGTH, findings);
    }
    if let Some(message) = context.features.stored_only_warning(Feature::Cluster) {
        findings.warn(message);
    }
    replicas(&new, findings);
    let request = VersionRequest {
        // The stored status decides, not the one in the request.
        current: old.unwrap_or(&new).status.current_version.known().map(ReportedVersion::as_str),
        previous: old.and_then(|old| old.spec.version.known()).map(EtcdVersion::as_str),
        requested: new.spec.version.known().map(EtcdVersion::as_str),
        path: "spec.version",
    };
    version(&request, context, findings);
    data::storage(old, &new, findings);
    data::options(&new, findings);
    security::tls(&new, context, findings);
    security::auth(&new, context, findings);
    pods(&new, findings);
    upgrade(&new, context, findings);
    defragment(&new, context, findings);
    backups(&new, context, findings);
    restore(old, &new, context, findings);
    deletion(&new, context, findings);
}

/// Number of members.
fn replicas(new: &Cluster, findings: &mut Findings) {
    let Some(replicas) = new.spec.replicas.known().copied() else { return };
    let in_memory = new.spec.storage.known().and_then(|storage| storage.medium.known())
        == Some(&Medium::Memory);
    match replicas {
        ..0 | 8.. => findings.invalid(
            "spec.replicas",
            "must be between 0 and 7; use 3 or 5 (every member slows writes), or 0 to hibernate",
        ),
        0 if in_memory => findings.invalid(
            "spec.replicas",
            "must be at least 1 with `spec.storage.medium` \"Memory\": the data would be lost; \
             delete the EtcdCluster instead",
        ),
        1 => findings.warn("`spec.replicas` 1 tolerates no failure; use 3 for data that matters"),
        2 => findings.warn(
            "`spec.replicas` 2 tolerates no failure, like 1, and either member stops both; use 3",
        ),
        4 | 6 => {
            let less = replicas.saturating_sub(1);
            let failures = less.div_euclid(2);
            let more = replicas.saturating_add(1);
            let plural = if failures == 1 { "failure" } else { "failures" };
            findings.warn(format!(
                "`spec.replicas` {replicas} tolerates {failures} {plural}, the same as {less}; use {less} or {more}"
            ));
        }
        _ => {}
    }
}

/// Fields that are passed on to the members' pods.
fn pods(new: &Cluster, findings: &mut Findings) {
    let spec = &new.spec;
    pod::image(&spec.image, "spec.image", findings);
    if let Some(placement) = spec.placement.known() {
        let selector = placement.node_selector.known().into_iter().flat_map(|labels| labels.keys());
        pod::keys(selector, "spec.placement.nodeSelector", findings);
        pod::tolerations(&placement.tolerations, "spec.placement.tolerations", findings);
    }
    if let Some(metadata) = spec.pod_metadata.known() {
        pod::labels(&metadata.labels, "spec.podMetadata.labels", findings);
        pod::annotations(&metadata.annotations, "spec.podMetadata.annotations", findings);
    }
    pod::resources(&spec.resources, "spec.resources", findings);
}

fn upgrade(new: &Cluster, context: &ValidationContext<'_>, findings: &mut Findings) {
    let path = "spec.upgrade.snapshotFirst";
    let requested =
        new.spec.upgrade.known().and_then(|upgrade| upgrade.snapshot_first.known()) == Some(&true);
    require_feature(Feature::Backup, requested, path, context, findings);
    if requested && !has_destination(new) {
        findings.invalid(path, "requires `spec.backup.destination`; set it or remove this field");
    }
}

fn defragment(new: &Cluster, context: &ValidationContext<'_>, findings: &mut Findings) {
    let Some(defragment) = new.spec.defragment.known() else { return };
    let requested = *defragment != Defragment::default();
    require_feature(Feature::Defragment, requested, "spec.defragment", context, findings);
    backup::time_zone([&defragment.schedule], &defragment.time_zone, "spec.defragment", findings);
    let paths = ["spec.defragment.schedule", "spec.defragment.timeZone"];
    backup::schedule(&defragment.schedule, &defragment.time_zone, paths, context, findings);
}

fn backups(new: &Cluster, context: &ValidationContext<'_>, findings: &mut Findings) {
    let desired = new.spec.backup.clone().or_default();
    if !desired.schedule.is_set() && context.features.contains(Feature::Backup) {
        findings
            .warn("no `spec.backup.schedule`: data is lost if a majority of the volumes is lost");
    }
    let suspended = desired == Backup::default() || desired.suspend.known() == Some(&true);
    require_feature(Feature::Backup, !suspended, "spec.backup", context, findings);
    let schedules = [&desired.schedule, &desired.verify_schedule];
    backup::time_zone(schedules, &desired.time_zone, "spec.backup", findings);
    let zone = "spec.backup.timeZone";
    let paths = ["spec.backup.schedule", zone];
    backup::schedule(&desired.schedule, &desired.time_zone, paths, context, findings);
    let paths = ["spec.backup.verifySchedule", zone];
    backup::schedule(&desired.verify_schedule, &desired.time_zone, paths, context, findings);
    let schedules = [
        ("spec.backup.schedule", &desired.schedule),
        ("spec.backup.verifySchedule", &desired.verify_schedule),
    ];
    let requested_by =
        schedules.iter().find(|(_, schedule)| schedule.is_set()).map(|(path, _)| *path);
    let path = "spec.backup.destination";
    let in_v1beta1 = context.request_version == "v1beta1";
    let example =
        if in_v1beta1 { "such as 's3://my-backups/main'" } else { "such as an `s3` object" };
    backup::require_destination(&desired.destination, requested_by, example, path, findings);
    // A string where the hub has an object is the URL of v1beta1, if the request is in v1beta1.
    if let Field::Invalid(Value::String(url)) = &desired.destination
        && let Some(error) = hints::location(url).filter(|_| in_v1beta1)
    {
        findings.invalid(path, error);
    }
    let volume = desired.destination.known().and_then(|destination| destination.volume.known());
    if let Some(volume) = volume.filter(|_| in_v1beta1) {
        backup::volume_in_url(volume, path, &new.namespace, findings);
    }
    backup::destination(&desired.destination, path, findings);
    if desired.schedule.known().is_some() {
        backup::retention(&desired.retention, "spec.backup.retention", context, findings);
    }
}

/// A backup can only be restored into a new cluster this way.
fn restore(
    old: Option<&Cluster>,
    new: &Cluster,
    context: &ValidationContext<'_>,
    findings: &mut Findings,
) {
    let Some(desired) = new.spec.restore.known() else { return };
    if old.is_some_and(|old| old.spec.restore.known() != Some(desired)) {
        findings.forbidden("spec.restore", "may only be set when the cluster is created");
    }
    require_feature(Feature::Restore, old.is_none(), "spec.restore", context, findings);
    backup::backup_source(&desired.from, "spec.restore.from", &new.namespace, findings);
}

fn deletion(new: &Cluster, context: &ValidationContext<'_>, findings: &mut Findings) {
    let path = "spec.deletionPolicy";
    match new.spec.deletion_policy.known() {
        Some(DeletionPolicy::SnapshotThenDelete) => {
            require_feature(Feature::Backup, true, path, context, findings);
            if !has_destination(new) {
                findings.invalid(
                    path,
                    "requires `spec.backup.destination`; set it or choose another policy",
                );
            }
        }
        Some(DeletionPolicy::Delete) => {
            findings
                .warn("`spec.deletionPolicy` \"Delete\": deleting this object deletes its data");
        }
        Some(DeletionPolicy::Retain | DeletionPolicy::Disconnect) | None => {}
    }
}

fn has_destination(new: &Cluster) -> bool {
    new.spec.backup.known().is_some_and(|backup| backup.destination.is_set())
}

/// The storage settings; empty if unset.
fn storage_of(cluster: &Cluster) -> Storage {
    cluster.spec.storage.clone().or_default()
}
