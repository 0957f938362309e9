//! Releases of the example application.
//! Comes in: versions as they were written. Goes out: three numbers, in order.
//! May touch: `etcd_version`, which reads three numbers alike. The type is another one, so that a
//! release of etcd is never taken for one of the application.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::fmt;

use crate::api::etcd_version::Release;

/// A release with its three parts, such as 0.0.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppRelease {
    /// The first part.
    pub major: u16,
    /// The second part.
    pub minor: u16,
    /// The third part.
    pub patch: u16,
}

impl AppRelease {
    /// The release that `text` names: three numbers with points between them, and nothing else.
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
    fn a_release_is_written_as_it_was_read_and_ordered_by_number() {
        let read = |text| AppRelease::parse(text).unwrap();
        assert_eq!(read("0.0.1").to_string(), "0.0.1");
        assert!(read("0.9.0") < read("0.10.0"));
        for text in ["", "1", "1.0", "v1.0.0", "1.0.0-rc.1", "1.0.0.0", "01.0.0"] {
            assert_eq!(AppRelease::parse(text), None, "{text:?}");
        }
    }
}
