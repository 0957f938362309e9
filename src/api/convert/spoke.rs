//! The contract of a spoke version: conversion of its spec and status to and from the hub.
//! The conversions themselves are typed and defined with each kind.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde::Serialize;
use serde_json::{Map, Value};

use crate::api::field::FromJson;

/// A part of an object that differs between versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Desired state.
    Spec,
    /// Observed state.
    Status,
}

impl Part {
    pub(super) const ALL: [Self; 2] = [Self::Spec, Self::Status];

    /// Key in the object.
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

/// A part in an older version. Both conversions are total, destructure every field by name, and
/// invent nothing; the caller preserves the fields that they drop.
pub(crate) trait Spoke: FromJson + Serialize {
    /// The same part in the hub.
    type Hub: FromJson + Serialize;

    /// Converts to the hub.
    fn to_hub(self) -> Self::Hub;

    /// Converts from the hub, as far as this version can express the fields.
    fn from_hub(hub: Self::Hub) -> Self;
}

/// A conversion of one part.
pub(crate) type ConvertFn = fn(&Value) -> Value;

/// The conversions of a part to and from the hub, over JSON.
pub(crate) fn conversions<S: Spoke>() -> (ConvertFn, ConvertFn) {
    (
        |value| convert_json::<S, _>(value, S::to_hub),
        |value| convert_json::<S::Hub, _>(value, S::from_hub),
    )
}

fn convert_json<From: FromJson, To: Serialize>(value: &Value, convert: fn(From) -> To) -> Value {
    let converted = From::read(value).and_then(|part| serde_json::to_value(convert(part)).ok());
    converted.unwrap_or_else(|| Value::Object(Map::new()))
}
