//! Whether the version in the spec may be changed, judged against what runs.
//! Comes in: what runs, what was asked for so far, what is asked for now. Goes out: a verdict with
//! everything a message needs. May touch: `path`. What runs decides and not the old spec, because
//! a spec that was changed twice in a minute says nothing about the data.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::path::{NoPath, acceptable, path};
use super::{Direction, Release, direction};

/// The verdict on a change of the version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The cluster can go there directly, or is there.
    Allowed,
    /// The cluster gets there by way of others; the last hop is what was asked for.
    AllowedInHops(Vec<Release>),
    /// It cannot; the words of the reason say what can be done instead.
    Refused(NoPath),
}

/// Whether a cluster that runs `current` and was asked for `old_spec` may be asked for `new`.
/// Nothing as `current` means that no member has ever answered, so that any release will do.
#[must_use]
pub fn may_change(current: Option<Release>, old_spec: Option<Release>, new: Release) -> Change {
    // What was let in once stays in: an edit of another field must not fail for the version. And
    // what runs may always be asked for, which takes back an upgrade that has got half-way.
    if old_spec == Some(new) || current == Some(new) {
        return Change::Allowed;
    }
    if let Err(why) = acceptable(new) {
        return Change::Refused(why);
    }
    let Some(current) = current else { return Change::Allowed };
    if let Some(towards) = old_spec.filter(|towards| turns_round(current, *towards, new)) {
        return Change::Refused(NoPath::Unfinished { from: current, towards, to: new });
    }
    match path(current, new) {
        Ok(hops) if hops.len() > 1 => Change::AllowedInHops(hops),
        Ok(_) => Change::Allowed,
        Err(why) => Change::Refused(why),
    }
}

/// Whether the cluster is on its way to one neighbour of its minor version and is now asked for
/// the other: members of three minor versions must never meet.
fn turns_round(current: Release, towards: Release, new: Release) -> bool {
    matches!(
        (direction(current, towards), direction(current, new)),
        (Direction::Upgrade, Direction::Downgrade) | (Direction::Downgrade, Direction::Upgrade)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Release> {
        Release::parse(text)
    }

    fn asked(current: &str, old: &str, new: &str) -> Change {
        may_change(read(current), read(old), read(new).unwrap())
    }

    #[test]
    fn a_new_cluster_may_have_any_release_that_is_not_refused() {
        for good in ["3.5.21", "3.6.10", "3.5.35", "3.6.16", "3.7.3", "3.7.9"] {
            assert_eq!(asked("", "", good), Change::Allowed, "{good}");
        }
        for bad in ["3.4.45", "3.5.2", "3.5.4", "3.8.0"] {
            assert!(matches!(asked("", "", bad), Change::Refused(_)), "{bad}");
        }
    }

    #[test]
    fn a_cluster_that_never_answered_may_be_asked_for_another_release() {
        assert_eq!(asked("", "3.7.99", "3.5.35"), Change::Allowed);
    }

    #[test]
    fn what_runs_decides_and_not_what_was_asked_for() {
        let hops = vec![Release::new(3, 6, 16), Release::new(3, 7, 3)];
        assert_eq!(asked("3.5.35", "3.6.16", "3.7.3"), Change::AllowedInHops(hops));
        assert_eq!(asked("3.5.32", "3.5.32", "3.6.16"), Change::Allowed);
        let hops = vec![Release::new(3, 5, 35), Release::new(3, 6, 16)];
        assert_eq!(asked("3.5.21", "3.5.35", "3.6.16"), Change::AllowedInHops(hops));
    }

    #[test]
    fn a_half_done_upgrade_may_always_be_taken_back() {
        assert_eq!(asked("3.5.21", "3.6.16", "3.5.21"), Change::Allowed);
        assert_eq!(asked("3.5.35", "3.7.3", "3.5.35"), Change::Allowed);
        assert_eq!(asked("3.5.4", "3.5.35", "3.5.4"), Change::Allowed);
        assert_eq!(asked("3.4.45", "3.5.35", "3.4.45"), Change::Allowed);
        assert_eq!(asked("3.7.3", "3.6.16", "3.7.3"), Change::Allowed);
    }

    #[test]
    fn a_version_that_does_not_change_is_nobodys_business() {
        assert_eq!(asked("3.6.16", "3.5.4", "3.5.4"), Change::Allowed);
        assert_eq!(asked("3.7.3", "3.4.1", "3.4.1"), Change::Allowed);
    }

    #[test]
    fn nobody_turns_round_between_two_minors() {
        for (current, old, new) in [("3.6.16", "3.7.3", "3.5.35"), ("3.6.16", "3.5.35", "3.7.3")] {
            let Change::Refused(why) = asked(current, old, new) else {
                panic!("{new} was allowed")
            };
            let words = why.to_string();
            assert!(words.contains("go back to 3.6.16"), "{words}");
            assert!(words.ends_with(&format!("before you ask for {new}")), "{words}");
        }
        assert_eq!(asked("3.6.16", "3.7.3", "3.6.12"), Change::Allowed);
        assert_eq!(asked("3.7.3", "3.6.16", "3.6.12"), Change::Allowed);
    }

    #[test]
    fn a_downgrade_is_allowed_where_etcd_can_do_it() {
        assert_eq!(asked("3.7.3", "3.7.3", "3.6.16"), Change::Allowed);
        assert!(matches!(
            asked("3.7.3", "3.7.3", "3.5.35"),
            Change::Refused(NoPath::TooFarDown { .. })
        ));
        assert!(matches!(
            asked("3.5.35", "3.5.35", "3.4.45"),
            Change::Refused(NoPath::EndOfLife { .. })
        ));
    }
}
