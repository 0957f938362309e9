//! What this release of ours knows about releases of etcd, as data.
//! Comes in: a release. Goes out: how it stands. May touch: std only.
//! A release that can lose or corrupt data is refused. One with lesser faults, or with a fault that
//! the operator keeps from happening, is allowed with a warning: people must be able to come from it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::{Minor, Release};

/// One minor version that is supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The newest release that was known when this release of ours was made.
    pub newest: Release,
    /// What every member must run at least before the cluster leaves for the next minor version.
    /// No downgrade ends below it either: the way back up would be closed.
    pub floor: Option<Release>,
    /// The oldest minor version whose entries in a log it can read. A member that finds older ones at its start, or
    /// is sent them, ends. Nothing if nobody has found a limit.
    pub reads: Option<Minor>,
}

impl Line {
    /// The minor version.
    #[must_use]
    pub const fn minor(self) -> Minor {
        self.newest.minor()
    }
}

/// The supported minor versions, oldest first and without a gap.
pub const LINES: [Line; 3] = [
    Line { newest: Release::new(3, 5, 35), floor: Some(Release::new(3, 5, 32)), reads: None },
    Line { newest: Release::new(3, 6, 16), floor: Some(Release::new(3, 6, 11)), reads: None },
    // A member of 3.5 tells of itself at each start in an old form, which 3.6 translates and 3.7 has forgotten.
    Line { newest: Release::new(3, 7, 3), floor: None, reads: Some(Minor { major: 3, minor: 6 }) },
];

/// A fault in all releases of one minor version up to the one that repaired it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Flaw {
    /// The first release without it.
    repaired: Release,
    /// What can happen, after "etcd 3.5.1 ".
    reason: &'static str,
}

impl Flaw {
    const fn new(repaired: Release, reason: &'static str) -> Self {
        Self { repaired, reason }
    }

    fn is_in(self, release: Release) -> bool {
        release.minor() == self.repaired.minor() && release < self.repaired
    }
}

/// Faults for which a release is refused, gravest first.
const REFUSED: [Flaw; 4] = [
    Flaw::new(Release::new(3, 5, 3), "can leave members with different data after a crash"),
    Flaw::new(Release::new(3, 5, 5), "can lose acknowledged writes of a single member"),
    Flaw::new(
        Release::new(3, 5, 6),
        "can leave members with different data after a crash while defragmenting",
    ),
    Flaw::new(
        Release::new(3, 5, 14),
        "can go back to an older revision after a crash while compacting",
    ),
];

const CORRUPTS: &str =
    "can corrupt a member that is defragmented while it receives a snapshot; Quorate avoids that";
const STALE: &str = "can answer a read with old data while the leader changes";
const LEAKS: &str = "can show a user with limited rights keys of others through a watch";

/// Faults for which a release is allowed with a warning.
const WARNED: [Flaw; 9] = [
    Flaw::new(Release::new(3, 5, 23), CORRUPTS),
    Flaw::new(Release::new(3, 6, 5), CORRUPTS),
    Flaw::new(Release::new(3, 6, 4), "can fail to start again after a learner was promoted"),
    Flaw::new(Release::new(3, 5, 26), "can keep members in its data that were removed long ago"),
    Flaw::new(Release::new(3, 5, 28), STALE),
    Flaw::new(Release::new(3, 6, 9), STALE),
    Flaw::new(Release::new(3, 5, 33), LEAKS),
    Flaw::new(Release::new(3, 6, 14), LEAKS),
    Flaw::new(Release::new(3, 7, 1), LEAKS),
];

/// Said of a release that came out after this release of ours.
const NEWER: &str = "is newer than any release that this version of Quorate was tested with";

