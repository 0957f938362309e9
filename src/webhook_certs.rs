//! The webhooks' certificates: who signs them, who trusts them, and how that changes unnoticed.
//!
//! ```text
//!   every replica:  look --SecretState--> renew  --LeafPlan--> keep   (makes the Secret, signs its own)
//!   the leader:     look --ObservedState-----> decide --Plan-----> rotate (renews the ring, puts the bundle)
//!   or, instead:    files             (someone else makes the certificates)
//! ```
//!
//! Comes in: what the API server says about one Secret and a few targets. Goes out: a certificate for
//! each handshake, and a bundle in each target. May touch: `api`, `pki`, `clients`, `telemetry`; only the
//! corridors `keep`, `rotate` and `files` do. Keys of authorities are in the Secret and in memory,
//! those of certificates in memory only.

mod apply;
mod ca_set;
mod decide;
pub(crate) mod file_source;
mod issue;
mod key_pair;
pub(crate) mod leader;
mod leaf;
mod lifetimes;
#[cfg(test)]
mod model;
mod observe;
pub(crate) mod replica;
mod secret;
mod state;
#[cfg(test)]
mod tests;

pub(crate) use lifetimes::{CA, LEAF, Lifetimes, PROPAGATION_DELAY_FLAG};
pub(crate) use observe::CertClients;
