//! Who leads: the replicas compete for one Lease, and at most one of them leads at any moment.
//!
//! ```text
//!   look (ports::lease) --Seen--> decide --Plan--> attempt --Write--> do (ports::lease)
//!                                                                --> settle --> tell (watch)
//! ```
//!
//! Comes in: what the API server says about the Lease. Goes out: a [`Leadership`] that changes.
//! May touch: `api`, `ports`, `telemetry`; only `campaign` does. The rules are client-go's, made
//! stricter where it can have two leaders; see `decide`.

mod attempt;
pub(crate) mod campaign;
mod decide;
mod render;
mod seen;
mod settle;
mod standing;
#[cfg(test)]
mod walk;

use std::time::Duration;

pub(crate) use seen::{LONGEST, Timing};

use crate::api::moment::Moment;

/// Whether this replica leads. Given to whoever may act only while it does.
///
/// A watcher learns of a change a little late, and a process can be paused between asking and
/// acting. Ask [`Leadership::holds_at`] with the time of the act, and give no risky call more
/// time than [`Leadership::time_left`].
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

    /// How long a call that begins at `now` may take at most; nothing, if it may not begin.
    #[must_use]
    pub fn time_left(self, now: Moment) -> Duration {
        match self {
            Self::Following => Duration::ZERO,
            Self::Leading { until } => until.since(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_may_take_as_long_as_the_term_lasts_and_a_follower_may_not_call() {
        let at = |second| Moment::new(Duration::from_secs(second));
        let leading = Leadership::Leading { until: at(10) };
        assert_eq!(leading.time_left(at(7)), Duration::from_secs(3));
        assert!(leading.holds_at(at(9)) && !leading.holds_at(at(10)));
        assert_eq!(leading.time_left(at(11)), Duration::ZERO);
        assert_eq!(Leadership::Following.time_left(at(0)), Duration::ZERO);
    }
}
