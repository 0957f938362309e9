//! Who leads: the replicas compete for one Lease, and at most one of them leads at any moment.
//!
//! ```text
//!   look (ports::lease) --Seen--> decide --Plan--> do (ports::lease) --> settle --> tell (watch)
//! ```
//!
//! Comes in: what the API server says about the Lease. Goes out: a [`Leadership`] that changes.
//! The rules are client-go's, made stricter where it can have two leaders; see `decide`.

pub(crate) mod campaign;
pub mod decide;
pub mod render;
pub mod seen;
pub mod settle;
#[cfg(test)]
mod walk;

pub use seen::Timing;

use crate::api::moment::Moment;

/// Whether this replica leads. Given to whoever may act only while it does.
///
/// A watcher learns of a change a little late, and a process can be paused between asking and
/// acting. Ask [`Leadership::holds_at`] with the time of the act, and let no risky call's own time
/// limit reach beyond `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// Another replica leads, or none does.
    Following,
    /// This replica leads, and stops by itself at `until` if it cannot renew before.
    Leading {
        /// The first moment at which this replica must not act any more.
        until: Moment,
    },
}

impl Leadership {
    /// Whether this replica may act at `now`.
    #[must_use]
    pub fn holds_at(self, now: Moment) -> bool {
        match self {
            Self::Following => false,
            Self::Leading { until } => now < until,
        }
    }
}
