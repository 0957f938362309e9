//! Conversion of EtcdCluster between the hub v1 and the older versions.
//! Every struct is destructured by name, without `..`: a new field does not compile until its
//! conversion is decided. A field bound to `_` does not exist in the older version; the conversion
//! engine preserves it in an annotation.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod v1alpha1;
mod v1beta1;