/// How a release stands with us. Reasons go after its name: "etcd 3.5.4 can lose ...".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing is known against it.
    Fine,
    /// It may be used, and its user should know.
    Warned(Vec<&'static str>),
    /// It may not be used.
    Refused(&'static str),
    /// It belongs to a minor version that etcd's authors no longer repair.
    EndOfLife,
    /// It belongs to a minor version that is not known to this release of ours.
    NotKnown,
}

/// How `release` stands with us.
#[must_use]
pub fn judge(release: Release) -> Standing {
    let Some(line) = line(release.minor()) else {
        let too_old = release.minor() < oldest().minor();
        return if too_old { Standing::EndOfLife } else { Standing::NotKnown };
    };
    if let Some(flaw) = REFUSED.iter().find(|flaw| flaw.is_in(release)) {
        return Standing::Refused(flaw.reason);
    }
    let mut reasons: Vec<&'static str> =
        WARNED.iter().filter(|flaw| flaw.is_in(release)).map(|flaw| flaw.reason).collect();
    reasons.extend((release > line.newest).then_some(NEWER));
    if reasons.is_empty() { Standing::Fine } else { Standing::Warned(reasons) }
}

/// The first release of the same minor version in which users see no more than they may; nothing if this one is such.
#[must_use]
pub fn keeps_users_apart(release: Release) -> Option<Release> {
    let leak = WARNED.iter().find(|flaw| flaw.reason == LEAKS && flaw.is_in(release));
    leak.map(|flaw| flaw.repaired)
}

/// What is known about a minor version, if it is supported.
#[must_use]
pub fn line(minor: Minor) -> Option<Line> {
    LINES.into_iter().find(|line| line.minor() == minor)
}

/// The oldest minor version that is supported.
#[must_use]
pub const fn oldest() -> Line {
    let [oldest, ..] = LINES;
    oldest
}

/// The newest minor version that is supported.
#[must_use]
pub const fn newest() -> Line {
    let [.., newest] = LINES;
    newest
}

/// The supported minor versions in words: `3.5, 3.6 or 3.7`.
#[must_use]
pub fn supported() -> String {
    let [others @ .., last] = LINES;
    let others: Vec<String> = others.iter().map(|line| line.minor().to_string()).collect();
    format!("{} or {}", others.join(", "), last.minor())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(text: &str) -> Standing {
        judge(Release::parse(text).unwrap())
    }

    fn warnings(text: &str) -> Vec<&'static str> {
        match judged(text) {
            Standing::Warned(reasons) => reasons,
            other @ (Standing::Fine
            | Standing::Refused(_)
            | Standing::EndOfLife
            | Standing::NotKnown) => {
                panic!("{text}: {other:?}")
            }
        }
    }

    #[test]
    fn the_newest_release_of_every_minor_is_fine() {
        for line in LINES {
            assert_eq!(judge(line.newest), Standing::Fine, "{}", line.newest);
        }
    }

    #[test]
    fn what_can_lose_or_corrupt_data_is_refused_with_its_own_reason() {
        for (text, word) in [
            ("3.5.0", "different data after a crash"),
            ("3.5.2", "different data after a crash"),
            ("3.5.3", "acknowledged writes"),
            ("3.5.4", "acknowledged writes"),
            ("3.5.5", "defragmenting"),
            ("3.5.6", "older revision"),
            ("3.5.13", "older revision"),
        ] {
            match judged(text) {
                Standing::Refused(reason) => assert!(reason.contains(word), "{text}: {reason}"),
                other @ (Standing::Fine
                | Standing::Warned(_)
                | Standing::EndOfLife
                | Standing::NotKnown) => {
                    panic!("{text}: {other:?}")
                }
            }
        }
    }

    #[test]
    fn what_people_come_from_is_allowed_and_says_what_it_lacks() {
        assert_eq!(warnings("3.5.21").len(), 4);
        assert_eq!(warnings("3.6.10"), [LEAKS]);
        assert_eq!(warnings("3.6.3").len(), 4);
        assert_eq!(warnings("3.5.14").len(), 4);
        assert_eq!(warnings("3.5.32"), [LEAKS]);
        assert_eq!(warnings("3.7.0"), [LEAKS]);
    }

    #[test]
    fn a_fault_ends_with_the_release_that_repaired_it() {
        assert!(!warnings("3.5.23").contains(&CORRUPTS));
        assert!(warnings("3.5.27").contains(&STALE));
        assert!(!warnings("3.5.28").contains(&STALE));
        assert_eq!(judged("3.5.33"), Standing::Fine);
        assert_eq!(judged("3.6.14"), Standing::Fine);
        assert_eq!(judged("3.7.1"), Standing::Fine);
    }

    #[test]
    fn a_release_from_after_ours_is_allowed_with_a_warning() {
        assert_eq!(warnings("3.6.17"), [NEWER]);
        assert_eq!(warnings("3.5.999"), [NEWER]);
    }

    #[test]
    fn other_minors_are_over_or_not_known_yet() {
        for text in ["3.4.45", "3.0.0", "2.3.8", "0.0.1"] {
            assert_eq!(judged(text), Standing::EndOfLife, "{text}");
        }
        for text in ["3.8.0", "4.0.0", "4.5.1"] {
            assert_eq!(judged(text), Standing::NotKnown, "{text}");
        }
        assert_eq!(supported(), "3.5, 3.6 or 3.7");
    }

    #[test]
    fn the_tables_agree_with_each_other() {
        for pair in LINES.windows(2) {
            let (lower, upper) = (pair[0], pair[1]);
            assert_eq!(lower.minor().major, upper.minor().major);
            assert_eq!(lower.minor().minor + 1, upper.minor().minor, "no gap between minors");
            assert!(lower.floor.is_some(), "{}: no way up without a floor", lower.minor());
        }
        for line in LINES {
            if let Some(floor) = line.floor {
                assert_eq!(floor.minor(), line.minor());
                assert!(floor <= line.newest, "{floor} is not out yet");
                assert!(!matches!(judge(floor), Standing::Refused(_)), "{floor} is refused");
            }
        }
        assert!(
            REFUSED.is_sorted_by_key(|flaw| flaw.repaired),
            "the first that fits is the gravest"
        );
    }

    #[test]
    fn a_reason_fits_into_a_warning() {
        let reasons = REFUSED.iter().chain(&WARNED).map(|flaw| flaw.reason).chain([NEWER]);
        for reason in reasons {
            let warning = format!("spec.version: etcd 3.5.999 {reason}");
            assert!(warning.len() <= 120, "{} letters: {warning}", warning.len());
        }
    }
}
