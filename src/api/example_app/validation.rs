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
    context: &ValidationContext<'_>,
    findings: &mut Findings,
) {
    let (old, new) = (old.map(App::read), App::read(new));
    let old = old.as_ref();
    if old.is_none() {
        rules::name(&new.name, names::MAX_APP_NAME_LENGTH, findings);
    }
    if let Some(message) = context.features.stored_only_warning(Feature::Application) {
        findings.warn(message);
    }
    release(old, &new, findings);
    pod::image(&new.spec.image, "spec.image", findings);
    replicas(&new, findings);
    features(&new, findings);
    data::data(old, &new, context, findings);
    exposure(&new, findings);
    backups(&new, context, findings);
    restore(old, &new, context, findings);
    upgrade(&new, context, findings);
    pod::resources(&new.spec.resources, "spec.resources", findings);
}

/// Whether this release has a controller for applications. While it has none, the objects are only
/// stored; one warning covers all of their fields.
fn runs(context: &ValidationContext<'_>) -> bool {
    context.features.contains(Feature::Application)
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
                "must be {current}, which is in use, or later: an older release may not be able to \
                 read the data; create a new ExampleApp instead"
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
            "must not be set together with `spec.autoscaling`; set it to null to remove a default",
        );
    }
    if let (Some(min), Some(max)) = (min_replicas.known(), max_replicas.known())
        && min > max
    {
        findings.invalid(
            "spec.autoscaling.minReplicas",
            format!("must be at most `spec.autoscaling.maxReplicas`, which is {max}"),
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
            .map(|suggestion| format!(" (did you mean {suggestion}?)"))
            .unwrap_or_default();
        findings.invalid(
            FieldPath::from("spec.features").key(name),
            format!("\"{name}\" is not a feature; supported are {}{hint}", FEATURES.join(" and ")),
        );
    }
}

fn exposure(new: &App, findings: &mut Findings) {
    let Some(Exposure { service_type: _, host, tls }) = new.spec.exposure.known() else { return };
    if !host.is_set() && tls.is_set() {
        let detail = "requires `spec.exposure.host`";
        findings.invalid("spec.exposure.tls", detail);
    }
    if host.known().is_some() && !tls.is_set() {
        findings.warn("no `spec.exposure.tls`: passwords of users are sent in plaintext");
    }
}

fn backups(new: &App, context: &ValidationContext<'_>, findings: &mut Findings) {
    let Some(desired) = new.spec.backup.known() else { return };
    let suspended = desired.suspend.known() == Some(&true);
    require_feature(Feature::Backup, !suspended && runs(context), "spec.backup", context, findings);
    let paths = ["spec.backup.schedule", "spec.backup.timeZone"];
    backup::schedule(&desired.schedule, &desired.time_zone, paths, context, findings);
    // `suspend: false` requests backups, as `enabled: true` does in v1alpha1.
    let requested_by = if desired.schedule.is_set() {
        Some("spec.backup.schedule")
    } else {
        (desired.suspend.known() == Some(&false)).then_some("spec.backup.suspend")
    };
    let path = "spec.backup.destination";
    let in_spoke = context.request_version != kinds::EXAMPLE_APP.hub().name;
    let example =
        if in_spoke { "with `storageType` and `bucketName`" } else { "such as an `s3` object" };
    backup::require_destination(&desired.destination, requested_by, example, path, findings);
    backup::destination(&desired.destination, path, findings);
    if desired.schedule.known().is_some() {
        backup::retention(&desired.retention, "spec.backup.retention", context, findings);
    }
}

fn restore(old: Option<&App>, new: &App, context: &ValidationContext<'_>, findings: &mut Findings) {
    let Some(desired) = new.spec.restore.known() else { return };
    if old.is_some_and(|old| old.spec.restore.known() != Some(desired)) {
        findings.forbidden("spec.restore", "may only be set when the application is created");
    }
    require_feature(
        Feature::Restore,
        old.is_none() && runs(context),
        "spec.restore",
        context,
        findings,
    );
    if data::cluster_ref(new).is_some() {
        findings
            .invalid("spec.restore", "must not be set together with `spec.data.etcd.clusterRef`");
    }
    backup::backup_source(&desired.from, "spec.restore.from", &new.namespace, findings);
}

fn upgrade(new: &App, context: &ValidationContext<'_>, findings: &mut Findings) {
    let path = "spec.upgrade.snapshotFirst";
    let requested =
        new.spec.upgrade.known().and_then(|upgrade| upgrade.snapshot_first.known()) == Some(&true);
    require_feature(Feature::Backup, requested && runs(context), path, context, findings);
    let destination = new.spec.backup.known().is_some_and(|backup| backup.destination.is_set());
    if requested && !destination {
        findings.invalid(path, "requires `spec.backup.destination`; set it or remove this field");
    }
}
