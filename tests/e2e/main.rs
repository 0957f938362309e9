//! End-to-end tests on the local cluster, with a real API server, kubelet and containerd.
//!
//! `make e2e` starts the cluster and runs them; each file covers one subject. Shared helpers are in
//! `tests/harness`.

#![expect(clippy::large_futures, reason = "a test is one long future, and there are few of them")]
#![expect(clippy::print_stdout, reason = "a test prints its figures")]

mod api;
mod etcd;
mod faults;
mod images;
mod installation;
mod kubectl;
mod leader_election;
mod load;
mod many_objects;
mod migration;
mod network;
mod operator;
mod permissions;
mod raw_api;
mod security;
mod storage;
mod webhook_availability;
mod webhook_outage;
mod webhook_tls;
mod webhooks;

/// The cases that are also tested in memory.
#[path = "../support/rule_cases.rs"]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
mod rule_cases;
