//! What the operator tells a member's pod when it makes it.
//! Comes in: nothing. Goes out: the words, which stand on the command line of the agent in the pod.
//! May touch: nothing; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What an agent ends with that has looked and will not start etcd: the member's data is gone.
pub const EXIT_DATA_MISSING: u8 = 77;

/// What a pod is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StartMode {
    /// This is the member's first pod, and it founds the cluster with others.
    Bootstrap,
    /// This is the member's first pod, and it joins a cluster that there is.
    Join,
    /// The member had a pod before this one.
    Rejoin,
}

impl StartMode {
    /// Everything that a pod can be told.
    pub const ALL: [Self; 3] = [Self::Bootstrap, Self::Join, Self::Rejoin];

    /// The word for it on the command line.
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
        let found = Self::ALL.into_iter().find(|it| it.as_str() == text);
        found.ok_or_else(|| format!("must be one of {}", Self::ALL.map(Self::as_str).join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pod_is_told_is_read_as_it_was_written() {
        for told in StartMode::ALL {
            assert_eq!(told.to_string().parse(), Ok(told));
        }
        assert_eq!(
            "new".parse::<StartMode>(),
            Err("must be one of bootstrap, join, rejoin".to_owned())
        );
    }
}
