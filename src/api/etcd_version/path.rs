//! The way from one release of etcd to another, hop by hop.
//! Comes in: two releases. Goes out: the hops, or why there is no way and what to do instead.
//! May touch: `policy`. Whether the cluster is well enough for a hop is for others to see.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::fmt;

use super::policy::{self, LINES, Standing, judge};
use super::{Direction, Minor, Release, direction};

/// Why there is no way. Its words say what to do instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoPath {
    /// The target can lose or corrupt data.
    Flawed {
        /// The target.
        to: Release,
        /// What it can do, after its name.
        reason: &'static str,
        /// A release of the same minor version that is fine.
        instead: Release,
    },
    /// The target is no longer repaired by etcd's authors, or etcd never went back to it.
    EndOfLife {
        /// The target.
        to: Release,
    },
    /// The target is of a minor version that this release of ours does not know.
    NotKnown {
        /// The target.
        to: Release,
    },
    /// What runs is of a minor version that we know no way from.
    UnknownStart {
        /// What runs.
        from: Release,
    },
    /// A downgrade to a release that could not be upgraded again.
    BelowFloor {
        /// What runs.
        from: Release,
        /// The target.
        to: Release,
        /// The least release of the target's minor version.
        floor: Release,
        /// The newest release of it.
        newest: Release,
    },
    /// A downgrade over more than one minor version.
    TooFarDown {
        /// What runs.
        from: Release,
        /// The target.
        to: Release,
        /// The release to go down to first.
        first: Release,
    },
    /// A change of direction while members of two minor versions run.
    Unfinished {
        /// What the cluster runs.
        from: Release,
        /// What it is on its way to.
        towards: Release,
        /// The target.
        to: Release,
    },
}

/// The hops from `from`, ending in `to`; none if they are the same.
///
/// # Errors
///
/// If etcd has no such way, or if the target is one that we refuse.
pub fn path(from: Release, to: Release) -> Result<Vec<Release>, NoPath> {
    let way = direction(from, to);
    if way == Direction::Same {
        return Ok(Vec::new());
    }
    acceptable(to)?;
    if policy::line(from.minor()).is_none() {
        return Err(NoPath::UnknownStart { from });
    }
    match way {
        Direction::Same => Ok(Vec::new()),
        Direction::Patch => Ok(vec![to]),
        Direction::Upgrade => Ok(up(from, to)),
        Direction::Downgrade => down(from, to),
    }
}

/// Whether a cluster may be asked to run `to` at all, wherever it comes from.
///
/// # Errors
///
/// If it is a release that we refuse, or one of a minor version that is not supported.
pub fn acceptable(to: Release) -> Result<(), NoPath> {
    match judge(to) {
        Standing::Fine | Standing::Warned(_) => Ok(()),
        Standing::Refused(reason) => {
            let instead = policy::line(to.minor()).unwrap_or(policy::newest()).newest;
            Err(NoPath::Flawed { to, reason, instead })
        }
        Standing::EndOfLife => Err(NoPath::EndOfLife { to }),
        Standing::NotKnown => Err(NoPath::NotKnown { to }),
    }
}

/// One minor version at a time. Below the floor of a minor version, its newest release comes first.
fn up(from: Release, to: Release) -> Vec<Release> {
    let mut hops = Vec::new();
    for line in LINES.iter().filter(|line| line.minor() >= from.minor()) {
        let reached = hops.last().copied().unwrap_or(from);
        if line.minor() == to.minor() {
            hops.push(to);
            break;
        }
        let passing = line.minor() != reached.minor();
        let too_low = line.floor.is_some_and(|floor| reached < floor);
        if passing || too_low {
            hops.push(line.newest);
        }
    }
    hops
}

fn down(from: Release, to: Release) -> Result<Vec<Release>, NoPath> {
    let below = LINES.iter().rfind(|line| line.minor() < from.minor());
    let Some(below) = below else { return Err(NoPath::EndOfLife { to }) };
    if below.minor() != to.minor() {
        return Err(NoPath::TooFarDown { from, to, first: below.newest });
    }
    match below.floor {
        Some(floor) if to < floor => {
            Err(NoPath::BelowFloor { from, to, floor, newest: below.newest })
        }
        Some(_) | None => Ok(vec![to]),
    }
}

impl fmt::Display for NoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flawed { to, reason, instead } => write!(f, "etcd {to} {reason}; use {instead}"),
            Self::EndOfLife { to } => end_of_life(f, to.minor()),
            Self::NotKnown { to } => not_known(f, to.minor()),
            Self::UnknownStart { from } => write!(
                f,
                "the cluster runs etcd {from}, and this version of Quorate knows no way from {}; create a new cluster and copy the data",
                from.minor(),
            ),
            Self::BelowFloor { from, to, floor, newest } => write!(
                f,
                "a cluster that runs {from} may go down to {floor} or later, not to {to}; use {newest}",
            ),
            Self::TooFarDown { from, to, first } => write!(
                f,
                "etcd goes down one minor version at a time, from {from} to {first} first; a backup of {} does not load into {}, so the other way is a new cluster into which the data is copied",
                from.minor(),
                to.minor(),
            ),
            Self::Unfinished { from, towards, to } => write!(
                f,
                "members of {} and {} may be running together, on the way from {from} to {towards}; go back to {from}, or let it reach {towards}, before you ask for {to}",
                from.minor(),
                towards.minor(),
            ),
        }
    }
}

