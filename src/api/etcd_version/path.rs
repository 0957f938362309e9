//! Upgrade and downgrade paths between etcd releases, step by step.
//! Whether the cluster is healthy enough for a step is not decided here.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::fmt;

use super::policy::{self, SUPPORTED_MINORS, Support, classify};
use super::{Direction, Minor, Release, direction};

/// Why there is no path. The message names an alternative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoPath {
    /// The target can lose or corrupt data.
    Unsafe {
        /// The target.
        to: Release,
        /// The issue, to follow the name of the release.
        reason: &'static str,
        /// A safe release of the same minor version.
        instead: Release,
    },
    /// The target is no longer maintained by the etcd project.
    EndOfLife {
        /// The target.
        to: Release,
    },
    /// The minor version of the target is unknown to this operator version.
    UnknownMinor {
        /// The target.
        to: Release,
    },
    /// There is no path from the minor version that runs.
    UnknownCurrent {
        /// The running release.
        from: Release,
    },
    /// A downgrade to a release that cannot be upgraded again.
    BelowMinimum {
        /// The running release.
        from: Release,
        /// The target.
        to: Release,
        /// The lowest release of the target's minor version that can be upgraded.
        min_upgradable: Release,
        /// The newest release of the target's minor version.
        newest: Release,
    },
    /// A downgrade over more than one minor version.
    DowngradeTooFar {
        /// The running release.
        from: Release,
        /// The target.
        to: Release,
        /// The release to downgrade to first.
        first: Release,
    },
    /// A change of direction while members of two minor versions run.
    InProgress {
        /// The running release.
        from: Release,
        /// The release of the change in progress.
        target: Release,
        /// The target.
        to: Release,
    },
}

/// The steps from `from`, ending in `to`; none if they are the same.
///
/// # Errors
///
/// If etcd has no such path, or if the target is rejected.
pub fn path(from: Release, to: Release) -> Result<Vec<Release>, NoPath> {
    let direction = direction(from, to);
    if direction == Direction::Same {
        return Ok(Vec::new());
    }
    acceptable(to)?;
    if policy::line(from.minor()).is_none() {
        return Err(NoPath::UnknownCurrent { from });
    }
    match direction {
        Direction::Same => Ok(Vec::new()),
        Direction::Patch => Ok(vec![to]),
        Direction::Upgrade => Ok(upgrade_steps(from, to)),
        Direction::Downgrade => downgrade_steps(from, to),
    }
}

/// Whether `to` may be requested at all, whatever the cluster runs.
///
/// # Errors
///
/// If the release is rejected, or its minor version is not supported.
pub fn acceptable(to: Release) -> Result<(), NoPath> {
    match classify(to) {
        Support::Full | Support::WithWarnings(_) => Ok(()),
        Support::Rejected(reason) => {
            let instead = policy::line(to.minor()).unwrap_or(policy::newest()).newest;
            Err(NoPath::Unsafe { to, reason, instead })
        }
        Support::EndOfLife => Err(NoPath::EndOfLife { to }),
        Support::Unknown => Err(NoPath::UnknownMinor { to }),
    }
}

/// One minor version at a time. A release below `min_upgradable` is first updated to the newest
/// release of its minor version.
fn upgrade_steps(from: Release, to: Release) -> Vec<Release> {
    let mut steps = Vec::new();
    for line in SUPPORTED_MINORS.iter().filter(|line| line.minor() >= from.minor()) {
        let reached = steps.last().copied().unwrap_or(from);
        if line.minor() == to.minor() {
            steps.push(to);
            break;
        }
        let passing = line.minor() != reached.minor();
        let too_low = line.min_upgradable.is_some_and(|min_upgradable| reached < min_upgradable);
        if passing || too_low {
            steps.push(line.newest);
        }
    }
    steps
}

fn downgrade_steps(from: Release, to: Release) -> Result<Vec<Release>, NoPath> {
    let below = SUPPORTED_MINORS.iter().rfind(|line| line.minor() < from.minor());
    let Some(below) = below else { return Err(NoPath::EndOfLife { to }) };
    if below.minor() != to.minor() {
        return Err(NoPath::DowngradeTooFar { from, to, first: below.newest });
    }
    match below.min_upgradable {
        Some(min_upgradable) if to < min_upgradable => {
            Err(NoPath::BelowMinimum { from, to, min_upgradable, newest: below.newest })
        }
        Some(_) | None => Ok(vec![to]),
    }
}

impl fmt::Display for NoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsafe { to, reason, instead } => write!(f, "etcd {to} {reason}; use {instead}"),
            Self::EndOfLife { to } => end_of_life(f, to.minor()),
            Self::UnknownMinor { to } => unknown_minor(f, to.minor()),
            Self::UnknownCurrent { from } => write!(
                f,
                "the cluster runs etcd {from}, and this version of Quorate has no upgrade path from {}; create a new cluster and copy the data",
                from.minor(),
            ),
            Self::BelowMinimum { from, to, min_upgradable, newest } => write!(
                f,
                "a cluster that runs {from} can be downgraded to {min_upgradable} or later, not to {to}; use {newest}",
            ),
            Self::DowngradeTooFar { from, to, first } => write!(
                f,
                "etcd is downgraded one minor version at a time, from {from} to {first} first; {} data cannot be restored into {}: alternatively, create a new cluster and copy the data",
                from.minor(),
                to.minor(),
            ),
            Self::InProgress { from, target, to } => write!(
                f,
                "members of {} and {} may run together during the change from {from} to {target}; set {from}, or wait until {target} is reached, before requesting {to}",
                from.minor(),
                target.minor(),
            ),
        }
    }
}

