//! EtcdCluster: its three versions, the conversion between them, validation and defaults.
//! v1 is the hub; v1beta1 and v1alpha1 are converted through it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub(crate) mod cel_rules;
mod convert;
pub mod defaults;
pub mod v1;
pub mod v1alpha1;
pub mod v1beta1;
pub mod validated;
pub(crate) mod validation;

/// Client port of the members.
pub const CLIENT_PORT: i32 = 2379;
