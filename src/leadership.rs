//! Who leads: the replicas compete for one Lease, and at most one of them leads at any moment.
//!
//! ```text
//!   look (ports::lease) --Seen--> decide --Plan--> attempt --Write--> do (ports::lease)
//!                                                                --> settle --> tell (watch)
//! ```
//!
//! Comes in: what the API server says about the Lease. Goes out: a `Leadership` that changes.
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

pub(crate) use seen::{LONGEST, Timing};
