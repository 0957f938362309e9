//! The vocabulary: the words every room may use, and nothing else.
//! Comes in: nothing. Goes out: names, moments, and the list of custom resource definitions.
//! May touch: std, serde, k8s-openapi. It imports no other module of ours and does no I/O.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod crd;
pub mod moment;
pub mod names;
