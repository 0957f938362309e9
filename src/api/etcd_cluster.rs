//! EtcdCluster: its three versions, how they turn into each other, what it may say and what it
//! means when it says nothing. v1 is the hub.
//! Comes in: objects as they were written. Goes out: objects in other versions, verdicts, defaults.
//! May touch: the vocabulary of `api`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub(crate) mod check;
pub mod checked;
mod convert;
pub mod defaults;
pub(crate) mod rules;
pub mod v1;
pub mod v1alpha1;
pub mod v1beta1;

/// The port on which members answer clients.
pub const CLIENT_PORT: i32 = 2379;
