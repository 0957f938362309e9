//! Validation of an ExampleApp beyond its schema, against its previous state.
//! The order follows the spec, so that the errors read like it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod data;

use serde_json::Value;

use super::FEATURES;
use super::release::AppRelease;
use super::v1::status::ExampleAppStatus;
use super::v1::{Autoscaling, ExampleAppSpec, Exposure, Features};
use crate::api::strings::{AppVersion, ReportedVersion};
use crate::api::validation::features::Feature;
use crate::api::validation::path::FieldPath;
use crate::api::validation::rules::{self, HubObject, backup, pod, require_feature};
use crate::api::validation::{Findings, ValidationContext};
use crate::api::{kinds, names, suggest};

/// An application in the hub version.
pub(super) type App = HubObject<ExampleAppSpec, ExampleAppStatus>;

/// Validates an application, against its previous state on an update.
pub(crate) fn validate(
    old: Option<&Value>,
    new: &Value,
    facts: &ValidationContext<'_>,
    findings: &mut Findings,
) {
    let (old, new) = (old.map(App::read), App::read(new));
    let old = old.as_ref();
    if old.is_none() {
        rules::name(&new.name, names::MAX_APP_NAME_LENGTH, findings);
    }
    if let Some(words) = facts.features.stored_only_warning(Feature::Application) {
        findings.warn(words);
    }
    release(old, &new, findings);
    pod::image(&new.spec.image, "spec.image", findings);
    replicas(&new, findings);
    features(&new, findings);
    data::data(old, &new, facts, findings);
    exposure(&new, findings);
    backups(&new, facts, findings);
    restore(old, &new, facts, findings);
    upgrade(&new, facts, findings);
    pod::resources(&new.spec.resources, "spec.resources", findings);
}

/// Whether this release has a controller for applications. While it has none, the objects are only
/// stored; one warning covers all of their fields.
fn runs(facts: &ValidationContext<'_>) -> bool {
    facts.features.contains(Feature::Application)
}

/// The version in use or a later one. An unfinished upgrade may be reverted: the version in use
/// decides, not the previous spec.
fn release(old: Option<&App>, new: &App, findings: &mut Findings) {
    // The stored status decides, not the one in the request.
    let current = old.unwrap_or(new).status.current_version.known().map(ReportedVersion::as_str);
    let desired = new.spec.version.known().map(AppVersion::as_str);
    let parse = |text: Option<&str>| text.and_then(AppRelease::parse);
    let (Some(current), Some(desired)) = (parse(current), parse(desired)) else { return };
    if desired < current {
        findings.invalid(
            "spec.version",
            format!(
                "must be {current}, which is in use, or later: an older release may not know the data \
                 as it is now; restore a backup into a new ExampleApp instead"
            ),
        );
    }
}

/// Either `replicas` or `autoscaling`.
fn replicas(new: &App, findings: &mut Findings) {
    let Some(range) = new.spec.autoscaling.known() else { return };
    let Autoscaling { min_replicas, max_replicas, target_cpu_utilization_percentage: _ } = range;
    if new.spec.replicas.is_set() {
        findings.invalid(
            "spec.replicas",
            "must be left out with `spec.autoscaling`, which chooses the number; write null if a \
             default stands there",
        );
    }
    if let (Some(least), Some(most)) = (min_replicas.known(), max_replicas.known())
        && least > most
    {
        findings.invalid(
            "spec.autoscaling.minReplicas",
            format!("must be at most `spec.autoscaling.maxReplicas`, which is {most}"),
        );
    }
}

/// Only known features.
fn features(new: &App, findings: &mut Findings) {
    for name in new.spec.features.known().into_iter().flat_map(Features::keys) {
        if FEATURES.contains(&name.as_str()) {
            continue;
        }
        let hint = suggest::did_you_mean(name, FEATURES.iter().copied())
            .map(|meant| format!(" (did you mean {meant}?)"))
            .unwrap_or_default();
        findings.invalid(
            FieldPath::from("spec.features").key(name),
            format!("\"{name}\" is not a feature; there are {}{hint}", FEATURES.join(" and ")),
        );
    }
}

fn exposure(new: &App, findings: &mut Findings) {
    let Some(Exposure { service_type: _, host, tls }) = new.spec.exposure.known() else { return };
    if !host.is_set() && tls.is_set() {
        let detail = "require_feature `spec.exposure.host`: a certificate is for a name";
        findings.invalid("spec.exposure.tls", detail);
    }
    if host.known().is_some() && !tls.is_set() {
        findings.warn(
            "no `spec.exposure.tls`: passwords of the application's users travel in the clear",
        );
    }
}

fn backups(new: &App, facts: &ValidationContext<'_>, findings: &mut Findings) {
    let Some(desired) = new.spec.backup.known() else { return };
    let suspended = desired.suspend.known() == Some(&true);
    require_feature(Feature::Backup, !suspended && runs(facts), "spec.backup", facts, findings);
    let places = ["spec.backup.schedule", "spec.backup.timeZone"];
    backup::schedule(&desired.schedule, &desired.time_zone, places, facts, findings);
    // `suspend: false` requests backups, as `enabled: true` does in v1alpha1.
    let asked_by = if desired.schedule.is_set() {
        Some("spec.backup.schedule")
    } else {
        (desired.suspend.known() == Some(&false)).then_some("spec.backup.suspend")
    };
    let place = "spec.backup.destination";
    let in_spoke = facts.request_version != kinds::EXAMPLE_APP.hub().name;
    let with =
        if in_spoke { "with `storageType` and `bucketName`" } else { "such as in an `s3` block" };
    backup::require_destination(&desired.destination, asked_by, with, place, findings);
    backup::destination(&desired.destination, place, findings);
    if desired.schedule.known().is_some() {
        backup::retention(&desired.retention, "spec.backup.retention", facts, findings);
    }
}

fn restore(old: Option<&App>, new: &App, facts: &ValidationContext<'_>, findings: &mut Findings) {
    let Some(desired) = new.spec.restore.known() else { return };
    if old.is_some_and(|old| old.spec.restore.known() != Some(desired)) {
        findings.forbidden(
            "spec.restore",
            "may only be given when the application is made; make a new ExampleApp for old data",
        );
    }
    require_feature(
        Feature::Restore,
        old.is_none() && runs(facts),
        "spec.restore",
        facts,
        findings,
    );
    if data::cluster_ref(new).is_some() {
        findings.invalid(
            "spec.restore",
            "must be left out with `spec.data.etcd.clusterRef`: restore that EtcdCluster itself",
        );
    }
    backup::backup_source(&desired.from, "spec.restore.from", &new.namespace, findings);
}

fn upgrade(new: &App, facts: &ValidationContext<'_>, findings: &mut Findings) {
    let place = "spec.upgrade.snapshotFirst";
    let asked =
        new.spec.upgrade.known().and_then(|upgrade| upgrade.snapshot_first.known()) == Some(&true);
    require_feature(Feature::Backup, asked && runs(facts), place, facts, findings);
    let destination = new.spec.backup.known().is_some_and(|backup| backup.destination.is_set());
    if asked && !destination {
        findings.invalid(
            place,
            "require_feature `spec.backup.destination`: say there where the backup goes, or leave this out",
        );
    }
}
