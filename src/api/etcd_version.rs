//! etcd releases: parsing, support policy and upgrade paths.
//! What is known about releases is data in `policy`, and nowhere else.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod change;
pub mod path;
pub mod policy;

use std::fmt;

/// A minor version, such as 3.6: the unit of etcd's upgrade rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Minor {
    /// Major version.
    pub major: u16,
    /// Minor version.
    pub minor: u16,
}

/// A release, such as 3.6.16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// Major version.
    pub major: u16,
    /// Minor version.
    pub minor: u16,
    /// Patch version.
    pub patch: u16,
}

impl Release {
    /// Creates a release.
    #[must_use]
    pub const fn new(major: u16, minor: u16, patch: u16) -> Self {
        Self { major, minor, patch }
    }

    /// Parses three numbers separated by dots. A leading `v`, leading zeros and suffixes are
    /// rejected, because each release has exactly one name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(part);
        let release = Self::new(parts.next()??, parts.next()??, parts.next()??);
        parts.next().is_none().then_some(release)
    }

    /// The minor version of the release.
    #[must_use]
    pub const fn minor(self) -> Minor {
        Minor { major: self.major, minor: self.minor }
    }
}

fn part(text: &str) -> Option<u16> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = text == "0" || !text.starts_with('0');
    (plain && canonical).then(|| text.parse().ok()).flatten()
}

impl fmt::Display for Minor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { major, minor } = self;
        write!(f, "{major}.{minor}")
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { major, minor, patch } = self;
        write!(f, "{major}.{minor}.{patch}")
    }
}

/// Kind of a version change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// No change.
    Same,
    /// Within a minor version: members of both releases may run together.
    Patch,
    /// To a later minor version.
    Upgrade,
    /// To an earlier minor version: requires a downgrade of the storage version first.
    Downgrade,
}

/// The kind of the change from one release to another.
#[must_use]
pub fn direction(from: Release, to: Release) -> Direction {
    match to.minor().cmp(&from.minor()) {
        std::cmp::Ordering::Less => Direction::Downgrade,
        std::cmp::Ordering::Greater => Direction::Upgrade,
        std::cmp::Ordering::Equal if from == to => Direction::Same,
        std::cmp::Ordering::Equal => Direction::Patch,
    }
}

/// Joins the steps of a path: `3.5.35, then 3.6.16, then 3.7.3`.
#[must_use]
pub fn join_releases(steps: &[Release]) -> String {
    let steps: Vec<String> = steps.iter().map(Release::to_string).collect();
    steps.join(", then ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_round_trips() {
        for text in ["3.6.16", "3.5.0", "0.0.1", "10.20.30", "65535.0.0"] {
            assert_eq!(Release::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn only_three_plain_numbers_are_a_release() {
        for text in [
            "",
            "3",
            "3.6",
            "3.6.",
            ".6.16",
            "3..16",
            "3.6.16.1",
            "v3.6.16",
            "3.06.16",
            "3.6.016",
            "3.6.00",
            "3.6.16-rc.0",
            "3.6.x",
            "3.6.+1",
            "3.6.-1",
            " 3.6.16",
            "3.6.16 ",
            "3.6.65536",
            "\u{663}.6.1",
        ] {
            assert_eq!(Release::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn releases_are_ordered_numerically() {
        let parse = |text| Release::parse(text).unwrap();
        assert!(parse("3.5.9") < parse("3.5.10"));
        assert!(parse("3.5.35") < parse("3.6.0"));
        assert!(parse("3.10.0") > parse("3.9.9"));
        assert_eq!(parse("3.10.4").minor().to_string(), "3.10");
    }

    #[test]
    fn only_a_change_of_the_minor_is_an_upgrade_or_downgrade() {
        let parse = |text| Release::parse(text).unwrap();
        let between = |from, to| direction(parse(from), parse(to));
        assert_eq!(between("3.6.16", "3.6.16"), Direction::Same);
        assert_eq!(between("3.6.10", "3.6.16"), Direction::Patch);
        assert_eq!(between("3.6.16", "3.6.10"), Direction::Patch);
        assert_eq!(between("3.5.35", "3.6.0"), Direction::Upgrade);
        assert_eq!(between("3.6.0", "3.5.35"), Direction::Downgrade);
        assert_eq!(between("3.9.0", "4.0.0"), Direction::Upgrade);
    }

    #[test]
    fn steps_are_joined() {
        let steps = [Release::new(3, 5, 35), Release::new(3, 6, 16), Release::new(3, 7, 3)];
        assert_eq!(join_releases(&steps), "3.5.35, then 3.6.16, then 3.7.3");
        assert_eq!(join_releases(steps.get(..1).unwrap()), "3.5.35");
        assert_eq!(join_releases(&[]), "");
    }
}
