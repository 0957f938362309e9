//! Stored objects, carried to the version that is stored today, so that old versions can one day be dropped; and the
//! refusal to work on objects that are stored in a version which this release does not know.
//!
//! ```text
//!   look (clients::storage_versions) --Seen--> decide --Plan--> act (clients::storage_versions) --> settle --Record--> tell (log, Events, metrics)
//! ```
//!
//! Comes in: our definitions, and what was written down. Goes out: one write for each object that may be stored in an
//! old version, and `storedVersions` without the versions that are proven to be gone.
//! May touch: `api`, `clients`, `telemetry`; only `keep`, `act`, `look` and `guard` do. Only the leader runs it.

mod act;
mod decide;
mod guard;
mod keep;
mod look;
mod memory;
mod ownership;
mod record;
mod seen;
mod settle;
mod tell;
#[cfg(test)]
mod walk;

pub(crate) use guard::Guard;
pub(crate) use keep::Keeper;
pub(crate) use look::recorded;
pub(crate) use record::{Phase, Record};
pub(crate) use seen::{Way, converted};
