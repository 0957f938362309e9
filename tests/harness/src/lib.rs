//! What the stories on the real cluster have in common.
//!
//! ```text
//!   tell("name", Disturbs::Nothing, async |story| { ... })
//!        |         |                        |
//!        |         |                        +-- a namespace under `restricted`, a client, kubectl, waiting
//!        |         +-- may others run meanwhile? (a lock, shared or not)
//!        +-- names the namespace, and the report when it fails
//! ```
//!
//! | a story wants to...                                  | file               |
//! | ---------------------------------------------------- | ------------------ |
//! | wait for something, with a deadline that explains    | `waiting.rs`       |
//! | run a pod and talk to it                             | `pods.rs`          |
//! | know who wrote what to the API                       | `audit.rs`         |
//! | read the control plane's etcd                        | `control_plane.rs` |
//! | stop a part or a pod's process, cut a pod's network  | `disturb.rs`       |
//! | empty, fill or measure what belongs to a pod         | `belongings.rs`    |
//! | have the operator in the cluster                     | `operator.rs`      |
//! | make, edit and await an EtcdCluster                  | `etcd_cluster.rs`  |
//! | ask the members of an etcd                           | `etcd.rs`          |
//! | write, and know that nothing is lost                 | `writer.rs`        |
//! | know that a status does not lie                      | `watchman.rs`      |

pub mod audit;
pub mod belongings;
pub mod control_plane;
pub mod diagnosis;
pub mod disturb;
pub mod etcd;
pub mod etcd_cluster;
pub mod operator;
pub mod pods;
pub mod slowness;
pub mod story;
pub mod waiting;
pub mod watchman;
pub mod writer;

pub use quorate_cluster::images::catalog;
pub use story::{Disturbs, Story, tell};
