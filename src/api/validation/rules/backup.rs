//! Validation of schedules, backup destinations and backup sources.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use crate::api::destination::{BackupSource, Destination, Retention, S3, Volume, url};
use crate::api::field::Field;
use crate::api::schedule::{self, ScheduleError};
use crate::api::strings::{Endpoint, Location, Schedule, TimeZone};
use crate::api::validation::features::Feature;
use crate::api::validation::{Findings, ValidationContext, hints};
use crate::api::{names, object_store};

/// Shorter intervals are not recommended: runs of one cluster would overlap.
const MIN_BACKUP_INTERVAL: Duration = Duration::from_mins(5);

/// A schedule must be valid and have a next run. A short interval is a warning.
pub(crate) fn schedule(
    text: &Field<Schedule>,
    zone: &Field<TimeZone>,
    paths: [&str; 2],
    context: &ValidationContext<'_>,
    findings: &mut Findings,
) {
    let [path, zone_path] = paths;
    let Some(text) = text.known() else {
        return;
    };
    let cron = match schedule::parse(text.as_str(), zone.known().map(TimeZone::as_str)) {
        Ok(cron) => cron,
        Err(error @ ScheduleError::UnknownTimeZone { .. }) => {
            return findings.invalid(zone_path, error.to_string());
        }
        Err(error) => return findings.invalid(path, error.to_string()),
    };
    if let Err(error) = cron.next(context.now) {
        return findings.invalid(path, error.to_string());
    }
    if let Ok(gap) = cron.shortest_gap(context.now)
        && gap < MIN_BACKUP_INTERVAL
    {
        let minutes = gap.as_secs().div_euclid(60).max(1);
        findings.warn(format!(
            "`{path}` runs every {minutes} min; each run reads all data: use 5 min or more"
        ));
    }
}

/// Exactly one destination, with names that are valid for its provider.
pub(crate) fn destination(field: &Field<Destination>, path: &str, findings: &mut Findings) {
    let Some(destination) = field.known() else { return };
    let Destination { s3, gcs, azure, volume } = destination;
    let set = [s3.is_set(), gcs.is_set(), azure.is_set(), volume.is_set()];
    match set.iter().filter(|set| **set).count() {
        0 => findings.required(path, "set exactly one of `s3`, `gcs`, `azure` and `volume`"),
        1 => {}
        _ => findings.invalid(
            path,
            "must have exactly one of `s3`, `gcs`, `azure` and `volume`; remove the others",
        ),
    }
    if let Some(S3 { bucket, endpoint, .. }) = s3.known() {
        let error = bucket.known().and_then(|name| object_store::bucket_error(name.as_str()));
        if let Some(error) = error {
            findings.invalid(format!("{path}.s3.bucket"), error);
        }
        server(endpoint, &format!("{path}.s3.endpoint"), findings);
    }
    if volume.known().is_some() {
        findings.warn(format!(
            "`{path}` is a volume in the same Kubernetes cluster: keep a copy elsewhere"
        ));
    }
}

/// A valid endpoint without a password.
fn server(field: &Field<Endpoint>, path: &str, findings: &mut Findings) {
    let Some(endpoint) = field.known().map(Endpoint::as_str) else { return };
    if endpoint.contains('@') {
        // Forbidden and not invalid: the message must not repeat the password.
        let detail = "may not contain a user or password; use a Secret in `credentialsSecretRef`";
        findings.forbidden(path, detail);
    } else if let Some(error) = object_store::endpoint_error(endpoint) {
        findings.invalid(path, error);
    }
    if endpoint.starts_with("http://") {
        findings.warn(format!("`{path}` has no TLS: backups are sent in plaintext"));
    }
}

/// Without retention, backups accumulate.
pub(crate) fn retention(
    field: &Field<Retention>,
    path: &str,
    context: &ValidationContext<'_>,
    findings: &mut Findings,
) {
    let kept_forever = field.known().is_none_or(|Retention { keep_last, keep_days }| {
        keep_last.known().is_none() && keep_days.known().is_none()
    });
    if kept_forever && context.features.contains(Feature::Backup) {
        findings
            .warn(format!("no `{path}`: backups are kept forever; set `keepLast` or `keepDays`"));
    }
}

/// A time zone requires a schedule.
pub(crate) fn time_zone<const N: usize>(
    schedules: [&Field<Schedule>; N],
    zone: &Field<TimeZone>,
    path: &str,
    findings: &mut Findings,
) {
    if zone.is_set() && !schedules.into_iter().any(Field::is_set) {
        findings.warn(format!("`{path}.timeZone` has no effect without `{path}.schedule`"));
    }
}

/// Exactly one source, with a valid location.
pub(crate) fn backup_source(
    field: &Field<BackupSource>,
    path: &str,
    namespace: &str,
    findings: &mut Findings,
) {
    let Some(BackupSource { backup_ref, location, access }) = field.known() else { return };
    match (backup_ref.is_set(), location.is_set()) {
        (false, false) => findings.required(
            path,
            "set `backupRef` (an EtcdBackup in the same namespace) or `location` (a URL)",
        ),
        (true, true) => findings
            .invalid(path, "must have exactly one of `backupRef` and `location`; remove the other"),
        (true, false) | (false, true) => {}
    }
    if let Some(text) = location.known().map(Location::as_str) {
        let here = format!("{path}.location");
        if let Some(error) = hints::location(text).or_else(|| bucket_in(text)) {
            findings.invalid(here, error);
        } else if let Some(volume) = url::parse(text).and_then(|store| store.volume.into_known()) {
            volume_in_url(&volume, &here, namespace, findings);
        }
    }
    if access.is_set() && !location.is_set() {
        let detail = "requires `location`: an EtcdBackup contains the access to its store";
        findings.invalid(format!("{path}.access"), detail);
    }
    if let Some(access) = access.known() {
        server(&access.endpoint, &format!("{path}.access.endpoint"), findings);
    }
}

/// Error of the S3 bucket in a URL.
fn bucket_in(location: &str) -> Option<String> {
    let s3 = url::parse(location)?.s3.into_known()?;
    let error = object_store::bucket_error(s3.bucket.known()?.as_str())?;
    Some(format!("the bucket {error}"))
}

/// A volume in a URL is a claim in the namespace of the object. In a URL that begins with a
/// namespace, the namespace would be read as the claim and the claim as a directory.
pub(crate) fn volume_in_url(volume: &Volume, path: &str, namespace: &str, findings: &mut Findings) {
    let Volume { claim_ref, prefix } = volume;
    let Some(claim) = claim_ref.known().and_then(|claim| claim.name.known()) else { return };
    let claim = claim.as_str();
    if !names::is_dns_subdomain(claim) {
        let error = hints::object_name(claim).unwrap_or_else(|| {
            "must have lower case letters, digits, dashes and dots only, such as \"my-claim\""
                .to_owned()
        });
        findings.invalid(path, format!("the claim {error}"));
    } else if prefix.is_set() && [namespace, "default"].contains(&claim) {
        findings.warn(format!(
            "`{path}` has the claim \"{claim}\": a URL has no namespace, the claim is in that of the object"
        ));
    }
}

/// A field that requests backups requires a destination.
pub(crate) fn require_destination(
    destination: &Field<Destination>,
    requested_by: Option<&str>,
    example: &str,
    path: &str,
    findings: &mut Findings,
) {
    if let Some(requested_by) = requested_by.filter(|_| !destination.is_set()) {
        findings.required(path, format!("`{requested_by}` requires a destination, {example}"));
    }
}
