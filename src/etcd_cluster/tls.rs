//! TLS of a cluster: its client CA and peer CA, the certificates that they issue, external
//! certificates, CA rotation and changes of the trust bundles.
//!
//! ```text
//!   peer CA -------> peer certificate of each member
//!   client CA --+--> server certificate of each member
//!               +--> client certificate for applications, in the client Secret
//!               +--> client certificate of the operator, which is stored nowhere
//! ```
//!
//! There are two CAs so that a client certificate can never be used to join as a member. Everything
//! here is pure, except `issue` (randomness) and `manager` (API calls and handshakes).

pub(crate) mod ca_pair;
pub(crate) mod ca_rotation;
pub(crate) mod ca_set;
pub(crate) mod cert_manager;
pub(crate) mod client_secret;
pub(crate) mod external_secret;
pub(crate) mod issue;
pub(crate) mod lifetimes;
pub(crate) mod manager;
pub(crate) mod member_certs;
pub(crate) mod readiness;
pub(crate) mod report;
pub(crate) mod secret_keys;
pub(crate) mod secrets_plan;
mod select;
pub(crate) mod source;
pub(crate) mod trust_bundle;
pub(crate) mod trust_change;
pub(crate) mod trust_hash;
pub(crate) mod trust_state;

#[cfg(test)]
mod tests;
