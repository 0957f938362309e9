//! The Kubernetes API of the operator: kinds in all their versions, conversion, defaults,
//! validation and the CRDs, with the types and names that every other module shares.
//!
//! It does no I/O and uses no other module of this crate.
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