fn end_of_life(f: &mut fmt::Formatter<'_>, minor: Minor) -> fmt::Result {
    let (supported, oldest) = (policy::supported(), policy::oldest().newest);
    write!(
        f,
        "etcd {minor} is no longer maintained and not supported; use a release of {supported}, such as {oldest}",
    )
}

fn unknown_minor(f: &mut fmt::Formatter<'_>, minor: Minor) -> fmt::Result {
    let (supported, newest) = (policy::supported(), policy::newest().newest);
    write!(
        f,
        "etcd {minor} is not known to this version of Quorate; use a release of {supported}, such as {newest}, or upgrade Quorate first",
    )
}

impl std::error::Error for NoPath {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::etcd_version::join_releases;
    use proptest::prelude::*;

    fn parse(text: &str) -> Release {
        Release::parse(text).unwrap()
    }

    fn steps(from: &str, to: &str) -> String {
        join_releases(&path(parse(from), parse(to)).unwrap())
    }

    fn rejected(from: &str, to: &str) -> NoPath {
        path(parse(from), parse(to)).unwrap_err()
    }

    #[test]
    fn patch_change_is_one_step_in_either_direction() {
        assert_eq!(steps("3.6.10", "3.6.16"), "3.6.16");
        assert_eq!(steps("3.6.16", "3.6.10"), "3.6.10");
        assert_eq!(steps("3.5.35", "3.5.21"), "3.5.21");
        assert_eq!(steps("3.5.1", "3.5.35"), "3.5.35");
        assert_eq!(steps("3.6.16", "3.6.16"), "");
    }

    #[test]
    fn upgrade_goes_one_minor_at_a_time_via_the_minimum_patch() {
        assert_eq!(steps("3.5.21", "3.7.3"), "3.5.35, then 3.6.16, then 3.7.3");
        assert_eq!(steps("3.5.32", "3.6.16"), "3.6.16");
        assert_eq!(steps("3.5.31", "3.6.16"), "3.5.35, then 3.6.16");
        assert_eq!(steps("3.6.10", "3.7.3"), "3.6.16, then 3.7.3");
        assert_eq!(steps("3.6.11", "3.7.0"), "3.7.0");
        assert_eq!(steps("3.5.35", "3.7.1"), "3.6.16, then 3.7.1");
        assert_eq!(steps("3.5.36", "3.6.12"), "3.6.12");
    }

    #[test]
    fn downgrade_is_one_minor_and_not_below_the_minimum() {
        assert_eq!(steps("3.7.3", "3.6.16"), "3.6.16");
        assert_eq!(steps("3.7.0", "3.6.11"), "3.6.11");
        assert_eq!(steps("3.6.0", "3.5.32"), "3.5.32");
        let min_upgradable = rejected("3.7.3", "3.6.10");
        assert!(matches!(min_upgradable, NoPath::BelowMinimum { .. }));
        assert_eq!(
            min_upgradable.to_string(),
            "a cluster that runs 3.7.3 can be downgraded to 3.6.11 or later, not to 3.6.10; use 3.6.16"
        );
    }

    #[test]
    fn downgrade_by_two_minors_is_rejected_with_an_alternative() {
        let far = rejected("3.7.3", "3.5.35");
        let message = far.to_string();
        assert!(matches!(far, NoPath::DowngradeTooFar { .. }));
        for part in
            ["from 3.7.3 to 3.6.16 first", "3.7 data cannot be restored into 3.5", "copy the data"]
        {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn no_path_leads_to_a_rejected_or_unknown_release() {
        for (from, to, expected) in [
            (
                "3.5.35",
                "3.5.4",
                "etcd 3.5.4 can lose acknowledged writes of a single member; use 3.5.35",
            ),
            ("3.5.1", "3.5.2", "use 3.5.35"),
            ("3.6.16", "3.5.4", "acknowledged"),
            (
                "3.5.35",
                "3.4.45",
                "is no longer maintained and not supported; use a release of 3.5, 3.6 or 3.7, such as 3.5.35",
            ),
            ("3.7.3", "3.8.0", "etcd 3.8 is not known to this version of Quorate"),
            ("3.4.45", "3.5.35", "has no upgrade path from 3.4"),
            ("3.8.0", "3.7.3", "has no upgrade path from 3.8"),
        ] {
            let message = rejected(from, to).to_string();
            assert!(message.contains(expected), "{from} to {to}: {message}");
        }
    }

    proptest! {
        #[test]
        fn every_step_is_allowed_alone_and_the_last_is_the_target(
            from in (5_u16..8, 0_u16..40), to in (5_u16..8, 0_u16..40),
        ) {
            let (from, to) = (Release::new(3, from.0, from.1), Release::new(3, to.0, to.1));
            let Ok(steps) = path(from, to) else { return Ok(()) };
            prop_assert_eq!(steps.last().copied().unwrap_or(from), to);
            let mut at = from;
            for step in steps {
                prop_assert_eq!(path(at, step), Ok(vec![step]));
                prop_assert!(step.minor.abs_diff(at.minor) <= 1);
                at = step;
            }
        }

        #[test]
        fn every_acceptable_release_has_an_upgrade_path(
            from in (5_u16..8, 0_u16..40), to in (5_u16..8, 0_u16..40),
        ) {
            let (from, to) = (Release::new(3, from.0, from.1), Release::new(3, to.0, to.1));
            if from <= to && acceptable(to).is_ok() {
                prop_assert!(path(from, to).is_ok());
            }
        }
    }
}
