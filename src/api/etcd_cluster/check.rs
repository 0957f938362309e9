//! What may be wrong with an EtcdCluster, beyond what its schema says.
//! Comes in: the cluster as it was and as it shall be, in v1. Goes out: findings.
//! May touch: the shared rules. The order is that of the spec, so that the answer reads like it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod data;
mod security;

use serde_json::Value;

use crate::api::check::release::Ability;
use crate::api::check::rules::version::{Asked, version};
use crate::api::check::rules::{self, Said, backup, needs, pod};
use crate::api::check::{Facts, Findings, teach};
use crate::api::etcd_cluster::v1::status::EtcdClusterStatus;
use crate::api::etcd_cluster::v1::{
    Backup, Defragment, DeletionPolicy, EtcdClusterSpec, Medium, Storage,
};
use crate::api::field::Field;
use crate::api::names;
use crate::api::texts::{EtcdVersion, ReportedVersion};

/// A cluster in the hub's words.
pub(super) type Cluster = Said<EtcdClusterSpec, EtcdClusterStatus>;

/// Finds what is wrong.
pub(crate) fn check(old: Option<&Value>, new: &Value, facts: &Facts<'_>, findings: &mut Findings) {
    let (old, new) = (old.map(Cluster::read), Cluster::read(new));
    let old = old.as_ref();
    if old.is_none() {
        rules::name(&new.name, names::MOST_NAME, findings);
    }
    if let Some(words) = facts.can.stored_only(Ability::Cluster) {
        findings.warn(words);
    }
    replicas(&new, findings);
    let asked = Asked {
        // What runs is known from what is stored, whatever was sent.
        current: old.unwrap_or(&new).status.current_version.known().map(ReportedVersion::as_str),
        before: old.and_then(|old| old.spec.version.known()).map(EtcdVersion::as_str),
        now: new.spec.version.known().map(EtcdVersion::as_str),
        place: "spec.version",
    };
    version(&asked, facts, findings);
    data::storage(old, &new, findings);
    data::options(&new, findings);
    security::tls(&new, facts, findings);
    security::auth(&new, facts, findings);
    pods(&new, findings);
    upgrade(&new, facts, findings);
    defragment(&new, facts, findings);
    backups(&new, facts, findings);
    restore(old, &new, facts, findings);
    deletion(&new, facts, findings);
}