fn end_of_life(f: &mut fmt::Formatter<'_>, minor: Minor) -> fmt::Result {
    let (supported, oldest) = (policy::supported(), policy::oldest().newest);
    write!(
        f,
        "etcd {minor} is no longer maintained, and no cluster can go back to it; use a release of {supported}, such as {oldest}",
    )
}

fn not_known(f: &mut fmt::Formatter<'_>, minor: Minor) -> fmt::Result {
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
    use crate::api::etcd_version::words;
    use proptest::prelude::*;

    fn read(text: &str) -> Release {
        Release::parse(text).unwrap()
    }

    fn hops(from: &str, to: &str) -> String {
        words(&path(read(from), read(to)).unwrap())
    }

    fn refused(from: &str, to: &str) -> NoPath {
        path(read(from), read(to)).unwrap_err()
    }

    #[test]
    fn a_patch_is_one_hop_in_either_direction() {
        assert_eq!(hops("3.6.10", "3.6.16"), "3.6.16");
        assert_eq!(hops("3.6.16", "3.6.10"), "3.6.10");
        assert_eq!(hops("3.5.35", "3.5.21"), "3.5.21");
        assert_eq!(hops("3.5.1", "3.5.35"), "3.5.35");
        assert_eq!(hops("3.6.16", "3.6.16"), "");
    }

    #[test]
    fn an_upgrade_goes_one_minor_at_a_time_and_over_the_floors() {
        assert_eq!(hops("3.5.21", "3.7.3"), "3.5.35, then 3.6.16, then 3.7.3");
        assert_eq!(hops("3.5.32", "3.6.16"), "3.6.16");
        assert_eq!(hops("3.5.31", "3.6.16"), "3.5.35, then 3.6.16");
        assert_eq!(hops("3.6.10", "3.7.3"), "3.6.16, then 3.7.3");
        assert_eq!(hops("3.6.11", "3.7.0"), "3.7.0");
        assert_eq!(hops("3.5.35", "3.7.1"), "3.6.16, then 3.7.1");
        assert_eq!(hops("3.5.36", "3.6.12"), "3.6.12");
    }

    #[test]
    fn a_downgrade_is_one_minor_and_not_below_the_floor() {
        assert_eq!(hops("3.7.3", "3.6.16"), "3.6.16");
        assert_eq!(hops("3.7.0", "3.6.11"), "3.6.11");
        assert_eq!(hops("3.6.0", "3.5.32"), "3.5.32");
        let floor = refused("3.7.3", "3.6.10");
        assert!(matches!(floor, NoPath::BelowFloor { .. }));
        assert_eq!(
            floor.to_string(),
            "a cluster that runs 3.7.3 may go down to 3.6.11 or later, not to 3.6.10; use 3.6.16"
        );
    }

    #[test]
    fn two_minors_down_have_no_way_and_say_what_has() {
        let far = refused("3.7.3", "3.5.35");
        let words = far.to_string();
        assert!(matches!(far, NoPath::TooFarDown { .. }));
        for part in ["from 3.7.3 to 3.6.16 first", "3.7 does not load into 3.5", "copied"] {
            assert!(words.contains(part), "{words}");
        }
    }

    #[test]
    fn nothing_leads_to_a_release_that_is_refused_or_unknown() {
        for (from, to, words) in [
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
                "no cluster can go back to it; use a release of 3.5, 3.6 or 3.7, such as 3.5.35",
            ),
            ("3.7.3", "3.8.0", "etcd 3.8 is not known to this version of Quorate"),
            ("3.4.45", "3.5.35", "knows no way from 3.4"),
            ("3.8.0", "3.7.3", "knows no way from 3.8"),
        ] {
            let said = refused(from, to).to_string();
            assert!(said.contains(words), "{from} to {to}: {said}");
        }
    }

    proptest! {
        #[test]
        fn every_hop_is_allowed_by_itself_and_the_last_is_the_target(
            from in (5_u16..8, 0_u16..40), to in (5_u16..8, 0_u16..40),
        ) {
            let (from, to) = (Release::new(3, from.0, from.1), Release::new(3, to.0, to.1));
            let Ok(hops) = path(from, to) else { return Ok(()) };
            prop_assert_eq!(hops.last().copied().unwrap_or(from), to);
            let mut at = from;
            for hop in hops {
                prop_assert_eq!(path(at, hop), Ok(vec![hop]));
                prop_assert!(hop.minor.abs_diff(at.minor) <= 1);
                at = hop;
            }
        }

        #[test]
        fn there_is_always_a_way_up_to_what_is_acceptable(
            from in (5_u16..8, 0_u16..40), to in (5_u16..8, 0_u16..40),
        ) {
            let (from, to) = (Release::new(3, from.0, from.1), Release::new(3, to.0, to.1));
            if from <= to && acceptable(to).is_ok() {
                prop_assert!(path(from, to).is_ok());
            }
        }
    }
}
