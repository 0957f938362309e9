//! Whether `spec.version` may be changed, given the version that runs.
//! The running version decides and not the previous spec: a spec that was changed twice within a
//! minute does not reflect the data.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::path::{NoPath, acceptable, path};
use super::{Direction, Release, direction};

/// Result of the validation of a version change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The cluster can be changed directly, or runs this version.
    Allowed,
    /// The cluster is changed in several steps; the last one is the requested version.
    AllowedVia(Vec<Release>),
    /// The change is not possible; the message names an alternative.
    Rejected(NoPath),
}

/// Whether `spec.version` may be changed from `old_spec` to `new` while the cluster runs `current`.
/// Without `current` no member was ever reachable, so that every supported release is allowed.
#[must_use]
pub fn may_change(current: Option<Release>, old_spec: Option<Release>, new: Release) -> Change {
    // An unchanged version is always allowed: an edit of another field must not fail because of it.
    // The running version is always allowed too: this reverts an unfinished upgrade.
    if old_spec == Some(new) || current == Some(new) {
        return Change::Allowed;
    }
    if let Err(reason) = acceptable(new) {
        return Change::Rejected(reason);
    }
    let Some(current) = current else { return Change::Allowed };
    if let Some(target) = old_spec.filter(|target| reverses_direction(current, *target, new)) {
        return Change::Rejected(NoPath::InProgress { from: current, target, to: new });
    }
    match path(current, new) {
        Ok(steps) if steps.len() > 1 => Change::AllowedVia(steps),
        Ok(_) => Change::Allowed,
        Err(reason) => Change::Rejected(reason),
    }
}

/// Whether the cluster is being changed to one adjacent minor version and the other one is now
/// requested: members of three minor versions must never run together.
fn reverses_direction(current: Release, target: Release, new: Release) -> bool {
    matches!(
        (direction(current, target), direction(current, new)),
        (Direction::Upgrade, Direction::Downgrade) | (Direction::Downgrade, Direction::Upgrade)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<Release> {
        Release::parse(text)
    }

    fn change(current: &str, old: &str, new: &str) -> Change {
        may_change(parse(current), parse(old), parse(new).unwrap())
    }

    #[test]
    fn new_cluster_may_use_any_supported_release() {
        for good in ["3.5.21", "3.6.10", "3.5.35", "3.6.16", "3.7.3", "3.7.9"] {
            assert_eq!(change("", "", good), Change::Allowed, "{good}");
        }
        for bad in ["3.4.45", "3.5.2", "3.5.4", "3.8.0"] {
            assert!(matches!(change("", "", bad), Change::Rejected(_)), "{bad}");
        }
    }

    #[test]
    fn version_is_free_until_a_member_was_reachable() {
        assert_eq!(change("", "3.7.99", "3.5.35"), Change::Allowed);
    }

    #[test]
    fn running_version_decides_and_not_the_previous_spec() {
        let steps = vec![Release::new(3, 6, 16), Release::new(3, 7, 3)];
        assert_eq!(change("3.5.35", "3.6.16", "3.7.3"), Change::AllowedVia(steps));
        assert_eq!(change("3.5.32", "3.5.32", "3.6.16"), Change::Allowed);
        let steps = vec![Release::new(3, 5, 35), Release::new(3, 6, 16)];
        assert_eq!(change("3.5.21", "3.5.35", "3.6.16"), Change::AllowedVia(steps));
    }

    #[test]
    fn unfinished_upgrade_can_always_be_reverted() {
        assert_eq!(change("3.5.21", "3.6.16", "3.5.21"), Change::Allowed);
        assert_eq!(change("3.5.35", "3.7.3", "3.5.35"), Change::Allowed);
        assert_eq!(change("3.5.4", "3.5.35", "3.5.4"), Change::Allowed);
        assert_eq!(change("3.4.45", "3.5.35", "3.4.45"), Change::Allowed);
        assert_eq!(change("3.7.3", "3.6.16", "3.7.3"), Change::Allowed);
    }

    #[test]
    fn unchanged_version_is_always_allowed() {
        assert_eq!(change("3.6.16", "3.5.4", "3.5.4"), Change::Allowed);
        assert_eq!(change("3.7.3", "3.4.1", "3.4.1"), Change::Allowed);
    }

    #[test]
    fn version_change_cannot_reverse_between_minors() {
        for (current, old, new) in [("3.6.16", "3.7.3", "3.5.35"), ("3.6.16", "3.5.35", "3.7.3")] {
            let Change::Rejected(reason) = change(current, old, new) else {
                panic!("{new} was allowed")
            };
            let message = reason.to_string();
            assert!(message.contains("set 3.6.16, or wait"), "{message}");
            assert!(message.ends_with(&format!("before requesting {new}")), "{message}");
        }
        assert_eq!(change("3.6.16", "3.7.3", "3.6.12"), Change::Allowed);
        assert_eq!(change("3.7.3", "3.6.16", "3.6.12"), Change::Allowed);
    }

    #[test]
    fn downgrade_by_one_minor_is_allowed() {
        assert_eq!(change("3.7.3", "3.7.3", "3.6.16"), Change::Allowed);
        assert!(matches!(
            change("3.7.3", "3.7.3", "3.5.35"),
            Change::Rejected(NoPath::DowngradeTooFar { .. })
        ));
        assert!(matches!(
            change("3.5.35", "3.5.35", "3.4.45"),
            Change::Rejected(NoPath::EndOfLife { .. })
        ));
    }
}
