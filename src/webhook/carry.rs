//! What an older version cannot say stays what it was.
//! Comes in: an object before and after an edit, in the hub's version, and the version that the edit
//! was written in. Goes out: the object as the edit means it.
//! May touch: conversion. What the request's annotation claims was kept is nobody's word: anybody may
//! have written it, or left it out. So what was kept is found anew, from the object as it is stored.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::{Map, Value, json};

use crate::api::convert::{ANNOTATION, Unconvertible, convert};
use crate::api::kinds::{Kind, Version};

const SPEC: &str = "spec";
const STATUS: &str = "status";

/// An edit that was written in an older version of a kind.
pub struct Edit<'a> {
    kind: &'static Kind,
    written: &'static Version,
    old: &'a Value,
}

impl<'a> Edit<'a> {
    /// An edit of `old`, which is in the hub's version; nothing if it was written in that one, where
    /// everything can be said.
    #[must_use]
    pub fn through(written: &'static Version, kind: &'static Kind, old: &'a Value) -> Option<Self> {
        (written.name != kind.hub().name).then_some(Self { kind, written, old })
    }

    /// The object after the edit: what the version can say as it was written, the rest of the spec
    /// as it was, the status as it was.
    ///
    /// # Errors
    /// If an object is not of the edit's kind.
    pub fn carried(&self, new: &Value) -> Result<Value, Unconvertible> {
        self.carried_from(self.old, new)
    }

    /// The same, with the silence filled in. A default can bring a block back that the edit left
    /// out, and what the version cannot say of it comes back with it: who writes v1beta1 without a
    /// word about TLS does not ask for other certificates. What was silent before is filled in, too,
    /// because a block comes back only to one of its like.
    ///
    /// # Errors
    /// If an object is not of the edit's kind.
    pub fn carried_and_filled(&self, carried: &Value) -> Result<Value, Unconvertible> {
        let old = self.kind.filled(self.old, None);
        let filled = self.kind.filled(carried, Some(self.old));
        let carried = self.carried_from(&old, &filled)?;
        Ok(self.kind.filled(&carried, Some(self.old)))
    }

    fn carried_from(&self, old: &Value, new: &Value) -> Result<Value, Unconvertible> {
        let Self { kind, written, old: _ } = self;
        let mut carried = new.clone();
        let Some(object) = carried.as_object_mut() else { return Ok(carried) };
        object.remove(STATUS);
        let mut there = convert(Value::Object(object.clone()), &kind.api_version(written))?;
        keep(&mut there, self.kept(old)?);
        let mut back = convert(there, &kind.api_version(kind.hub()))?;
        // A spec that is not there is not made.
        if let (Some(spec), Some(carried)) = (object.get_mut(SPEC), back.get_mut(SPEC)) {
            *spec = carried.take();
        }
        if let Some(status) = old.get(STATUS) {
            object.insert(STATUS.to_owned(), status.clone());
        }
        Ok(carried)
    }

    /// What the written version cannot say of an object's spec.
    fn kept(&self, object: &Value) -> Result<Option<Value>, Unconvertible> {
        // The spec alone: what else the object carries would only take room.
        let mut bare = Map::new();
        for key in ["apiVersion", "kind", SPEC] {
            bare.extend(object.get(key).map(|value| (key.to_owned(), value.clone())));
        }
        let mut there = convert(Value::Object(bare), &self.kind.api_version(self.written))?;
        Ok(annotations(&mut there).and_then(|annotations| annotations.remove(ANNOTATION)))
    }
}

fn annotations(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()
}

/// Replaces what claims to be kept by what is.
fn keep(object: &mut Value, kept: Option<Value>) {
    if let Some(annotations) = annotations(object) {
        annotations.remove(ANNOTATION);
    }
    let Some(kept) = kept else { return };
    // Nothing else of the metadata matters here, and none of it leaves this room.
    if let Some(object) = object.as_object_mut() {
        object.insert("metadata".to_owned(), json!({ "annotations": { ANNOTATION: kept } }));
    }
}

#[cfg(test)]
mod tests;
