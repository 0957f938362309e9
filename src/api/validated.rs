//! A value that passed validation and cannot be constructed in any other way.
//!
//! Guarantees: controllers take a `Validated<_>` and never the API type, so an object that bypassed
//! the webhook is rejected here with the same messages.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::ops::Deref;

use serde_json::Value;

use crate::api::kinds::Kind;
use crate::api::validation::{Findings, ValidationContext, ValidationResult, validate};

/// A `T` that was read from a valid object.
///
/// Any code can construct a `T`, but only [`Validated::read`] constructs a `Validated<T>`, after
/// validation: the field is private to this module, which has no submodule but its tests, and there
/// is no other constructor (no `Default`, no `Deserialize`, no `From`) and no mutable access (no
/// `DerefMut`).
#[derive(Clone, Debug, PartialEq)]
pub struct Validated<T>(T);

impl<T> Deref for Validated<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A type that is read from objects of a kind.
pub trait FromObject: Sized {
    /// The kind of the objects.
    fn kind() -> &'static Kind;

    /// Reads the value from an object that passed validation.
    ///
    /// # Errors
    /// If a value passed validation and still cannot be read.
    fn read(object: &Value) -> Result<Self, ReadError>;
}

/// A value that passed validation and cannot be read.
#[derive(Debug)]
pub struct ReadError {
    /// Field path in the hub version, such as `spec.placement.affinity`.
    pub path: &'static str,
    /// Expected value, after "must be ".
    pub expected: &'static str,
}

impl<T: FromObject> Validated<T> {
    /// Reads an object in the hub version.
    ///
    /// The object is validated as if it were new: a value that the webhook allows because it was
    /// invalid before is an error here, and so is one that a later release no longer accepts. A
    /// controller must not harm a running cluster because of that: it changes nothing, reports the
    /// condition `Stalled` with the messages, and continues when the object is corrected.
    ///
    /// # Errors
    /// With all violations of the object.
    pub fn read(object: &Value, context: &ValidationContext<'_>) -> Result<Self, ValidationResult> {
        let result = validate(T::kind(), None, object, context);
        if !result.is_valid() {
            return Err(result);
        }
        T::read(object).map(Self).map_err(|ReadError { path, expected }| {
            let mut findings = Findings::default();
            findings.invalid(path, format!("must be {expected}"));
            ValidationResult::from_findings(findings, object)
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
