//! The door: admission and conversion reviews over HTTPS, on every replica.
//!
//! ```text
//!   request --> serve (TLS, limits) --> desk --> review --+--> admit    mutate, validate, scale
//!                                       (pure)            +--> convert  any version to any other
//! ```
//!
//! Comes in: reviews from the API server, and anything else that finds the port. Goes out: verdicts,
//! patches and converted objects. May touch: `api`, `telemetry`, the socket it was given. No review
//! needs the API server: what is asked can be answered from the question.

mod admit;
pub mod carry;
mod contain;
mod convert;
pub mod desk;
mod protect;
mod review;
mod scale;
pub(crate) mod serve;
pub mod stand;
pub mod weight;
mod withdraw;
