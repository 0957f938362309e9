//! An amount of a resource: `500m`, `1Gi`, or a plain number, as people write `cpu: 2`.
//! Comes in: a number or a text. Goes out: the same, with the schema that Kubernetes uses for it.
//! May touch: serde, schemars, `field`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value;

use crate::api::field::Wire;

/// An amount as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Amount {
    /// A plain number.
    Number(i64),
    /// A number with a suffix.
    Text(String),
}

impl From<&str> for Amount {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl Wire for Amount {
    fn read(json: &Value) -> Option<Self> {
        match json.as_str() {
            Some(text) => Some(Self::Text(text.to_owned())),
            None => i64::read(json).map(Self::Number),
        }
    }
}

impl JsonSchema for Amount {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Amount".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "anyOf": [{ "type": "integer" }, { "type": "string" }],
            "title": "an amount: a number, or a number with a suffix",
            "example": "500m",
            "maxLength": 32,
            "minimum": 0,
            "pattern": "^([0-9]+([.][0-9]*)?|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$",
        })
    }
}
