//! Conversion: one object, from the version it is in to the version that is requested.
//! Comes in: any JSON object of a kind of ours. Goes out: the same object in the other version.
//! May touch: the kinds of `api`. Total over whatever arrives: the apiserver sends objects without
//! a spec, with nulls, and with values that its schema has not yet refused, and a conversion that
//! fails takes the whole kind down. Nothing is invented; what one version cannot say is `preserved`.
//! The words here: a version *says* something; a *turn* makes it *converted* in another; turned *back*
//! it shows what was understood, and the difference is *preserved*.
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

/// Why an object cannot be converted. Neither depends on what its spec says.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ConvertError {
    /// It is not an object with an `apiVersion` and a `kind` of ours.
    #[error("{0} is not a kind and version of this operator")]
    UnknownKind(String),
    /// The requested version is not one of that kind.
    #[error("{kind} has no version {requested}")]
    UnknownVersion {
        /// The kind.
        kind: &'static str,
        /// The `apiVersion` that was requested.
        requested: String,
    },
}

/// The object in the version that `requested` names, such as `etcd.appdelivery.cncf.io/v1`.
///
/// # Errors
/// If the object's kind or version is not ours, or `requested` is not a version of that kind.
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
        for version in [Hop { from, to: kind.hub() }, Hop { from: kind.hub(), to }] {
            version.apply(&mut object, &mut preserved);
        }
        preserved.write_to(&mut object);
    }
    object.insert("apiVersion".to_owned(), requested.into());
    // The apiserver demands it, even of an object that had none.
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
        // An object says for itself what it says in its own version: nothing of that is preserved, and
        // whatever claims to be would come to life on the way back.
        preserved.remove_version(self.from.name);
        for part in Part::ALL {
            let Some((there, back)) = self.conversions(part) else { continue };
            // What is not an object looks the same in every version.
            let Some(source @ Value::Object(_)) = object.get(part.key()) else { continue };
            let check = RoundTripCheck { source, to_source: back };
            let restored = preserved.restore(self.to.name, part, there(source), &check);
            preserved.preserve(self.from.name, part, source, &restored.round_trip);
            object.insert(part.key().to_owned(), restored.converted);
        }
        preserved.remove_version(self.to.name);
    }

    /// The functions there and back; nothing between a version and itself.
    fn conversions(&self, part: Part) -> Option<(ConvertFn, ConvertFn)> {
        match (self.from.conversions(part), self.to.conversions(part)) {
            (Some((up, down)), None) => Some((up, down)),
            (None, Some((up, down))) => Some((down, up)),
            (None, None) | (Some(_), Some(_)) => None,
        }
    }
}
