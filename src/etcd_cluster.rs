//! The controller of EtcdCluster: bootstraps clusters, adds and removes members, replaces lost
//! ones, rolls out changes and rolls them back, switches TLS and authentication, rotates CAs,
//! defragments.
//!
//! ```text
//!   watches --> controller --> reconcile:
//!     observe --objects, probe--> state --> decide --plan--> act --> status --> report
//!     (I/O)                       (pure)    (pure)          (I/O)   (pure)     (I/O)
//! ```
//!
//! Cached objects may show that nothing is to be done; before any write, all objects are read from
//! the API server and the decision is made again. `tests/convergence.rs` explores the decisions
//! exhaustively.

mod act;
mod controller;
pub mod decide;
mod defragmentation;
mod drift;
mod heartbeat;
mod observe;
pub mod plan;
mod raft_log;
pub mod reason;
mod reconcile;
mod render;
mod report;
mod requeue;
mod rollback;
pub mod state;
mod status;
mod tls;
pub mod transport;
mod version;

pub(crate) use controller::EtcdClusterController;
pub(crate) use tls::lifetimes::Lifetimes;
