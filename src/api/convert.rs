//! Conversion of an object to another version of its kind, through the hub version.
//!
//! Guarantees: conversion is total. The API server sends objects without a spec, with nulls, and
//! with values that its schema has not rejected yet, and a conversion that fails makes the whole
//! kind unavailable. No value is invented. Each part is converted back to find the fields that the
//! other version cannot express; those are preserved in an annotation.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod diff;
mod preserved;
mod spoke;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::api::kinds::{self, Kind, Version};
pub use preserved::{MAX_BYTES, PRESERVED_FIELDS_ANNOTATION};
use preserved::{PreservedFields, RoundTripCheck};
pub(crate) use spoke::{ConvertFn, Part, Spoke, conversions};

/// Why an object cannot be converted. It never depends on the spec.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ConvertError {
    /// Not an object with an `apiVersion` and a `kind` of this operator.
    #[error("{0} is not a kind and version of this operator")]
    UnknownKind(String),
    /// The kind does not have the requested version.
    #[error("{kind} has no version {requested}")]
    UnknownVersion {
        /// The kind.
        kind: &'static str,
        /// The requested `apiVersion`.
        requested: String,
    },
}

/// Converts an object to the `apiVersion` `requested`, such as `etcd.appdelivery.cncf.io/v1`.
///
/// # Errors
/// If the kind or version of the object is unknown, or `requested` is not a version of that kind.
pub fn convert(object: Value, requested: &str) -> Result<Value, ConvertError> {
    let Value::Object(mut object) = object else {
        return Err(ConvertError::UnknownKind("a value that is not an object".to_owned()));
    };
    let (kind, from) = find(&object)?;
    let to = kind.version_of(requested).ok_or_else(|| ConvertError::UnknownVersion {
        kind: kind.name,
        requested: requested.to_owned(),
    })?;
    if from.name != to.name {
        let mut preserved = PreservedFields::take_from(&mut object);
        for hop in [Hop { from, to: kind.hub() }, Hop { from: kind.hub(), to }] {
            hop.apply(&mut object, &mut preserved);
        }
        preserved.write_to(&mut object);
    }
    object.insert("apiVersion".to_owned(), requested.into());
    // The API server requires metadata, even in an object that had none.
    if !object.get("metadata").is_some_and(Value::is_object) {
        object.insert("metadata".to_owned(), Value::Object(Map::new()));
    }
    Ok(Value::Object(object))
}

fn find(object: &Map<String, Value>) -> Result<(&'static Kind, &'static Version), ConvertError> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    let found = kinds::by_name(kind).and_then(|kind| Some((kind, kind.version_of(version)?)));
    found.ok_or_else(|| ConvertError::UnknownKind(format!("{kind} in {version}")))
}

/// One step between the hub and a spoke.
struct Hop {
    from: &'static Version,
    to: &'static Version,
}

impl Hop {
    fn apply(&self, object: &mut Map<String, Value>, preserved: &mut PreservedFields) {
        // Nothing is preserved for the version that the object is in: a forged entry would be
        // restored on the way back.
        preserved.remove_version(self.from.name);
        for part in Part::ALL {
            let Some((forward, back)) = self.conversions(part) else { continue };
            // A value that is not an object is the same in every version.
            let Some(source @ Value::Object(_)) = object.get(part.key()) else { continue };
            let check = RoundTripCheck { source, to_source: back };
            let restored = preserved.restore(self.to.name, part, forward(source), &check);
            preserved.preserve(self.from.name, part, source, &restored.round_trip);
            object.insert(part.key().to_owned(), restored.converted);
        }
        preserved.remove_version(self.to.name);
    }

    /// The functions forward and back; `None` between the hub and itself.
    fn conversions(&self, part: Part) -> Option<(ConvertFn, ConvertFn)> {
        match (self.from.conversions(part), self.to.conversions(part)) {
            (Some((to_hub, from_hub)), None) => Some((to_hub, from_hub)),
            (None, Some((to_hub, from_hub))) => Some((from_hub, to_hub)),
            (None, None) | (Some(_), Some(_)) => None,
        }
    }
}
