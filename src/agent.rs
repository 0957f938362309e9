//! The agent in the pods of etcd members.
//!
//! ```text
//!   init container            container of etcd, at every start
//!   install: a copy of   -->  start: inspect the data directory --> decide --> exec etcd, or refuse
//!   this binary
//! ```
//!
//! The official image of etcd has no shell and is used unchanged, so the agent comes with the pod; and
//! the arguments of a pod never change, so how a member starts is decided here, at every start of its
//! container.

mod data_dir;
mod decide;
mod install;
mod start;

pub use install::install;
pub use start::{Start, StartError, start};
