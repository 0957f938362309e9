//! Rules about schedules and about where backups go and come from.
//! Comes in: the blocks of a spec. Goes out: findings. May touch: `schedule`, `store_names`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use crate::api::destination::{BackupSource, Destination, Retention, S3, Volume, url};
use crate::api::field::Field;
use crate::api::schedule::{self, ScheduleError};
use crate::api::strings::{Endpoint, Location, Schedule, TimeZone};
use crate::api::validation::features::Feature;
use crate::api::validation::{Findings, ValidationContext, hints};
use crate::api::{names, object_store};

/// More often than this, backups of one cluster get in each other's way.
const MIN_BACKUP_INTERVAL: Duration = Duration::from_mins(5);

/// A schedule must be one, and must have a next run. Says when that is.
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
    let plan = match schedule::parse(text.as_str(), zone.known().map(TimeZone::as_str)) {
        Ok(plan) => plan,
        Err(error @ ScheduleError::UnknownTimeZone { .. }) => {
            return findings.invalid(zone_path, error.to_string());
        }
        Err(error) => return findings.invalid(path, error.to_string()),
    };
    if let Err(error) = plan.next(context.now) {
        return findings.invalid(path, error.to_string());
    }
    if let Ok(gap) = plan.shortest_gap(context.now)
        && gap < MIN_BACKUP_INTERVAL
    {
        let minutes = gap.as_secs().div_euclid(60).max(1);
        findings.warn(format!(
            "`{path}` runs every {minutes} min; each run reads all the data, so leave 5 or more between"
        ));
    }
}

/// Exactly one destination, with names that its provider takes.
pub(crate) fn destination(given: &Field<Destination>, path: &str, findings: &mut Findings) {
    let Some(destination) = given.known() else { return };
    let Destination { s3, gcs, azure, volume } = destination;
    let set = [s3.is_set(), gcs.is_set(), azure.is_set(), volume.is_set()];
    match set.iter().filter(|set| **set).count() {
        0 => findings.required(path, "say exactly one of `s3`, `gcs`, `azure` and `volume`"),
        1 => {}
        _ => findings.invalid(
            path,
            "must have exactly one of `s3`, `gcs`, `azure` and `volume`; remove the others",
        ),
    }
    if let Some(S3 { bucket, endpoint, .. }) = s3.known() {
        if let Some(error) = bucket.known().and_then(|it| object_store::bucket_error(it.as_str())) {
            findings.invalid(format!("{path}.s3.bucket"), error);
        }
        server(endpoint, &format!("{path}.s3.endpoint"), findings);
    }
    if volume.known().is_some() {
        findings.warn(format!("`{path}` is a volume of the same cluster: keep a copy elsewhere"));
    }
}

/// A server that can be reached, and no password in its URL.
fn server(given: &Field<Endpoint>, path: &str, findings: &mut Findings) {
    let Some(endpoint) = given.known().map(Endpoint::as_str) else { return };
    if endpoint.contains('@') {
        // Forbidden and not invalid: a password is not repeated.
        let detail = "may not carry a user or a password; name a Secret in `credentialsSecretRef`";
        findings.forbidden(path, detail);
    } else if let Some(error) = object_store::endpoint_error(endpoint) {
        findings.invalid(path, error);
    }
    if endpoint.starts_with("http://") {
        let words = format!("`{path}` is not protected by TLS: backups travel in the clear");
        findings.warn(words);
    }
}

/// Without a word, backups pile up.
pub(crate) fn retention(
    given: &Field<Retention>,
    path: &str,
    context: &ValidationContext<'_>,
    findings: &mut Findings,
) {
    let kept_for_ever = given.known().is_none_or(|Retention { keep_last, keep_days }| {
        keep_last.known().is_none() && keep_days.known().is_none()
    });
    if kept_for_ever && context.features.contains(Feature::Backup) {
        findings
            .warn(format!("no `{path}`: backups are kept for ever; say `keepLast` or `keepDays`"));
    }
}

/// A time zone is the zone of a schedule.
pub(crate) fn time_zone<const N: usize>(
    schedules: [&Field<Schedule>; N],
    zone: &Field<TimeZone>,
    path: &str,
    findings: &mut Findings,
) {
    if zone.is_set() && !schedules.into_iter().any(Field::is_set) {
        findings.warn(format!("`{path}.timeZone` means nothing without `{path}.schedule`"));
    }
}

/// Exactly one origin, at a path that can be read.
pub(crate) fn backup_source(
    given: &Field<BackupSource>,
    path: &str,
    namespace: &str,
    findings: &mut Findings,
) {
    let Some(BackupSource { backup_ref, location, access }) = given.known() else { return };
    match (backup_ref.is_set(), location.is_set()) {
        (false, false) => findings.required(
            path,
            "say `backupRef` (an EtcdBackup of this namespace) or `location` (a URL)",
        ),
        (true, true) => findings
            .invalid(path, "must have exactly one of `backupRef` and `location`; remove the other"),
        (true, false) | (false, true) => {}
    }
    if let Some(text) = location.known().map(Location::as_str) {
        let here = format!("{path}.location");
        if let Some(error) = hints::location(text).or_else(|| bucket_in(text)) {
            findings.invalid(here, error);
        } else if let Some(volume) = url::parse(text).and_then(|it| it.volume.into_known()) {
            volume_in_url(&volume, &here, namespace, findings);
        }
    }
    if access.is_set() && !location.is_set() {
        let detail = "goes with `location`; an EtcdBackup knows how to reach its store";
        findings.invalid(format!("{path}.access"), detail);
    }
    if let Some(access) = access.known() {
        server(&access.endpoint, &format!("{path}.access.endpoint"), findings);
    }
}

/// What is wrong with the bucket of S3 that a URL names.
fn bucket_in(location: &str) -> Option<String> {
    let s3 = url::parse(location)?.s3.into_known()?;
    let error = object_store::bucket_error(s3.bucket.known()?.as_str())?;
    Some(format!("the bucket {error}"))
}

/// A volume that a URL names is a claim of the object's own namespace. A URL that begins with a
/// namespace would be taken for a claim of that name, with a folder.
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
            "`{path}` names the claim \"{claim}\", not a namespace: that is the object's own and is \
             left out"
        ));
    }
}

/// Whoever asks for backups says where they go, with these words.
pub(crate) fn require_destination(
    destination: &Field<Destination>,
    requested_by: Option<&str>,
    with: &str,
    path: &str,
    findings: &mut Findings,
) {
    if let Some(requested_by) = requested_by.filter(|_| !destination.is_set()) {
        let detail = format!("say where the backups go, {with}: `{requested_by}` needs it");
        findings.required(path, detail);
    }
}
