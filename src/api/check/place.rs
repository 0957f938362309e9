//! A place in an object, as the steps that lead to it.
//! Comes in: keys and indexes. Goes out: `spec.members[0].name` for people, and what stands there.
//! May touch: `serde_json`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::{Map, Value};

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// To a field of a block.
    Field(String),
    /// To an entry of a map that is the user's to name.
    Key(String),
    /// To an item of a list.
    Index(usize),
}

/// The steps from the whole object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place(pub(crate) Vec<Step>);

impl From<&str> for Place {
    /// From fields with dots between them, such as `spec.storage.size`.
    fn from(dotted: &str) -> Self {
        Self(dotted.split('.').map(|field| Step::Field(field.to_owned())).collect())
    }
}

impl From<String> for Place {
    fn from(dotted: String) -> Self {
        Self::from(dotted.as_str())
    }
}

impl Place {
    /// The place one step further.
    pub(crate) fn then(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// The place at a user's key.
    pub(crate) fn key(&self, key: &str) -> Self {
        self.then(Step::Key(key.to_owned()))
    }

    /// The place in the words of Kubernetes.
    pub(crate) fn dotted(&self) -> String {
        let mut path = String::new();
        for step in &self.0 {
            match step {
                Step::Field(field) if path.is_empty() => path.push_str(field),
                Step::Field(field) => path.extend([".", field]),
                Step::Key(key) => path.extend(["[", key, "]"]),
                Step::Index(index) => path.extend(["[", index.to_string().as_str(), "]"]),
            }
        }
        path
    }

    /// What stands there.
    pub(crate) fn found_in<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(object, |here, step| match step {
            Step::Field(key) | Step::Key(key) => here.get(key),
            Step::Index(index) => here.get(index),
        })
    }

    /// Writes `value` there. Blocks on the way are made; lists are not grown.
    pub(crate) fn put(&self, object: &mut Value, value: Value) {
        let mut here = object;
        for step in &self.0 {
            let next = match step {
                Step::Field(key) | Step::Key(key) => {
                    if !here.is_object() {
                        *here = Value::Object(Map::new());
                    }
                    here.as_object_mut()
                        .map(|block| block.entry(key.clone()).or_insert(Value::Null))
                }
                Step::Index(index) => here.get_mut(index),
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
