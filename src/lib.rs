//! Quorate, a Kubernetes operator for etcd and the applications on it. This is the floor plan.
//!
//! ```text
//!   cli --> settings --> app --+--> telemetry     logs, metrics, probes
//!   (flags)  (checked)  (wires) +--> webhook       reviews in, verdicts and conversions out
//!                               +--> certificates  whom the API server trusts
//!                               +--> leadership    look, decide, do, tell: who holds the lease
//!                               +--> grants        the same rooms: rights where our objects are
//!                               +--> storage_migration  the same: stored objects to today's version
//!                               +--> manifests     what an administrator installs
//!                               +--> agent         what runs in a member's pod before etcd
//!   api: the words everyone may use     ports: thin calls to the outside     pki: certificates
//! ```
//!
//! Comes in: a command line, through `main`. Goes out: the process that it asks for.
//! May touch: nothing itself. `api` touches nothing of ours, `ports` knows no wing, a wing never
//! imports another wing, and only `app` wires. `tests/house_rules.rs` reads the imports and holds
//! this.

pub mod agent;
pub mod api;
pub mod app;
mod certificates;
pub mod cli;
pub mod etcd_cluster;
mod grants;
pub mod leadership;
pub mod manifests;
mod pki;
mod ports;
mod settings;
mod storage_migration;
mod telemetry;
pub mod webhook;
