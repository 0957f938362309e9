//! The wing that runs etcd clusters: it founds them, lets members join and leave, and heals them.
//!
//! ```text
//!   Seen --> decide: hold > form > leave > join > heal > scale --> Plan: chores, and one step at most
//! ```
//!
//! Comes in: what is wanted, and all that one pass could find out. Goes out: what to do next, and why.
//! May touch: `api`. What is here so far decides; it is walked by `tests/convergence.rs`.

pub mod decide;
pub mod plan;
pub mod seen;
