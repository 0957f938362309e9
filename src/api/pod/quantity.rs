//! A resource quantity: `500m`, `1Gi`, or a plain number, as in `cpu: 2`.
//! The schema is the one that Kubernetes uses for quantities.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value;

use crate::api::field::FromJson;

/// A quantity as in the spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Quantity {
    /// A number without a suffix.
    Number(i64),
    /// A number with a suffix.
    Text(String),
}

impl From<&str> for Quantity {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl FromJson for Quantity {
    fn read(json: &Value) -> Option<Self> {
        match json.as_str() {
            Some(text) => Some(Self::Text(text.to_owned())),
            None => i64::read(json).map(Self::Number),
        }
    }
}

impl JsonSchema for Quantity {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "anyOf": [{ "type": "integer" }, { "type": "string" }],
            "title": "a quantity: a number, or a number with a suffix",
            "example": "500m",
            "maxLength": 32,
            "minimum": 0,
            "pattern": "^([0-9]+([.][0-9]*)?|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$",
        })
    }
}
