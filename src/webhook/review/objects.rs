//! The objects in a review: texts first, and a tree only for the one that is looked at.
//! Comes in: the text of an object, or of a list of them. Goes out: a tree, the texts one by one,
//! and how an object is called in a sentence. May touch: `weight`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::fmt;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;

use super::repeated;
use crate::webhook::weight::weight;

/// What the tree of one object may weigh. An object of 1.5 MiB, more than is ever stored, weighs
/// half of it at worst.
const MOST_WEIGHT: usize = 48 * 1024 * 1024;
/// The most objects in one review. More only fit into a body if they are too short to be objects.
const MOST_OBJECTS: usize = 200_000;

/// Why an object is not read.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum TooMuch {
    #[error("needs {weight} bytes of memory, and at most {most} are given to one object")]
    Heavy { weight: usize, most: usize },
    #[error("cannot be read: {0}")]
    Unreadable(String),
}

/// The object as a tree.
pub(crate) fn tree(text: &RawValue) -> Result<Value, TooMuch> {
    tree_within(text.get(), MOST_WEIGHT)
}

fn tree_within(text: &str, most: usize) -> Result<Value, TooMuch> {
    let weight = weight(text.as_bytes());
    if weight > most {
        return Err(TooMuch::Heavy { weight, most });
    }
    // It was found to be JSON; what is left is nested too deep, or a number without end.
    serde_json::from_str(text).map_err(|error| TooMuch::Unreadable(repeated(&error.to_string())))
}

/// The texts of the objects in a list; none if there is no list.
pub(crate) fn listed(text: Option<&RawValue>) -> Result<Vec<&RawValue>, String> {
    let Some(text) = text else { return Ok(Vec::new()) };
    let Texts(found) =
        serde_json::from_str(text.get()).map_err(|error| repeated(&error.to_string()))?;
    Ok(found)
}

/// A list of texts, with an end: a list of a million nothings must not be held.
struct Texts<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for Texts<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Counting)
    }
}

struct Counting;

impl<'de> Visitor<'de> for Counting {
    type Value = Texts<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some(text) = list.next_element::<&RawValue>()? {
            if found.len() >= MOST_OBJECTS {
                return Err(A::Error::custom(format_args!("more than {MOST_OBJECTS} objects")));
            }
            found.push(text);
        }
        Ok(Texts(found))
    }
}

/// What an object is called in a sentence, such as `EtcdCluster default/main`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Label {
    kind: String,
    namespace: String,
    name: String,
}

impl Label {
    /// The label of a text that may not become a tree, as far as it can be read.
    pub(crate) fn of(text: &RawValue) -> Self {
        let Ok(head) = serde_json::from_str::<Head>(text.get()) else { return Self::default() };
        let Head { kind, metadata: Names { namespace, name } } = head;
        Self { kind: repeated(&kind), namespace: repeated(&namespace), name: repeated(&name) }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    #[serde(deserialize_with = "super::leniently")]
    kind: String,
    #[serde(deserialize_with = "super::leniently")]
    metadata: Names,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Names {
    #[serde(deserialize_with = "super::leniently")]
    namespace: String,
    #[serde(deserialize_with = "super::leniently")]
    name: String,
}

impl fmt::Display for Label {
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
    fn an_object_that_is_too_heavy_is_not_made_a_tree() {
        let most = weight(b"[1,2,3]");
        assert_eq!(tree_within("[1,2,3]", most), Ok(serde_json::json!([1, 2, 3])));
        let heavy = tree_within("[1,2,3,4,5,6]", most).unwrap_err();
        assert!(heavy.to_string().starts_with("needs "), "{heavy}");
    }

    #[test]
    fn an_object_that_is_nested_too_deep_is_named_and_does_not_end_the_process() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        let deep: &RawValue = serde_json::from_str(&deep).unwrap();
        let why = tree(deep).unwrap_err().to_string();
        assert!(why.contains("recursion limit exceeded"), "{why}");
    }

    #[test]
    fn a_list_has_an_end() {
        let list = |items: usize| format!("[{}]", vec!["0"; items].join(","));
        let most = list(MOST_OBJECTS);
        let most: &RawValue = serde_json::from_str(&most).unwrap();
        assert_eq!(listed(Some(most)).map(|found| found.len()), Ok(MOST_OBJECTS));
        let more = list(MOST_OBJECTS + 1);
        let more: &RawValue = serde_json::from_str(&more).unwrap();
        let why = listed(Some(more)).unwrap_err();
        assert!(why.starts_with("more than 200000 objects"), "{why}");
    }

    #[test]
    fn an_object_is_called_by_what_can_be_read_of_it() {
        for (text, called) in [
            (r#"{"kind":"A","metadata":{"namespace":"n","name":"x"}}"#, "A n/x"),
            (r#"{"kind":"A","metadata":{"name":"x"}}"#, "A x"),
            (r#"{"kind":5,"metadata":[]}"#, "without a kind"),
            ("7", "without a kind"),
        ] {
            let raw: &RawValue = serde_json::from_str(text).unwrap();
            assert_eq!(Label::of(raw).to_string(), called);
        }
    }
}
