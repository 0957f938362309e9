//! Stories on the real cluster: what people rely on, told with a real apiserver, kubelet and containerd.
//!
//! `make stories` brings the cluster up and runs them; each file is one subject. What they have in common is
//! in `tests/harness`.

#![expect(clippy::large_futures, reason = "a story is one long future, and there are few of them")]
#![expect(clippy::print_stdout, reason = "a story tells its figures to whoever asks for them")]

mod api;
mod disturbances;
mod door;
mod endurance;
mod etcd;
mod handshake;
mod images;
mod installed;
mod kubectl;
mod lease;
mod load;
mod many;
mod migration;
mod network;
mod operator;
mod outage;
mod rights;
mod security;
mod storage;
mod wire;

/// The cases that are also tried in memory.
#[path = "../support/rule_cases.rs"]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
mod rule_cases;
