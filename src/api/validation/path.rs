//! A place in an object, as the steps that lead to it.
//! Comes in: keys and indexes. Goes out: `spec.members[0].name` for people, and what stands there.
//! May touch: `serde_json`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::{Map, Value};

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    /// To a field of a block.
    Field(String),
    /// To an entry of a map that is the user's to name.
    Key(String),
    /// To an item of a list.
    Index(usize),
}

/// The steps from the whole object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldPath(pub(crate) Vec<Segment>);

impl From<&str> for FieldPath {
    /// From fields with dots between them, such as `spec.storage.size`.
    fn from(to_dotted: &str) -> Self {
        Self(to_dotted.split('.').map(|field| Segment::Field(field.to_owned())).collect())
    }
}

impl From<String> for FieldPath {
    fn from(to_dotted: String) -> Self {
        Self::from(to_dotted.as_str())
    }
}

impl FieldPath {
    /// The place one step further.
    pub(crate) fn child(&self, step: Segment) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// The place at a user's key.
    pub(crate) fn key(&self, key: &str) -> Self {
        self.child(Segment::Key(key.to_owned()))
    }

    /// The place in the words of Kubernetes.
    pub(crate) fn to_dotted(&self) -> String {
        let mut path = String::new();
        for step in &self.0 {
            match step {
                Segment::Field(field) if path.is_empty() => path.push_str(field),
                Segment::Field(field) => path.extend([".", field]),
                Segment::Key(key) => path.extend(["[", key, "]"]),
                Segment::Index(index) => path.extend(["[", index.to_string().as_str(), "]"]),
            }
        }
        path
    }

    /// What stands there.
    pub(crate) fn find_in<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(object, |here, step| match step {
            Segment::Field(key) | Segment::Key(key) => here.get(key),
            Segment::Index(index) => here.get(index),
        })
    }

    /// Writes `value` there. Blocks on the way are made; lists are not grown.
    pub(crate) fn put(&self, object: &mut Value, value: Value) {
        let mut here = object;
        for step in &self.0 {
            let next = match step {
                Segment::Field(key) | Segment::Key(key) => {
                    if !here.is_object() {
                        *here = Value::Object(Map::new());
                    }
                    here.as_object_mut()
                        .map(|block| block.entry(key.clone()).or_insert(Value::Null))
                }
                Segment::Index(index) => here.get_mut(index),
            };
            let Some(next) = next else { return };
            here = next;
        }
        *here = value;
    }

    /// The place one step back.
    pub(crate) fn parent(&self) -> Option<Self> {
        let (_, rest) = self.0.split_last()?;
        (!rest.is_empty()).then(|| Self(rest.to_vec()))
    }
}
