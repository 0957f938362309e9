//! The webhooks' certificates: who signs them, who trusts them, and how that changes unnoticed.
//!
//! ```text
//!   every replica:  look --Reading--> renew  --Renewal--> keep   (makes the Secret, signs its own)
//!   the leader:     look --Seen-----> decide --Plan-----> rotate (renews the ring, puts the bundle)
//!   or, instead:    files             (someone else makes the certificates)
//! ```
//!
//! Comes in: what the API server says about one Secret and a few targets. Goes out: a certificate for
//! each handshake, and a bundle in each target. May touch: `api`, `pki`, `ports`, `telemetry`; only the
//! corridors `keep`, `rotate` and `files` do. Keys of authorities are in the Secret and in memory,
//! those of certificates in memory only.

mod carry_out;
mod decide;
pub(crate) mod files;
pub(crate) mod keep;
mod lifetimes;
mod look;
mod mint;
mod pair;
mod render;
mod renew;
mod ring;
pub(crate) mod rotate;
mod seen;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod walk;

pub(crate) use lifetimes::{CA, LEAF, Lifetimes, SETTLE};
pub(crate) use look::Outlook;
