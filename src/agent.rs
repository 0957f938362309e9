//! The agent in the pods of etcd members.
//!
//! ```text
//!   init container            container of etcd, at every start
//!   install: copy of     -->  start: inspect data directory --> decide --> exec etcd, or refuse
//!   this binary
//! ```
//!
//! The official image of etcd has no shell and is used unchanged, so an init container installs the
//! agent. The arguments of a pod are immutable, so the agent decides how the member starts at every
//! start of the container.

mod data_dir;
mod decide;
mod install;
mod start;

pub use install::install;
pub use start::{Start, StartError, start};
