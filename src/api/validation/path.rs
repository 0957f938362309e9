//! Path of a field in an object, such as `spec.members[0].name`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::{Map, Value};

/// Segment of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    /// Field of an object.
    Field(String),
    /// Key of a map.
    Key(String),
    /// Index of a list.
    Index(usize),
}

/// Path from the root of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldPath(pub(crate) Vec<Segment>);

impl From<&str> for FieldPath {
    /// Parses fields separated by dots, such as `spec.storage.size`.
    fn from(dotted: &str) -> Self {
        Self(dotted.split('.').map(|field| Segment::Field(field.to_owned())).collect())
    }
}

impl From<String> for FieldPath {
    fn from(dotted: String) -> Self {
        Self::from(dotted.as_str())
    }
}

impl FieldPath {
    /// The path with one more segment.
    pub(crate) fn child(&self, segment: Segment) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment);
        Self(segments)
    }

    /// The path of a map entry.
    pub(crate) fn key(&self, key: &str) -> Self {
        self.child(Segment::Key(key.to_owned()))
    }

    /// The path in the notation of Kubernetes.
    pub(crate) fn to_dotted(&self) -> String {
        let mut path = String::new();
        for segment in &self.0 {
            match segment {
                Segment::Field(field) if path.is_empty() => path.push_str(field),
                Segment::Field(field) => path.extend([".", field]),
                Segment::Key(key) => path.extend(["[", key, "]"]),
                Segment::Index(index) => path.extend(["[", index.to_string().as_str(), "]"]),
            }
        }
        path
    }

    /// The value at the path.
    pub(crate) fn find_in<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(object, |here, segment| match segment {
            Segment::Field(key) | Segment::Key(key) => here.get(key),
            Segment::Index(index) => here.get(index),
        })
    }

    /// Sets the value at the path. Missing objects are created; lists are not extended.
    pub(crate) fn put(&self, object: &mut Value, value: Value) {
        let mut here = object;
        for segment in &self.0 {
            let next = match segment {
                Segment::Field(key) | Segment::Key(key) => {
                    if !here.is_object() {
                        *here = Value::Object(Map::new());
                    }
                    here.as_object_mut()
                        .map(|object| object.entry(key.clone()).or_insert(Value::Null))
                }
                Segment::Index(index) => here.get_mut(index),
            };
            let Some(next) = next else { return };
            here = next;
        }
        *here = value;
    }

    /// The path without its last segment.
    pub(crate) fn parent(&self) -> Option<Self> {
        let (_, rest) = self.0.split_last()?;
        (!rest.is_empty()).then(|| Self(rest.to_vec()))
    }
}
