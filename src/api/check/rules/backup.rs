//! Rules about schedules and about where backups go and come from.
//! Comes in: the blocks of a spec. Goes out: findings. May touch: `schedule`, `store_names`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use crate::api::check::release::Ability;
use crate::api::check::{Facts, Findings, teach};
use crate::api::destination::{Destination, Origin, Retention, S3, Volume, url};
use crate::api::field::Field;
use crate::api::schedule::{self, Problem};
use crate::api::texts::{Endpoint, Location, Schedule, TimeZone};
use crate::api::{names, store_names};

/// More often than this, backups of one cluster get in each other's way.
const OFTEN: Duration = Duration::from_mins(5);

/// A schedule must be one, and must have a next run. Says when that is.
pub(crate) fn schedule(
    text: &Field<Schedule>,
    zone: &Field<TimeZone>,
    places: [&str; 2],
    facts: &Facts<'_>,
    findings: &mut Findings,
) {
    let [place, zone_place] = places;
    let Some(text) = text.known() else {
        return;
    };
    let plan = match schedule::read(text.as_str(), zone.known().map(TimeZone::as_str)) {
        Ok(plan) => plan,
        Err(problem @ Problem::Zone { .. }) => {
            return findings.invalid(zone_place, problem.to_string());
        }
        Err(problem) => return findings.invalid(place, problem.to_string()),
    };
    if let Err(problem) = plan.next(facts.now) {
        return findings.invalid(place, problem.to_string());
    }
    if let Ok(gap) = plan.shortest_gap(facts.now)
        && gap < OFTEN
    {
        let minutes = gap.as_secs().div_euclid(60).max(1);
        findings.warn(format!(
            "`{place}` runs every {minutes} min; each run reads all the data, so leave 5 or more between"
        ));
    }
}

/// Exactly one destination, with names that its provider takes.
pub(crate) fn destination(given: &Field<Destination>, place: &str, findings: &mut Findings) {
    let Some(destination) = given.known() else { return };
    let Destination { s3, gcs, azure, volume } = destination;
    let there = [s3.is_said(), gcs.is_said(), azure.is_said(), volume.is_said()];
    match there.iter().filter(|there| **there).count() {
        0 => findings.required(place, "say exactly one of `s3`, `gcs`, `azure` and `volume`"),
        1 => {}
        _ => findings.invalid(
            place,
            "must have exactly one of `s3`, `gcs`, `azure` and `volume`; remove the others",
        ),
    }
    if let Some(S3 { bucket, endpoint, .. }) = s3.known() {
        if let Some(problem) =
            bucket.known().and_then(|it| store_names::bucket_problem(it.as_str()))
        {
            findings.invalid(format!("{place}.s3.bucket"), problem);
        }
        server(endpoint, &format!("{place}.s3.endpoint"), findings);
    }
    if volume.known().is_some() {
        findings.warn(format!("`{place}` is a volume of the same cluster: keep a copy elsewhere"));
    }
}

/// A server that can be reached, and no password in its URL.
fn server(given: &Field<Endpoint>, place: &str, findings: &mut Findings) {
    let Some(endpoint) = given.known().map(Endpoint::as_str) else { return };
    if endpoint.contains('@') {
        // Forbidden and not invalid: a password is not repeated.
        let detail = "may not carry a user or a password; name a Secret in `credentialsSecretRef`";
        findings.forbidden(place, detail);
    } else if let Some(problem) = store_names::endpoint_problem(endpoint) {
        findings.invalid(place, problem);
    }
    if endpoint.starts_with("http://") {
        let words = format!("`{place}` is not protected by TLS: backups travel in the clear");
        findings.warn(words);
    }
}

/// Without a word, backups pile up.
pub(crate) fn retention(
    given: &Field<Retention>,
    place: &str,
    facts: &Facts<'_>,
    findings: &mut Findings,
) {
    let kept_for_ever = given.known().is_none_or(|Retention { keep_last, keep_days }| {
        keep_last.known().is_none() && keep_days.known().is_none()
    });
    if kept_for_ever && facts.can.include(Ability::Backup) {
        findings
            .warn(format!("no `{place}`: backups are kept for ever; say `keepLast` or `keepDays`"));
    }
}

/// A time zone is the zone of a schedule.
pub(crate) fn zone_of<const N: usize>(
    schedules: [&Field<Schedule>; N],
    zone: &Field<TimeZone>,
    place: &str,
    findings: &mut Findings,
) {
    if zone.is_said() && !schedules.into_iter().any(Field::is_said) {
        findings.warn(format!("`{place}.timeZone` means nothing without `{place}.schedule`"));
    }
}

/// Exactly one origin, at a place that can be read.
pub(crate) fn origin(given: &Field<Origin>, place: &str, namespace: &str, findings: &mut Findings) {
    let Some(Origin { backup_ref, location, access }) = given.known() else { return };
    match (backup_ref.is_said(), location.is_said()) {
        (false, false) => findings.required(
            place,
            "say `backupRef` (an EtcdBackup of this namespace) or `location` (a URL)",
        ),
        (true, true) => findings.invalid(
            place,
            "must have exactly one of `backupRef` and `location`; remove the other",
        ),
        (true, false) | (false, true) => {}
    }
    if let Some(text) = location.known().map(Location::as_str) {
        let here = format!("{place}.location");
        if let Some(problem) = teach::location(text).or_else(|| bucket_in(text)) {
            findings.invalid(here, problem);
        } else if let Some(volume) = url::parse(text).and_then(|it| it.volume.into_known()) {
            volume_in_url(&volume, &here, namespace, findings);
        }
    }
    if access.is_said() && !location.is_said() {
        let detail = "goes with `location`; an EtcdBackup knows how to reach its store";
        findings.invalid(format!("{place}.access"), detail);
    }
    if let Some(access) = access.known() {
        server(&access.endpoint, &format!("{place}.access.endpoint"), findings);
    }
}

/// What is wrong with the bucket of S3 that a URL names.
fn bucket_in(location: &str) -> Option<String> {
    let s3 = url::parse(location)?.s3.into_known()?;
    let problem = store_names::bucket_problem(s3.bucket.known()?.as_str())?;
    Some(format!("the bucket {problem}"))
}

/// A volume that a URL names is a claim of the object's own namespace. A URL that begins with a
/// namespace would be taken for a claim of that name, with a folder.
pub(crate) fn volume_in_url(
    volume: &Volume,
    place: &str,
    namespace: &str,
    findings: &mut Findings,
) {
    let Volume { claim_ref, prefix } = volume;
    let Some(claim) = claim_ref.known().and_then(|claim| claim.name.known()) else { return };
    let claim = claim.as_str();
    if !names::is_dns_subdomain(claim) {
        let problem = teach::object_name(claim).unwrap_or_else(|| {
            "must have lower case letters, digits, dashes and dots only, such as \"my-claim\""
                .to_owned()
        });
        findings.invalid(place, format!("the claim {problem}"));
    } else if prefix.is_said() && [namespace, "default"].contains(&claim) {
        findings.warn(format!(
            "`{place}` names the claim \"{claim}\", not a namespace: that is the object's own and is \
             left out"
        ));
    }
}

/// Whoever asks for backups says where they go, with these words.
pub(crate) fn somewhere(
    destination: &Field<Destination>,
    asked_by: Option<&str>,
    with: &str,
    place: &str,
    findings: &mut Findings,
) {
    if let Some(asked_by) = asked_by.filter(|_| !destination.is_said()) {
        let detail = format!("say where the backups go, {with}: `{asked_by}` needs it");
        findings.required(place, detail);
    }
}
