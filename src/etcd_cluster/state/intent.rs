//! What members are there for.
//! Comes in: nothing. Goes out: the words for it. May touch: nothing; pure.
//! That somebody has left is more than that it goes: it is never brought back, even if nobody can be asked.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde::{Deserialize, Serialize};

/// What a member is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Intent {
    /// It founds the cluster.
    Bootstrap,
    /// It joins one that there is.
    Join,
    /// It goes.
    Leave,
    /// It goes, and it was written down that a quorum does not list it any more. It never will again.
    Removed,
}

impl Intent {
    /// Whether it goes.
    #[must_use]
    pub const fn is_leaving(self) -> bool {
        match self {
            Self::Leave | Self::Removed => true,
            Self::Bootstrap | Self::Join => false,
        }
    }
}
