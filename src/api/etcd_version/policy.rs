//! Support policy of this operator version for etcd releases, as data.
//! A release that can lose or corrupt data is rejected. One with lesser issues, or with an issue
//! that the operator prevents, is allowed with a warning: users must be able to upgrade from it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::{Minor, Release};

/// A supported minor version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinorLine {
    /// The newest release when this operator version was released.
    pub newest: Release,
    /// The lowest release that every member must run before an upgrade to the next minor version.
    /// A downgrade does not go below it either: the cluster could not be upgraded again.
    pub min_upgradable: Option<Release>,
    /// The oldest minor version whose raft log entries it can read. A member that finds older ones
    /// at its start, or receives them, exits. `None` if no limit is known.
    pub oldest_readable_log: Option<Minor>,
}

impl MinorLine {
    /// The minor version.
    #[must_use]
    pub const fn minor(self) -> Minor {
        self.newest.minor()
    }
}

/// The supported minor versions, oldest first and without a gap.
pub const SUPPORTED_MINORS: [MinorLine; 3] = [
    MinorLine {
        newest: Release::new(3, 5, 35),
        min_upgradable: Some(Release::new(3, 5, 32)),
        oldest_readable_log: None,
    },
    MinorLine {
        newest: Release::new(3, 6, 16),
        min_upgradable: Some(Release::new(3, 6, 11)),
        oldest_readable_log: None,
    },
    // At each start a 3.5 member publishes its attributes in a v2 request, which 3.6 translates
    // and 3.7 no longer reads.
    MinorLine {
        newest: Release::new(3, 7, 3),
        min_upgradable: None,
        oldest_readable_log: Some(Minor { major: 3, minor: 6 }),
    },
];

/// An issue in all releases of a minor version before the one that fixed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KnownIssue {
    /// The first release without the issue.
    fixed_in: Release,
    /// What can happen, after "etcd 3.5.1 ".
    reason: &'static str,
}

impl KnownIssue {
    const fn new(fixed_in: Release, reason: &'static str) -> Self {
        Self { fixed_in, reason }
    }

    fn affects(self, release: Release) -> bool {
        release.minor() == self.fixed_in.minor() && release < self.fixed_in
    }
}

/// Issues for which a release is rejected, most severe first.
const BLOCKING_ISSUES: [KnownIssue; 4] = [
    KnownIssue::new(Release::new(3, 5, 3), "can leave members with different data after a crash"),
    KnownIssue::new(Release::new(3, 5, 5), "can lose acknowledged writes of a single member"),
    KnownIssue::new(
        Release::new(3, 5, 6),
        "can leave members with different data after a crash while defragmenting",
    ),
    KnownIssue::new(
        Release::new(3, 5, 14),
        "can go back to an older revision after a crash while compacting",
    ),
];

const DEFRAG_CORRUPTION: &str =
    "can corrupt a member that is defragmented while it receives a snapshot; Quorate avoids that";
const STALE_READ: &str = "can answer a read with old data while the leader changes";
const WATCH_LEAK: &str = "can leak keys through a watch to users without permission to read them";

/// Issues for which a release is allowed with a warning.
const WARNING_ISSUES: [KnownIssue; 9] = [
    KnownIssue::new(Release::new(3, 5, 23), DEFRAG_CORRUPTION),
    KnownIssue::new(Release::new(3, 6, 5), DEFRAG_CORRUPTION),
    KnownIssue::new(Release::new(3, 6, 4), "can fail to start again after a learner was promoted"),
    KnownIssue::new(
        Release::new(3, 5, 26),
        "can keep members in its data that were removed long ago",
    ),
    KnownIssue::new(Release::new(3, 5, 28), STALE_READ),
    KnownIssue::new(Release::new(3, 6, 9), STALE_READ),
    KnownIssue::new(Release::new(3, 5, 33), WATCH_LEAK),
    KnownIssue::new(Release::new(3, 6, 14), WATCH_LEAK),
    KnownIssue::new(Release::new(3, 7, 1), WATCH_LEAK),
];

/// Warning for a release that is newer than this operator version.
const UNTESTED: &str = "is newer than any release that this version of Quorate was tested with";