/// How many members are a good number.
fn replicas(new: &Cluster, findings: &mut Findings) {
    let Some(replicas) = new.spec.replicas.known().copied() else { return };
    let in_memory =
        new.spec.storage.known().and_then(|it| it.medium.known()) == Some(&Medium::Memory);
    match replicas {
        ..0 | 8.. => findings.invalid(
            "spec.replicas",
            "must be between 0 and 7; use 3 or 5 (every member slows writes), or 0 to let it sleep",
        ),
        0 if in_memory => findings.invalid(
            "spec.replicas",
            "must be at least 1 with `spec.storage.medium` \"Memory\": the data would be gone; \
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

/// What is handed on to the members' pods.
fn pods(new: &Cluster, findings: &mut Findings) {
    let spec = &new.spec;
    pod::image(&spec.image, "spec.image", findings);
    if let Some(placement) = spec.placement.known() {
        let selector = placement.node_selector.known().into_iter().flat_map(|it| it.keys());
        pod::keys(selector, "spec.placement.nodeSelector", findings);
        pod::tolerations(&placement.tolerations, "spec.placement.tolerations", findings);
    }
    if let Some(metadata) = spec.pod_metadata.known() {
        pod::labels(&metadata.labels, "spec.podMetadata.labels", findings);
        pod::annotations(&metadata.annotations, "spec.podMetadata.annotations", findings);
    }
    pod::resources(&spec.resources, "spec.resources", findings);
}

fn upgrade(new: &Cluster, facts: &Facts<'_>, findings: &mut Findings) {
    let place = "spec.upgrade.snapshotFirst";
    let asked = new.spec.upgrade.known().and_then(|it| it.snapshot_first.known()) == Some(&true);
    needs(Ability::Backup, asked, place, facts, findings);
    if asked && !has_destination(new) {
        findings.invalid(
            place,
            "needs `spec.backup.destination`: say there where the backup goes, or leave this out",
        );
    }
}

fn defragment(new: &Cluster, facts: &Facts<'_>, findings: &mut Findings) {
    let Some(defragment) = new.spec.defragment.known() else { return };
    let asked = *defragment != Defragment::default();
    needs(Ability::Defragment, asked, "spec.defragment", facts, findings);
    backup::zone_of([&defragment.schedule], &defragment.time_zone, "spec.defragment", findings);
    let places = ["spec.defragment.schedule", "spec.defragment.timeZone"];
    backup::schedule(&defragment.schedule, &defragment.time_zone, places, facts, findings);
}

fn backups(new: &Cluster, facts: &Facts<'_>, findings: &mut Findings) {
    let wanted = new.spec.backup.clone().or_empty();
    if !wanted.schedule.is_said() && facts.can.include(Ability::Backup) {
        findings
            .warn("no `spec.backup.schedule`: if a majority of the disks is lost, so is the data");
    }
    let rests = wanted == Backup::default() || wanted.suspend.known() == Some(&true);
    needs(Ability::Backup, !rests, "spec.backup", facts, findings);
    let schedules = [&wanted.schedule, &wanted.verify_schedule];
    backup::zone_of(schedules, &wanted.time_zone, "spec.backup", findings);
    let zone = "spec.backup.timeZone";
    let places = ["spec.backup.schedule", zone];
    backup::schedule(&wanted.schedule, &wanted.time_zone, places, facts, findings);
    let places = ["spec.backup.verifySchedule", zone];
    backup::schedule(&wanted.verify_schedule, &wanted.time_zone, places, facts, findings);
    let asked_by = [
        ("spec.backup.schedule", &wanted.schedule),
        ("spec.backup.verifySchedule", &wanted.verify_schedule),
    ];
    let asked_by =
        asked_by.iter().find(|(_, schedule)| schedule.is_said()).map(|(place, _)| *place);
    let place = "spec.backup.destination";
    let in_v1beta1 = facts.written_in == "v1beta1";
    let with =
        if in_v1beta1 { "such as 's3://my-backups/main'" } else { "such as in an `s3` block" };
    backup::somewhere(&wanted.destination, asked_by, with, place, findings);
    // A text where the hub has a block is what v1beta1 calls a URL, if it was written there.
    if let Field::Misfit(Value::String(url)) = &wanted.destination
        && let Some(problem) = teach::location(url).filter(|_| in_v1beta1)
    {
        findings.invalid(place, problem);
    }
    let volume = wanted.destination.known().and_then(|destination| destination.volume.known());
    if let Some(volume) = volume.filter(|_| in_v1beta1) {
        backup::volume_in_url(volume, place, &new.namespace, findings);
    }
    backup::destination(&wanted.destination, place, findings);
    if wanted.schedule.known().is_some() {
        backup::retention(&wanted.retention, "spec.backup.retention", facts, findings);
    }
}

/// Old data is only for a new cluster.
fn restore(old: Option<&Cluster>, new: &Cluster, facts: &Facts<'_>, findings: &mut Findings) {
    let Some(wanted) = new.spec.restore.known() else { return };
    if old.is_some_and(|old| old.spec.restore.known() != Some(wanted)) {
        findings.forbidden(
            "spec.restore",
            "may only be given when the cluster is made; make an EtcdRestore for a cluster that exists",
        );
    }
    needs(Ability::Restore, old.is_none(), "spec.restore", facts, findings);
    backup::origin(&wanted.from, "spec.restore.from", &new.namespace, findings);
}

fn deletion(new: &Cluster, facts: &Facts<'_>, findings: &mut Findings) {
    let place = "spec.deletionPolicy";
    match new.spec.deletion_policy.known() {
        Some(DeletionPolicy::SnapshotThenDelete) => {
            needs(Ability::Backup, true, place, facts, findings);
            if !has_destination(new) {
                findings.invalid(
                    place,
                    "needs `spec.backup.destination`: say there where the last backup goes, or \
                     choose another policy",
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
    new.spec.backup.known().is_some_and(|backup| backup.destination.is_said())
}

/// The storage block, or an empty one.
fn storage_of(cluster: &Cluster) -> Storage {
    cluster.spec.storage.clone().or_empty()
}
