//! A value that has passed every validate, and cannot be had in any other way.
//! Comes in: objects as they are stored. Goes out: closed types without a maybe.
//! May touch: the kinds of `api`. Controllers take a `Validated<_>` and never the API type: an object
//! that slipped past the webhook stops here, with the same sentences.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::ops::Deref;

use serde_json::Value;

use crate::api::kinds::Kind;
use crate::api::validation::{Findings, ValidationContext, ValidationResult, validate};

/// A `T` that was read from an object without a fault.
///
/// Anybody can write a `T`; that is what makes it plain. But only [`Validated::read`] puts one in here,
/// after every check: the field is private to this file, no room but its tests lies below that could
/// reach it, and nothing is derived or offered that makes a `Validated` of something else (no `Default`,
/// no `Deserialize`, no `From`) or that hands out its inside for change (no `DerefMut`). A function
/// that takes a `Validated<_>` need not doubt.
#[derive(Clone, Debug, PartialEq)]
pub struct Validated<T>(T);

impl<T> Deref for Validated<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// What can be read from an object of a kind.
pub trait FromObject: Sized {
    /// The kind of the objects.
    fn kind() -> &'static Kind;

    /// The value, from an object that has passed the checks. What is still in the way is a finding.
    ///
    /// # Errors
    /// If the object says something that the checks let pass and this cannot take.
    fn read(object: &Value) -> Result<Self, ReadError>;
}

/// What could not be read after all.
#[derive(Debug)]
pub struct ReadError {
    /// Where, in the hub, such as `spec.placement.affinity`.
    pub path: &'static str,
    /// What was expected.
    pub expected: &'static str,
}

impl<T: FromObject> Validated<T> {
    /// Reads an object in the hub's version. Only what stands in it counts, not how it came there.
    ///
    /// The object is judged as if it were new. What the webhook lets pass because it was wrong before
    /// is an error here, and so is whatever a rule of a later release no longer takes. A controller
    /// must not make a running cluster pay for that: it touches nothing, neither to mend nor to
    /// remove, and reports the condition `Stalled` with the result's words. It acts again when the
    /// object has been corrected.
    ///
    /// # Errors
    /// With everything that is wrong with the object.
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
