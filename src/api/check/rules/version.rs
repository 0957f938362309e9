//! Rules about etcd's version: which releases are taken, and which steps between them.
//! Comes in: what runs, what was asked for, what is asked for. Goes out: findings.
//! May touch: `etcd_version`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::api::check::release::Ability;
use crate::api::check::{Facts, Findings};
use crate::api::etcd_version::change::{Change, may_change};
use crate::api::etcd_version::policy::{Standing, judge};
use crate::api::etcd_version::{Direction, Release, direction, words};

/// The version that is asked for, and what it is judged against.
pub(crate) struct Asked<'a> {
    /// What runs.
    pub(crate) current: Option<&'a str>,
    /// What was asked for before.
    pub(crate) before: Option<&'a str>,
    /// What is asked for now.
    pub(crate) now: Option<&'a str>,
    /// Where.
    pub(crate) place: &'a str,
}

/// The same, as releases.
struct Releases {
    current: Option<Release>,
    before: Option<Release>,
    new: Release,
}

/// Judges the release, and the step to it.
pub(crate) fn version(asked: &Asked<'_>, facts: &Facts<'_>, findings: &mut Findings) {
    let read = |text: Option<&str>| text.and_then(Release::parse);
    // What is not a release at all was named by the schema.
    let Some(new) = read(asked.now) else { return };
    let releases = Releases { current: read(asked.current), before: read(asked.before), new };
    let change = may_change(releases.current, releases.before, new);
    if let Change::Refused(why) = change {
        return findings.invalid(asked.place, why.to_string());
    }
    if let Some(words) = beyond_this_release(&releases, facts) {
        return findings.forbidden(asked.place, words);
    }
    if let Change::AllowedInHops(hops) = change
        && releases.before != Some(new)
    {
        let path = words(&hops);
        if let Some(lack) = facts.can.lack(Ability::UpgradeInHops) {
            let detail = "etcd is upgraded one minor release at a time; apply";
            return findings.invalid(asked.place, format!("{detail} {path} ({lack})"));
        }
        findings.warn(format!("`{}`: etcd goes there step by step: {path}", asked.place));
    }
    if let Standing::Warned(reasons) = judge(new) {
        for reason in reasons {
            findings.warn(format!("etcd {new} {reason}"));
        }
    }
}

/// A cluster that runs can only be changed if the controllers know how.
fn beyond_this_release(releases: &Releases, facts: &Facts<'_>) -> Option<String> {
    let Releases { current, before, new } = *releases;
    let current = current.filter(|_| before.is_some_and(|before| before != new))?;
    let ability = match direction(current, new) {
        Direction::Same => return None,
        Direction::Patch | Direction::Upgrade => Ability::Upgrade,
        Direction::Downgrade => Ability::Downgrade,
    };
    facts.can.lack(ability).map(|lack| format!("{lack}; leave it at {current}"))
}
