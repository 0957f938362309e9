//! The agent: what runs beside etcd in its pods, before it.
//!
//! ```text
//!   init container            container of etcd, whenever it starts
//!   install: a copy of   -->  start: look at the disk --> decide --> become etcd, or refuse
//!   this program
//! ```
//!
//! Comes in: a command line in a member's pod. Goes out: etcd in the place of this process, or a
//! refusal. May touch: the member's volumes. The official image of etcd has no shell and is used
//! unchanged, so the agent comes with the pod; and a pod's arguments never change, so how a member
//! starts is decided here, at every start of its container.

mod decide;
mod disk;
mod install;
mod start;

pub use install::install;
pub use start::{NotStarted, Start, start};
