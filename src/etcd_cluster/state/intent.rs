//! The intent of a member. `Removed` is more than `Leave`: such a member is never started again,
//! even while no quorum is reachable.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde::{Deserialize, Serialize};

/// The intent of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Intent {
    /// Bootstraps the cluster.
    Bootstrap,
    /// Joins an existing cluster.
    Join,
    /// Is marked for removal.
    Leave,
    /// Is marked for removal, and it is recorded that a quorum does not list it any more.
    Removed,
}

impl Intent {
    /// Whether the member is marked for removal.
    #[must_use]
    pub const fn is_leaving(self) -> bool {
        match self {
            Self::Leave | Self::Removed => true,
            Self::Bootstrap | Self::Join => false,
        }
    }
}
