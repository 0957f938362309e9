//! How the start agent in a member's pod starts etcd, as given on its command line.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Exit code of a start agent that does not start etcd because the data of the member is missing.
pub const EXIT_DATA_MISSING: u8 = 77;

/// Start mode of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StartMode {
    /// First pod of an initial member, which bootstraps the cluster with the others.
    Bootstrap,
    /// First pod of a member that joins an existing cluster.
    Join,
    /// Later pod of a member: its data must exist.
    Rejoin,
}

impl StartMode {
    /// All start modes.
    pub const ALL: [Self; 3] = [Self::Bootstrap, Self::Join, Self::Rejoin];

    /// Value on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bootstrap => "bootstrap",
            Self::Join => "join",
            Self::Rejoin => "rejoin",
        }
    }
}

impl fmt::Display for StartMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for StartMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        found.ok_or_else(|| format!("must be one of {}", Self::ALL.map(Self::as_str).join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_mode_round_trips() {
        for mode in StartMode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert_eq!(
            "new".parse::<StartMode>(),
            Err("must be one of bootstrap, join, rejoin".to_owned())
        );
    }
}
