//! Serving certificates of the webhooks, and rotation of the CA that signs them.
//!
//! ```text
//!   every replica:  observe --SecretState---> leaf   --LeafPlan--> replica (creates the Secret,
//!                                                                           issues its own leaf)
//!   the leader:     observe --ObservedState-> decide --Plan------> leader  (rotates the CA set,
//!                                                                           injects the bundle)
//!   or, instead:    file_source           (certificates from files, e.g. of cert-manager)
//! ```
//!
//! Guarantees: the API server trusts every serving certificate in use, before, during and after a
//! rotation; `model` tests that against an adversary. CA keys are stored in the Secret and in
//! memory, leaf keys in memory only. Only `replica`, `leader` and `file_source` do I/O, through
//! `observe` and the clients.

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

pub(crate) use lifetimes::{
    CA_LIFETIME_FLAG, LEAF_LIFETIME_FLAG, Lifetimes, PROPAGATION_DELAY_FLAG,
};
pub(crate) use observe::CertClients;
