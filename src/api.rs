//! The vocabulary: the words every room may use, and what they mean.
//! Comes in: objects as they were written. Goes out: kinds in all their versions, conversions,
//! defaults, verdicts, and the list of custom resource definitions.
//! May touch: std, serde, schemars, croner, jiff, regex, strsim, k8s-openapi, kube's derive. It imports
//! no other module of ours and does no I/O.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod bytes;
mod cel;
pub mod check;
pub mod checked;
pub mod condition;
pub mod convert;
pub mod crd;
pub mod destination;
pub mod etcd_backup;
pub mod etcd_cluster;
pub mod etcd_member;
pub mod etcd_restore;
pub mod etcd_says;
pub mod etcd_version;
pub mod example_app;
pub mod field;
pub mod grants;
pub mod kinds;
pub mod leadership;
pub mod moment;
pub mod names;
pub(crate) mod owners;
pub(crate) mod plain;
pub mod pod;
pub mod schedule;
mod shape;
mod sizes;
pub mod spelling;
pub mod store_names;
pub mod texts;
pub mod told;
#[cfg(test)]
pub(crate) mod walk;
