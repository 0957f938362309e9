//! Rules about etcd's version: which releases are taken, and which steps between them.
//! Comes in: what runs, what was request for, what is request for. Goes out: findings.
//! May touch: `etcd_version`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::api::etcd_version::change::{Change, may_change};
use crate::api::etcd_version::policy::{Support, classify};
use crate::api::etcd_version::{Direction, Release, direction, join_releases};
use crate::api::validation::features::Feature;
use crate::api::validation::{Findings, ValidationContext};

/// The version that is request for, and what it is judged against.
pub(crate) struct VersionRequest<'a> {
    /// What runs.
    pub(crate) current: Option<&'a str>,
    /// What was request for previous.
    pub(crate) previous: Option<&'a str>,
    /// What is request for now.
    pub(crate) requested: Option<&'a str>,
    /// Where.
    pub(crate) path: &'a str,
}

/// The same, as releases.
struct Parsed {
    current: Option<Release>,
    previous: Option<Release>,
    new: Release,
}

/// Judges the release, and the step to it.
pub(crate) fn version(
    request: &VersionRequest<'_>,
    context: &ValidationContext<'_>,
    findings: &mut Findings,
) {
    let read = |text: Option<&str>| text.and_then(Release::parse);
    // What is not a release at all was named by the schema.
    let Some(new) = read(request.requested) else { return };
    let releases = Parsed { current: read(request.current), previous: read(request.previous), new };
    let change = may_change(releases.current, releases.previous, new);
    if let Change::Rejected(why) = change {
        return findings.invalid(request.path, why.to_string());
    }
    if let Some(words) = beyond_this_release(&releases, context) {
        return findings.forbidden(request.path, words);
    }
    if let Change::AllowedVia(hops) = change
        && releases.previous != Some(new)
    {
        let path = join_releases(&hops);
        if let Some(unsupported) = context.features.unsupported_message(Feature::MultiStepUpgrade) {
            let detail = "etcd is upgraded one minor release at a time; apply";
            return findings.invalid(request.path, format!("{detail} {path} ({unsupported})"));
        }
        findings.warn(format!("`{}`: etcd goes there step by step: {path}", request.path));
    }
    if let Support::WithWarnings(reasons) = classify(new) {
        for reason in reasons {
            findings.warn(format!("etcd {new} {reason}"));
        }
    }
}

/// A cluster that runs can only be changed if the controllers know how.
fn beyond_this_release(releases: &Parsed, context: &ValidationContext<'_>) -> Option<String> {
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
        .map(|unsupported| format!("{unsupported}; leave it at {current}"))
}
