//! Stories on the real cluster: what people rely on, told with a real apiserver, kubelet and containerd.
//!
//! `make stories` brings the cluster up and runs them; each file is one subject. What they have in common is
//! in `tests/harness`.

#![expect(clippy::large_futures, reason = "a story is one long future, and there are few of them")]

mod disturbances;
mod images;
mod kubectl;
mod network;
mod operator;
mod security;
mod storage;
