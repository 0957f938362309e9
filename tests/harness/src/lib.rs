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

pub mod audit;
pub mod control_plane;
pub mod diagnosis;
pub mod disturb;
pub mod pods;
pub mod story;
pub mod waiting;

pub use quorate_cluster::images::catalog;
pub use story::{Disturbs, Story, tell};
