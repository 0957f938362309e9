//! ExampleApp: its three versions, the conversion between them, validation and defaults.
//! v1 is the hub; v1alpha1 is the example of the CNCF Operator White Paper.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod backup_store;
pub(crate) mod cel_rules;
mod convert;
pub mod defaults;
pub mod release;
pub mod v1;
pub mod v1alpha1;
pub mod v1beta1;
pub mod validated;
pub(crate) mod validation;

/// Features of the application.
pub const FEATURES: &[&str] = &["exampleFeature1", "exampleFeature2"];
