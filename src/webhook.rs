//! Admission and conversion webhooks over HTTPS, served by every replica.
//!
//! ```text
//!   request -> server (TLS, limits) --> handler --> review -+-> admission: mutate, validate, scale
//!                                       (pure)              +-> conversion: any served version
//! ```
//!
//! No review needs the API server: the request contains everything that the response depends on.

mod admission;
mod conversion;
mod deletion_protection;
pub mod handler;
pub mod json_memory;
mod panic;
mod review;
mod scale;
pub(crate) mod server;
pub mod spoke_update;
mod ssa_release;
pub mod testing;
