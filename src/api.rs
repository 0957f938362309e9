//! The vocabulary: the words every room may use, and what they mean.
//! Comes in: objects as they were written. Goes out: kinds in all their versions, conversions,
//! defaults, verdicts, and the list of custom resource definitions.
//! May touch: std, serde, schemars, croner, jiff, regex, strsim, k8s-openapi, kube's derive. It imports
//! no other module of ours and does no I/O.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod bytes;
mod cel;
pub mod condition;
pub mod convert;
pub mod crd;
pub mod destination;
pub mod etcd_backup;
pub mod etcd_cluster;
pub mod etcd_member;
pub mod etcd_restore;
pub mod etcd_types;
pub mod etcd_version;
pub mod example_app;
pub(crate) mod extract;
pub mod field;
pub mod kinds;
pub mod leadership;
mod macros;
pub(crate) mod managed_fields;
pub mod monotonic;
pub mod names;
pub mod namespace_access;
pub mod object_store;
pub mod pod;
pub mod schedule;
pub mod start_mode;
mod storage_limits;
pub mod strings;
pub mod suggest;
#[cfg(test)]
pub(crate) mod test_rng;
pub mod validated;
pub mod validation;
