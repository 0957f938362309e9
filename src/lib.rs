//! Quorate, a Kubernetes operator for etcd and the applications on it.
//!
//! ```text
//!   cli --> settings --> app --+--> telemetry     logs, metrics, probes
//!   (flags)  (checked)  (wires) +--> webhook       admission and conversion requests
//!                               +--> certificates  serving certificate and CA bundles of the webhooks
//!                               +--> leadership    leader election
//!                               +--> grants        the operator's RoleBinding in each namespace
//!                               +--> storage_migration  stored objects to the current version
//!                               +--> etcd_cluster  the EtcdCluster controller
//!                               +--> manifests     what an administrator installs
//!                               +--> agent         what runs in a member's pod before etcd
//!   api: types, validation, conversion     clients: API server and etcd     pki: certificates
//! ```
//!
//! `api` imports nothing else of this crate, `clients` imports no controller, a controller never
//! imports another controller, and only `app` wires them. `tests/house_rules.rs` checks the imports.

pub mod agent;
pub mod api;
pub mod app;
pub mod cli;
mod clients;
pub mod etcd_cluster;
mod grants;
pub mod leader_election;
pub mod manifests;
mod pki;
mod settings;
mod storage_migration;
mod telemetry;
pub mod webhook;
mod webhook_certs;
