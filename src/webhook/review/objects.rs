//! The objects in a review: raw JSON, parsed only when needed and only within a memory limit.
//!
//! Bounds the memory of one object and the number of objects, and names objects in messages.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::fmt;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;

use super::truncated_echo;
use crate::webhook::json_memory::estimate;

/// The maximum estimated memory of one parsed object. An object of 1.5 MiB, more than etcd stores,
/// needs at most half of it.
const MAX_OBJECT_MEMORY: usize = 48 * 1024 * 1024;
/// The maximum number of objects in one review. More of them only fit into a body if they are too
/// short to be objects.
const MAX_OBJECTS: usize = 200_000;

/// Why an object is not parsed.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum ObjectError {
    #[error("needs {estimate} bytes of memory; the limit for one object is {max}")]
    TooLarge { estimate: usize, max: usize },
    #[error("cannot be read: {0}")]
    Unreadable(String),
}

/// Parses an object.
pub(crate) fn parse(raw: &RawValue) -> Result<Value, ObjectError> {
    parse_within(raw.get(), MAX_OBJECT_MEMORY)
}

fn parse_within(text: &str, max: usize) -> Result<Value, ObjectError> {
    let estimate = estimate(text.as_bytes());
    if estimate > max {
        return Err(ObjectError::TooLarge { estimate, max });
    }
    // The text is valid JSON; the remaining errors are excessive nesting and numbers out of range.
    serde_json::from_str(text)
        .map_err(|error| ObjectError::Unreadable(truncated_echo(&error.to_string())))
}

/// Splits a JSON array into its elements; empty if there is no array.
pub(crate) fn split_list(raw: Option<&RawValue>) -> Result<Vec<&RawValue>, String> {
    let Some(raw) = raw else { return Ok(Vec::new()) };
    let RawObjects(elements) =
        serde_json::from_str(raw.get()).map_err(|error| truncated_echo(&error.to_string()))?;
    Ok(elements)
}

/// Raw JSON elements, bounded in number: an array of millions of tiny elements must not use up the
/// memory.
struct RawObjects<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for RawObjects<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(RawObjectsVisitor)
    }
}

struct RawObjectsVisitor;

impl<'de> Visitor<'de> for RawObjectsVisitor {
    type Value = RawObjects<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(raw) = list.next_element::<&RawValue>()? {
            if elements.len() >= MAX_OBJECTS {
                return Err(A::Error::custom(format_args!("more than {MAX_OBJECTS} objects")));
            }
            elements.push(raw);
        }
        Ok(RawObjects(elements))
    }
}

/// The name of an object in messages, such as `EtcdCluster default/main`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectName {
    kind: String,
    namespace: String,
    name: String,
}

impl ObjectName {
    /// Reads the name from JSON that may not be parsable as a whole, as far as possible.
    pub(crate) fn read(raw: &RawValue) -> Self {
        let Ok(head) = serde_json::from_str::<ObjectHead>(raw.get()) else {
            return Self::default();
        };
        let ObjectHead { kind, metadata: ObjectMeta { namespace, name } } = head;
        Self {
            kind: truncated_echo(&kind),
            namespace: truncated_echo(&namespace),
            name: truncated_echo(&name),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ObjectHead {
    #[serde(deserialize_with = "super::lenient")]
    kind: String,
    #[serde(deserialize_with = "super::lenient")]
    metadata: ObjectMeta,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ObjectMeta {
    #[serde(deserialize_with = "super::lenient")]
    namespace: String,
    #[serde(deserialize_with = "super::lenient")]
    name: String,
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, namespace, name } = self;
        f.write_str(if kind.is_empty() { "without a kind" } else { kind })?;
        match (namespace.as_str(), name.as_str()) {
            ("", "") => Ok(()),
            ("", name) => write!(f, " {name}"),
            (namespace, name) => write!(f, " {namespace}/{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_beyond_the_memory_limit_is_not_parsed() {
        let max = estimate(b"[1,2,3]");
        assert_eq!(parse_within("[1,2,3]", max), Ok(serde_json::json!([1, 2, 3])));
        let error = parse_within("[1,2,3,4,5,6]", max).unwrap_err();
        assert!(error.to_string().starts_with("needs "), "{error}");
    }

    #[test]
    fn object_nested_too_deeply_is_an_error_not_a_stack_overflow() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        let deep: &RawValue = serde_json::from_str(&deep).unwrap();
        let error = parse(deep).unwrap_err().to_string();
        assert!(error.contains("recursion limit exceeded"), "{error}");
    }

    #[test]
    fn array_of_objects_is_bounded() {
        let list = |items: usize| format!("[{}]", vec!["0"; items].join(","));
        let max = list(MAX_OBJECTS);
        let max: &RawValue = serde_json::from_str(&max).unwrap();
        assert_eq!(split_list(Some(max)).map(|elements| elements.len()), Ok(MAX_OBJECTS));
        let more = list(MAX_OBJECTS + 1);
        let more: &RawValue = serde_json::from_str(&more).unwrap();
        let error = split_list(Some(more)).unwrap_err();
        assert!(error.starts_with("more than 200000 objects"), "{error}");
    }

    #[test]
    fn object_is_named_by_its_readable_fields() {
        for (text, expected) in [
            (r#"{"kind":"A","metadata":{"namespace":"n","name":"x"}}"#, "A n/x"),
            (r#"{"kind":"A","metadata":{"name":"x"}}"#, "A x"),
            (r#"{"kind":5,"metadata":[]}"#, "without a kind"),
            ("7", "without a kind"),
        ] {
            let raw: &RawValue = serde_json::from_str(text).unwrap();
            assert_eq!(ObjectName::read(raw).to_string(), expected);
        }
    }
}
