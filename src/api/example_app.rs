//! ExampleApp: its three versions, how they turn into each other, and what it may say. v1 is the
//! hub; v1alpha1 is the example of the CNCF Operator White Paper.
//! Comes in: objects as they were written. Goes out: objects in other versions, rules.
//! May touch: the vocabulary of `api`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub(crate) mod check;
pub mod checked;
mod convert;
pub mod defaults;
pub mod place;
pub mod release;
pub(crate) mod rules;
pub mod v1;
pub mod v1alpha1;
pub mod v1beta1;

/// The features that the application has.
pub const FEATURES: &[&str] = &["exampleFeature1", "exampleFeature2"];
