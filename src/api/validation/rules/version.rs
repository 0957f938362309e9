//! Validation of the etcd version: supported releases and version changes.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::api::etcd_version::change::{Change, may_change};
use crate::api::etcd_version::policy::{Support, classify};
use crate::api::etcd_version::{Direction, Release, direction, join_releases};
use crate::api::validation::features::Feature;
use crate::api::validation::{Findings, ValidationContext};

/// A requested version and its context.
pub(crate) struct VersionRequest<'a> {
    /// Running version.
    pub(crate) current: Option<&'a str>,
    /// Version in the previous spec.
    pub(crate) previous: Option<&'a str>,
    /// Version in the spec.
    pub(crate) requested: Option<&'a str>,
    /// Field path.
    pub(crate) path: &'a str,
}

/// The versions as releases.
struct Parsed {
    current: Option<Release>,
    previous: Option<Release>,
    new: Release,
}

/// Validates the release and the change to it.
pub(crate) fn version(
    request: &VersionRequest<'_>,
    context: &ValidationContext<'_>,
    findings: &mut Findings,
) {
    let read = |text: Option<&str>| text.and_then(Release::parse);
    // A string that is not a release is reported by the schema.
    let Some(new) = read(request.requested) else { return };
    let releases = Parsed { current: read(request.current), previous: read(request.previous), new };
    let change = may_change(releases.current, releases.previous, new);
    if let Change::Rejected(reason) = change {
        return findings.invalid(request.path, reason.to_string());
    }
    if let Some(message) = unsupported_change(&releases, context) {
        return findings.forbidden(request.path, message);
    }
    if let Change::AllowedVia(steps) = change
        && releases.previous != Some(new)
    {
        let path = join_releases(&steps);
        if let Some(unsupported) = context.features.unsupported_message(Feature::MultiStepUpgrade) {
            let detail = "etcd is upgraded one minor version at a time; set";
            return findings.invalid(request.path, format!("{detail} {path} ({unsupported})"));
        }
        findings.warn(format!("`{}`: etcd is upgraded in steps: {path}", request.path));
    }
    if let Support::WithWarnings(reasons) = classify(new) {
        for reason in reasons {
            findings.warn(format!("etcd {new} {reason}"));
        }
    }
}

/// Message for a version change of a running cluster that this release does not support.
fn unsupported_change(releases: &Parsed, context: &ValidationContext<'_>) -> Option<String> {
    let Parsed { current, previous, new } = *releases;
    let current = current.filter(|_| previous.is_some_and(|previous| previous != new))?;
    let feature = match direction(current, new) {
        Direction::Same => return None,
        Direction::Patch | Direction::Upgrade => Feature::Upgrade,
        Direction::Downgrade => Feature::Downgrade,
    };
    context
        .features
        .unsupported_message(feature)
        .map(|unsupported| format!("{unsupported}; keep {current}"))
}