/// Support of a release. Reasons follow its name: "etcd 3.5.4 can lose ...".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// No known issues.
    Full,
    /// Allowed, with warnings.
    WithWarnings(Vec<&'static str>),
    /// Rejected.
    Rejected(&'static str),
    /// Its minor version is no longer maintained by the etcd project.
    EndOfLife,
    /// Its minor version is unknown to this operator version.
    Unknown,
}

/// The support of `release`.
#[must_use]
pub fn classify(release: Release) -> Support {
    let Some(line) = line(release.minor()) else {
        let too_old = release.minor() < oldest().minor();
        return if too_old { Support::EndOfLife } else { Support::Unknown };
    };
    if let Some(issue) = BLOCKING_ISSUES.iter().find(|issue| issue.affects(release)) {
        return Support::Rejected(issue.reason);
    }
    let mut reasons: Vec<&'static str> = WARNING_ISSUES
        .iter()
        .filter(|issue| issue.affects(release))
        .map(|issue| issue.reason)
        .collect();
    reasons.extend((release > line.newest).then_some(UNTESTED));
    if reasons.is_empty() { Support::Full } else { Support::WithWarnings(reasons) }
}

/// The first release of the same minor version in which a watch does not show a user keys of
/// others; `None` if `release` already has the fix.
#[must_use]
pub fn watch_leak_fixed_in(release: Release) -> Option<Release> {
    let leak =
        WARNING_ISSUES.iter().find(|issue| issue.reason == WATCH_LEAK && issue.affects(release));
    leak.map(|issue| issue.fixed_in)
}

/// The entry of a minor version, if it is supported.
#[must_use]
pub fn line(minor: Minor) -> Option<MinorLine> {
    SUPPORTED_MINORS.into_iter().find(|line| line.minor() == minor)
}

/// The oldest supported minor version.
#[must_use]
pub const fn oldest() -> MinorLine {
    let [oldest, ..] = SUPPORTED_MINORS;
    oldest
}

/// The newest supported minor version.
#[must_use]
pub const fn newest() -> MinorLine {
    let [.., newest] = SUPPORTED_MINORS;
    newest
}

/// The supported minor versions as text: `3.5, 3.6 or 3.7`.
#[must_use]
pub fn supported() -> String {
    let [others @ .., last] = SUPPORTED_MINORS;
    let others: Vec<String> = others.iter().map(|line| line.minor().to_string()).collect();
    format!("{} or {}", others.join(", "), last.minor())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classified(text: &str) -> Support {
        classify(Release::parse(text).unwrap())
    }

    fn warnings(text: &str) -> Vec<&'static str> {
        match classified(text) {
            Support::WithWarnings(reasons) => reasons,
            other @ (Support::Full
            | Support::Rejected(_)
            | Support::EndOfLife
            | Support::Unknown) => {
                panic!("{text}: {other:?}")
            }
        }
    }

    #[test]
    fn newest_release_of_every_minor_has_full_support() {
        for line in SUPPORTED_MINORS {
            assert_eq!(classify(line.newest), Support::Full, "{}", line.newest);
        }
    }

    #[test]
    fn releases_that_lose_or_corrupt_data_are_rejected_with_a_reason() {
        for (text, expected) in [
            ("3.5.0", "different data after a crash"),
            ("3.5.2", "different data after a crash"),
            ("3.5.3", "acknowledged writes"),
            ("3.5.4", "acknowledged writes"),
            ("3.5.5", "defragmenting"),
            ("3.5.6", "older revision"),
            ("3.5.13", "older revision"),
        ] {
            match classified(text) {
                Support::Rejected(reason) => assert!(reason.contains(expected), "{text}: {reason}"),
                other @ (Support::Full
                | Support::WithWarnings(_)
                | Support::EndOfLife
                | Support::Unknown) => {
                    panic!("{text}: {other:?}")
                }
            }
        }
    }

    #[test]
    fn releases_with_lesser_issues_are_allowed_with_warnings() {
        assert_eq!(warnings("3.5.21").len(), 4);
        assert_eq!(warnings("3.6.10"), [WATCH_LEAK]);
        assert_eq!(warnings("3.6.3").len(), 4);
        assert_eq!(warnings("3.5.14").len(), 4);
        assert_eq!(warnings("3.5.32"), [WATCH_LEAK]);
        assert_eq!(warnings("3.7.0"), [WATCH_LEAK]);
    }

    #[test]
    fn issue_ends_with_the_release_that_fixed_it() {
        assert!(!warnings("3.5.23").contains(&DEFRAG_CORRUPTION));
        assert!(warnings("3.5.27").contains(&STALE_READ));
        assert!(!warnings("3.5.28").contains(&STALE_READ));
        assert_eq!(classified("3.5.33"), Support::Full);
        assert_eq!(classified("3.6.14"), Support::Full);
        assert_eq!(classified("3.7.1"), Support::Full);
    }

    #[test]
    fn newer_patch_release_is_allowed_with_a_warning() {
        assert_eq!(warnings("3.6.17"), [UNTESTED]);
        assert_eq!(warnings("3.5.999"), [UNTESTED]);
    }

    #[test]
    fn other_minors_are_end_of_life_or_unknown() {
        for text in ["3.4.45", "3.0.0", "2.3.8", "0.0.1"] {
            assert_eq!(classified(text), Support::EndOfLife, "{text}");
        }
        for text in ["3.8.0", "4.0.0", "4.5.1"] {
            assert_eq!(classified(text), Support::Unknown, "{text}");
        }
        assert_eq!(supported(), "3.5, 3.6 or 3.7");
    }

    #[test]
    fn tables_are_consistent() {
        for pair in SUPPORTED_MINORS.windows(2) {
            let (lower, upper) = (pair[0], pair[1]);
            assert_eq!(lower.minor().major, upper.minor().major);
            assert_eq!(lower.minor().minor + 1, upper.minor().minor, "no gap between minors");
            assert!(
                lower.min_upgradable.is_some(),
                "{}: no upgrade path without min_upgradable",
                lower.minor()
            );
        }
        for line in SUPPORTED_MINORS {
            if let Some(min_upgradable) = line.min_upgradable {
                assert_eq!(min_upgradable.minor(), line.minor());
                assert!(min_upgradable <= line.newest, "{min_upgradable} is not out yet");
                assert!(
                    !matches!(classify(min_upgradable), Support::Rejected(_)),
                    "{min_upgradable} is rejected"
                );
            }
        }
        assert!(
            BLOCKING_ISSUES.is_sorted_by_key(|issue| issue.fixed_in),
            "the most severe issue comes first"
        );
    }

    #[test]
    fn reason_fits_into_a_warning() {
        let reasons = BLOCKING_ISSUES
            .iter()
            .chain(&WARNING_ISSUES)
            .map(|issue| issue.reason)
            .chain([UNTESTED]);
        for reason in reasons {
            let warning = format!("spec.version: etcd 3.5.999 {reason}");
            assert!(warning.len() <= 120, "{} characters: {warning}", warning.len());
        }
    }
}
