//! Leader election: the replicas compete for one Lease, and at most one replica leads at a time.
//!
//! ```text
//!   observe (Lease) --ObservedState--> decide --Plan--> write --Write--> act (Lease)
//!                                                          --> transition --> report (watch)
//! ```
//!
//! Guarantees: never two leaders. The rules are client-go's, stricter where client-go can have two
//! leaders; `decide` lists the differences, `model` tests them against an adversary. Only `elector`
//! does I/O.

mod decide;
pub(crate) mod elector;
mod lease;
#[cfg(test)]
mod model;
mod role;
mod state;
mod transition;
mod write;

pub(crate) use state::{MAX_LEASE_DURATION, Timing};
