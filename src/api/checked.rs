//! A value that has passed every check, and cannot be had in any other way.
//! Comes in: objects as they are stored. Goes out: closed types without a maybe.
//! May touch: the kinds of `api`. Controllers take a `Checked<_>` and never the API type: an object
//! that slipped past the webhook stops here, with the same sentences.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::ops::Deref;

use serde_json::Value;

use crate::api::check::{Facts, Findings, Verdict, check};
use crate::api::kinds::Kind;

/// A `T` that was read from an object without a fault.
///
/// Anybody can write a `T`; that is what makes it plain. But only [`Checked::read`] puts one in here,
/// after every check: the field is private to this file, no room but its tests lies below that could
/// reach it, and nothing is derived or offered that makes a `Checked` of something else (no `Default`,
/// no `Deserialize`, no `From`) or that hands out its inside for change (no `DerefMut`). A function
/// that takes a `Checked<_>` need not doubt.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked<T>(T);

impl<T> Deref for Checked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// What can be read from an object of a kind.
pub trait Readable: Sized {
    /// The kind of the objects.
    fn kind() -> &'static Kind;

    /// The value, from an object that has passed the checks. What is still in the way is a finding.
    ///
    /// # Errors
    /// If the object says something that the checks let pass and this cannot take.
    fn read(object: &Value) -> Result<Self, Unread>;
}

/// What could not be read after all.
#[derive(Debug)]
pub struct Unread {
    /// Where, in the hub, such as `spec.placement.affinity`.
    pub path: &'static str,
    /// What was expected.
    pub wanted: &'static str,
}

impl<T: Readable> Checked<T> {
    /// Reads an object in the hub's version. Only what stands in it counts, not how it came there.
    ///
    /// The object is judged as if it were new. What the webhook lets pass because it was wrong before
    /// is an error here, and so is whatever a rule of a later release no longer takes. A controller
    /// must not make a running cluster pay for that: it touches nothing, neither to mend nor to
    /// remove, and reports the condition `Stalled` with the verdict's words. It acts again when the
    /// object has been corrected.
    ///
    /// # Errors
    /// With everything that is wrong with the object.
    pub fn read(object: &Value, facts: &Facts<'_>) -> Result<Self, Verdict> {
        let verdict = check(T::kind(), None, object, facts);
        if !verdict.allows() {
            return Err(verdict);
        }
        T::read(object).map(Self).map_err(|Unread { path, wanted }| {
            let mut findings = Findings::default();
            findings.invalid(path, format!("must be {wanted}"));
            Verdict::of(findings, object)
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
