//! Conversion: one object, from the version it is in to the version that is wanted.
//! Comes in: any JSON object of a kind of ours. Goes out: the same object in the other version.
//! May touch: the kinds of `api`. Total over whatever arrives: the apiserver sends objects without
//! a spec, with nulls, and with values that its schema has not yet refused, and a conversion that
//! fails takes the whole kind down. Nothing is invented; what one version cannot say is `kept`.
//! The words here: a version *says* something; a *turn* makes it *heard* in another; turned *back*
//! it shows what was understood, and the difference is *kept*.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod difference;
mod kept;
mod turn;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::api::kinds::{self, Kind, Version};
pub use kept::{ANNOTATION, MOST_BYTES};
use kept::{Fits, Kept};
pub(crate) use turn::{Part, Spoke, Turn, turn};

/// Why an object cannot be converted. Neither depends on what its spec says.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Unconvertible {
    /// It is not an object with an `apiVersion` and a `kind` of ours.
    #[error("{0} is not a kind and version of this operator")]
    Stranger(String),
    /// The wanted version is not one of that kind.
    #[error("{kind} has no version {wanted}")]
    NoSuchVersion {
        /// The kind.
        kind: &'static str,
        /// The `apiVersion` that was wanted.
        wanted: String,
    },
}

/// The object in the version that `wanted` names, such as `etcd.appdelivery.cncf.io/v1`.
///
/// # Errors
/// If the object's kind or version is not ours, or `wanted` is not a version of that kind.
pub fn convert(object: Value, wanted: &str) -> Result<Value, Unconvertible> {
    let Value::Object(mut object) = object else {
        return Err(Unconvertible::Stranger("a value that is not an object".to_owned()));
    };
    let (kind, from) = find(&object)?;
    let to = kind.version_of(wanted).ok_or_else(|| Unconvertible::NoSuchVersion {
        kind: kind.name,
        wanted: wanted.to_owned(),
    })?;
    if from.name != to.name {
        let mut kept = Kept::taken_from(&mut object);
        for version in [Leg { from, to: kind.hub() }, Leg { from: kind.hub(), to }] {
            version.travel(&mut object, &mut kept);
        }
        kept.put_into(&mut object);
    }
    object.insert("apiVersion".to_owned(), wanted.into());
    // The apiserver demands it, even of an object that had none.
    if !object.get("metadata").is_some_and(Value::is_object) {
        object.insert("metadata".to_owned(), Value::Object(Map::new()));
    }
    Ok(Value::Object(object))
}

fn find(object: &Map<String, Value>) -> Result<(&'static Kind, &'static Version), Unconvertible> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    let found = kinds::named(kind).and_then(|kind| Some((kind, kind.version_of(version)?)));
    found.ok_or_else(|| Unconvertible::Stranger(format!("{kind} in {version}")))
}

/// One step between the hub and a spoke.
struct Leg {
    from: &'static Version,
    to: &'static Version,
}

impl Leg {
    fn travel(&self, object: &mut Map<String, Value>, kept: &mut Kept) {
        // An object says for itself what it says in its own version: nothing of that is kept, and
        // whatever claims to be would come to life on the way back.
        kept.forget(self.from.name);
        for part in Part::ALL {
            let Some((there, back)) = self.turns(part) else { continue };
            // What is not an object looks the same in every version.
            let Some(said @ Value::Object(_)) = object.get(part.key()) else { continue };
            let fits = Fits { said, back };
            let restored = kept.restore(self.to.name, part, there(said), &fits);
            kept.keep(self.from.name, part, said, &restored.back);
            object.insert(part.key().to_owned(), restored.heard);
        }
        kept.forget(self.to.name);
    }

    /// The functions there and back; nothing between a version and itself.
    fn turns(&self, part: Part) -> Option<(Turn, Turn)> {
        match (self.from.turns(part), self.to.turns(part)) {
            (Some((up, down)), None) => Some((up, down)),
            (None, Some((up, down))) => Some((down, up)),
            (None, None) | (Some(_), Some(_)) => None,
        }
    }
}
