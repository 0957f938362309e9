//! Versions of the example application: three numbers, ordered.
//! A separate type from etcd's `Release`, so that the two are never confused.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::fmt;

use crate::api::etcd_version::Release;

/// Version of the application, such as 0.0.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppRelease {
    /// Major version.
    pub major: u16,
    /// Minor version.
    pub minor: u16,
    /// Patch version.
    pub patch: u16,
}

impl AppRelease {
    /// Parses three numbers separated by dots; nothing else is accepted.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let Release { major, minor, patch } = Release::parse(text)?;
        Some(Self { major, minor, patch })
    }
}

impl fmt::Display for AppRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { major, minor, patch } = self;
        write!(f, "{major}.{minor}.{patch}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_round_trips_and_is_ordered_numerically() {
        let parse = |text| AppRelease::parse(text).unwrap();
        assert_eq!(parse("0.0.1").to_string(), "0.0.1");
        assert!(parse("0.9.0") < parse("0.10.0"));
        for text in ["", "1", "1.0", "v1.0.0", "1.0.0-rc.1", "1.0.0.0", "01.0.0"] {
            assert_eq!(AppRelease::parse(text), None, "{text:?}");
        }
    }
}
