//! What a spoke must know: how its parts become the hub's, and how the hub's become its own.
//! Comes in: JSON. Goes out: JSON in the other version, as far as that version can say it.
//! May touch: `field`. The functions themselves are typed and stand with each kind.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde::Serialize;
use serde_json::{Map, Value};

use crate::api::field::FromJson;

/// A part of an object that differs between versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// What is wanted.
    Spec,
    /// What is.
    Status,
}

impl Part {
    pub(super) const ALL: [Self; 2] = [Self::Spec, Self::Status];

    /// Its key in the object.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Spec => "spec",
            Self::Status => "status",
        }
    }

    /// Whether a JSON pointer leads into this part.
    pub(super) fn contains(self, pointer: &str) -> bool {
        pointer.split('/').nth(1) == Some(self.key())
    }
}

/// A part in an older version. Both ways are total, take every field apart by name, and invent
/// nothing; what they leave out is kept by the caller, who compares.
pub(crate) trait Spoke: FromJson + Serialize {
    /// The same part in the hub.
    type Hub: FromJson + Serialize;

    /// What this says, in the hub's words.
    fn to_hub(self) -> Self::Hub;

    /// What the hub says, as far as this version has words for it.
    fn from_hub(hub: Self::Hub) -> Self;
}

/// A conversion of one part.
pub(crate) type ConvertFn = fn(&Value) -> Value;

/// Up and `from_hub` for one part, over JSON.
pub(crate) fn conversions<S: Spoke>() -> (ConvertFn, ConvertFn) {
    (|value| through::<S, _>(value, S::to_hub), |value| through::<S::Hub, _>(value, S::from_hub))
}

fn through<From: FromJson, To: Serialize>(value: &Value, change: fn(From) -> To) -> Value {
    let converted = From::read(value).and_then(|part| serde_json::to_value(change(part)).ok());
    converted.unwrap_or_else(|| Value::Object(Map::new()))
}
