//! Shared helpers of the end-to-end tests on the local cluster.
//!
//! ```text
//!   run("name", Isolation::Parallel, async |ctx| { ... })
//!        |         |                        |
//!        |         |                        +-- a namespace, a client, kubectl, waiting
//!        |         +-- may other tests run at the same time? (a shared or an exclusive lock)
//!        +-- names the namespace, and the report of a failure
//! ```
//!
//! | purpose                                                   | file               |
//! | --------------------------------------------------------- | ------------------ |
//! | wait for a state, with a timeout that reports diagnostics | `waiting.rs`       |
//! | run a pod and exec into it                                | `pods.rs`          |
//! | read the audit log                                        | `audit.rs`         |
//! | read the control plane's etcd                             | `control_plane.rs` |
//! | pause a component or a pod, isolate a pod's network       | `faults.rs`        |
//! | delay messages between members                            | `latency.rs`       |
//! | wipe, fill, corrupt or measure a pod's volume and memory  | `node_state.rs`    |
//! | install the operator                                      | `operator.rs`      |
//! | create, edit and wait for an EtcdCluster                  | `etcd_cluster.rs`  |
//! | query the members of an etcd cluster                      | `etcd.rs`          |
//! | write, and verify that no acknowledged write is lost      | `writer.rs`        |
//! | verify status and membership invariants                   | `invariants.rs`    |

pub mod audit;
pub mod context;
pub mod control_plane;
pub mod diagnosis;
pub mod etcd;
pub mod etcd_cluster;
pub mod faults;
pub mod invariants;
pub mod latency;
pub mod node_state;
pub mod operator;
pub mod pods;
pub mod waiting;
pub mod writer;

pub use context::{Isolation, TestContext, run};
pub use quorate_cluster::images::catalog;
