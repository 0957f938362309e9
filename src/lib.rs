//! Quorate, a Kubernetes operator for etcd and the applications on it.
//!
//! ```text
//!   cli --> settings --> app --+--> telemetry          logs, metrics, probes
//!   (flags)  (checked)  (wires) +--> webhook            admission and conversion requests
//!                               +--> webhook_certs      serving certificate, CA bundles
//!                               +--> leader_election    Lease and leadership terms
//!                               +--> namespace_access   RoleBinding in each namespace in use
//!                               +--> storage_migration  stored objects to the current version
//!                               +--> etcd_cluster       the EtcdCluster controller
//!                               +--> manifests          install manifests and RBAC
//!                               +--> agent              starts etcd in the pod of a member
//!   api: types, validation, conversion     clients: API server and etcd     pki: certificates
//! ```
//!
//! `api` imports nothing else of this crate, `clients` imports no controller, a controller never
//! imports another controller, and only `app` wires them. `tests/architecture.rs` checks this.

pub mod agent;
pub mod api;
pub mod app;
pub mod cli;
mod clients;
pub mod etcd_cluster;
pub mod leader_election;
pub mod manifests;
mod namespace_access;
mod pki;
mod settings;
mod storage_migration;
mod telemetry;
pub mod webhook;
mod webhook_certs;
