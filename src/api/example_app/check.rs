//! What may be wrong with an ExampleApp, beyond what its schema says.
//! Comes in: the application as it was and as it shall be, in v1. Goes out: findings.
//! May touch: the shared rules. The order is that of the spec, so that the answer reads like it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod data;

use serde_json::Value;

use super::FEATURES;
use super::release::AppRelease;
use super::v1::status::ExampleAppStatus;
use super::v1::{Autoscaling, ExampleAppSpec, Exposure, Features};
use crate::api::check::place::Place;
use crate::api::check::release::Ability;
use crate::api::check::rules::{self, Said, backup, needs, pod};
use crate::api::check::{Facts, Findings};
use crate::api::texts::{AppVersion, ReportedVersion};
use crate::api::{kinds, names, spelling};

/// An application in the hub's words.
pub(super) type App = Said<ExampleAppSpec, ExampleAppStatus>;

/// Finds what is wrong.
pub(crate) fn check(old: Option<&Value>, new: &Value, facts: &Facts<'_>, findings: &mut Findings) {
    let (old, new) = (old.map(App::read), App::read(new));
    let old = old.as_ref();
    if old.is_none() {
        rules::name(&new.name, names::MOST_APP_NAME, findings);
    }
    if let Some(words) = facts.can.stored_only(Ability::Application) {
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

/// Whether this release runs applications at all. While it does not, their objects are only stored,
/// and so is what they ask for: the warning says it for all of it.
fn runs(facts: &Facts<'_>) -> bool {
    facts.can.include(Ability::Application)
}

/// The release in use, or a later one. An upgrade that has not been finished may be taken back: what
/// is in use decides, and not what was asked for.
fn release(old: Option<&App>, new: &App, findings: &mut Findings) {
    // What is in use is known from what is stored, whatever was sent.
    let current = old.unwrap_or(new).status.current_version.known().map(ReportedVersion::as_str);
    let wanted = new.spec.version.known().map(AppVersion::as_str);
    let read = |text: Option<&str>| text.and_then(AppRelease::parse);
    let (Some(current), Some(wanted)) = (read(current), read(wanted)) else { return };
    if wanted < current {
        findings.invalid(
            "spec.version",
            format!(
                "must be {current}, which is in use, or later: an older release may not know the data \
                 as it is now; restore a backup into a new ExampleApp instead"
            ),
        );
    }
}

/// A number, or a range; not both.
fn replicas(new: &App, findings: &mut Findings) {
    let Some(range) = new.spec.autoscaling.known() else { return };
    let Autoscaling { min_replicas, max_replicas, target_cpu_utilization_percentage: _ } = range;
    if new.spec.replicas.is_said() {
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

/// Only features that the application has.
fn features(new: &App, findings: &mut Findings) {
    for name in new.spec.features.known().into_iter().flat_map(Features::keys) {
        if FEATURES.contains(&name.as_str()) {
            continue;
        }
        let hint = spelling::did_you_mean(name, FEATURES.iter().copied())
            .map(|meant| format!(" (did you mean {meant}?)"))
            .unwrap_or_default();
        findings.invalid(
            Place::from("spec.features").key(name),
            format!("\"{name}\" is not a feature; there are {}{hint}", FEATURES.join(" and ")),
        );
    }
}

fn exposure(new: &App, findings: &mut Findings) {
    let Some(Exposure { service_type: _, host, tls }) = new.spec.exposure.known() else { return };
    if !host.is_said() && tls.is_said() {
        let detail = "needs `spec.exposure.host`: a certificate is for a name";
        findings.invalid("spec.exposure.tls", detail);
    }
    if host.known().is_some() && !tls.is_said() {
        findings.warn(
            "no `spec.exposure.tls`: passwords of the application's users travel in the clear",
        );
    }
}

fn backups(new: &App, facts: &Facts<'_>, findings: &mut Findings) {
    let Some(wanted) = new.spec.backup.known() else { return };
    let rests = wanted.suspend.known() == Some(&true);
    needs(Ability::Backup, !rests && runs(facts), "spec.backup", facts, findings);
    let places = ["spec.backup.schedule", "spec.backup.timeZone"];
    backup::schedule(&wanted.schedule, &wanted.time_zone, places, facts, findings);
    // Who says that they shall not rest wants backups, as v1alpha1 says it with `enabled`.
    let asked_by = if wanted.schedule.is_said() {
        Some("spec.backup.schedule")
    } else {
        (wanted.suspend.known() == Some(&false)).then_some("spec.backup.suspend")
    };
    let place = "spec.backup.destination";
    let in_words = facts.written_in != kinds::EXAMPLE_APP.hub().name;
    let with =
        if in_words { "with `storageType` and `bucketName`" } else { "such as in an `s3` block" };
    backup::somewhere(&wanted.destination, asked_by, with, place, findings);
    backup::destination(&wanted.destination, place, findings);
    if wanted.schedule.known().is_some() {
        backup::retention(&wanted.retention, "spec.backup.retention", facts, findings);
    }
}

fn restore(old: Option<&App>, new: &App, facts: &Facts<'_>, findings: &mut Findings) {
    let Some(wanted) = new.spec.restore.known() else { return };
    if old.is_some_and(|old| old.spec.restore.known() != Some(wanted)) {
        findings.forbidden(
            "spec.restore",
            "may only be given when the application is made; make a new ExampleApp for old data",
        );
    }
    needs(Ability::Restore, old.is_none() && runs(facts), "spec.restore", facts, findings);
    if data::cluster_ref(new).is_some() {
        findings.invalid(
            "spec.restore",
            "must be left out with `spec.data.etcd.clusterRef`: restore that EtcdCluster itself",
        );
    }
    backup::origin(&wanted.from, "spec.restore.from", &new.namespace, findings);
}

fn upgrade(new: &App, facts: &Facts<'_>, findings: &mut Findings) {
    let place = "spec.upgrade.snapshotFirst";
    let asked = new.spec.upgrade.known().and_then(|it| it.snapshot_first.known()) == Some(&true);
    needs(Ability::Backup, asked && runs(facts), place, facts, findings);
    let destination = new.spec.backup.known().is_some_and(|backup| backup.destination.is_said());
    if asked && !destination {
        findings.invalid(
            place,
            "needs `spec.backup.destination`: say there where the backup goes, or leave this out",
        );
    }
}
