//! Releases of etcd: how they are written, what is known about them, and the way from one to another.
//! Comes in: versions as they were written or reported. Goes out: releases, verdicts and hops.
//! May touch: std only. What is known about releases stands in `policy` as data, and nowhere else.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod change;
pub mod path;
pub mod policy;

use std::fmt;

/// A minor version, such as 3.6: what etcd's rules about upgrades are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Minor {
    /// The first part.
    pub major: u16,
    /// The second part.
    pub minor: u16,
}

/// A release with its three parts, such as 3.6.16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// The first part.
    pub major: u16,
    /// The second part.
    pub minor: u16,
    /// The third part.
    pub patch: u16,
}

impl Release {
    /// The release with these parts.
    #[must_use]
    pub const fn new(major: u16, minor: u16, patch: u16) -> Self {
        Self { major, minor, patch }
    }

    /// The release that `text` names: three numbers with points between them, and nothing else. A
    /// leading `v`, leading zeros and suffixes are refused, because each release has one name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(part);
        let release = Self::new(parts.next()??, parts.next()??, parts.next()??);
        parts.next().is_none().then_some(release)
    }

    /// The minor version that it belongs to.
    #[must_use]
    pub const fn minor(self) -> Minor {
        Minor { major: self.major, minor: self.minor }
    }
}

fn part(text: &str) -> Option<u16> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let one_name = text == "0" || !text.starts_with('0');
    (plain && one_name).then(|| text.parse().ok()).flatten()
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

/// What a change of the version is to etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// No change.
    Same,
    /// Up or down within a minor version: members of both may run together.
    Patch,
    /// To a later minor version.
    Upgrade,
    /// To an earlier minor version: the data must be brought down first.
    Downgrade,
}

/// What the change from one release to another is to etcd.
#[must_use]
pub fn direction(from: Release, to: Release) -> Direction {
    match to.minor().cmp(&from.minor()) {
        std::cmp::Ordering::Less => Direction::Downgrade,
        std::cmp::Ordering::Greater => Direction::Upgrade,
        std::cmp::Ordering::Equal if from == to => Direction::Same,
        std::cmp::Ordering::Equal => Direction::Patch,
    }
}

/// The hops in words: `3.5.35, then 3.6.16, then 3.7.3`.
#[must_use]
pub fn words(hops: &[Release]) -> String {
    let hops: Vec<String> = hops.iter().map(Release::to_string).collect();
    hops.join(", then ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_one_name_and_is_written_as_it_was_read() {
        for text in ["3.6.16", "3.5.0", "0.0.1", "10.20.30", "65535.0.0"] {
            assert_eq!(Release::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn anything_but_three_plain_numbers_is_none() {
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
    fn releases_are_ordered_by_number_and_not_by_letter() {
        let read = |text| Release::parse(text).unwrap();
        assert!(read("3.5.9") < read("3.5.10"));
        assert!(read("3.5.35") < read("3.6.0"));
        assert!(read("3.10.0") > read("3.9.9"));
        assert_eq!(read("3.10.4").minor().to_string(), "3.10");
    }

    #[test]
    fn only_the_minor_makes_it_an_upgrade_or_a_downgrade() {
        let read = |text| Release::parse(text).unwrap();
        let between = |from, to| direction(read(from), read(to));
        assert_eq!(between("3.6.16", "3.6.16"), Direction::Same);
        assert_eq!(between("3.6.10", "3.6.16"), Direction::Patch);
        assert_eq!(between("3.6.16", "3.6.10"), Direction::Patch);
        assert_eq!(between("3.5.35", "3.6.0"), Direction::Upgrade);
        assert_eq!(between("3.6.0", "3.5.35"), Direction::Downgrade);
        assert_eq!(between("3.9.0", "4.0.0"), Direction::Upgrade);
    }

    #[test]
    fn hops_read_as_a_sentence() {
        let hops = [Release::new(3, 5, 35), Release::new(3, 6, 16), Release::new(3, 7, 3)];
        assert_eq!(words(&hops), "3.5.35, then 3.6.16, then 3.7.3");
        assert_eq!(words(hops.get(..1).unwrap()), "3.5.35");
        assert_eq!(words(&[]), "");
    }
}
