//! Who owns which field, carried to the hub's version before the version that they wrote in is gone.
//! Comes in: an object in the hub's version, and the versions that are served. Goes out: its `managedFields`, or nothing
//! if nobody speaks a version that is not served. May touch: conversion. Pure.
//!
//! The API server forgets an owner whose version it no longer knows, and what they no longer say would then stay
//! forever. What is claimed here for an owner is only what their own words alone become in the hub's version: to leave a
//! field is a nuisance, to take one that nobody gave up is a loss.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod fields;

use serde_json::{Map, Value, json};

use crate::api::convert::{PRESERVED_FIELDS_ANNOTATION, convert};
use crate::api::kinds::Kind;
use fields::{keep, merge, named, pick};

const PARTS: [&str; 2] = ["spec", "status"];

/// Whether anybody speaks a version of this kind that is not served.
pub(super) fn is_foreign(kind: &Kind, entries: &[Value], served: &[String]) -> bool {
    entries.iter().any(|entry| speaks_foreign(kind, entry, served))
}

/// The list of owners in which nobody speaks a version that is not served.
pub(super) fn rewritten(
    kind: &'static Kind,
    object: &Value,
    served: &[String],
) -> Option<Vec<Value>> {
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    if !is_foreign(kind, entries, served) {
        return None;
    }
    let mut list: Vec<Value> = Vec::new();
    for entry in entries {
        let entry = if speaks_foreign(kind, entry, served) {
            match translated(kind, object, entry) {
                Some(entry) => entry,
                None => continue,
            }
        } else {
            entry.clone()
        };
        match list.iter_mut().find(|other| is_same_owner(other, &entry)) {
            Some(other) => join(other, &entry),
            None => list.push(entry),
        }
    }
    // An empty list would make the next applier the owner of everything that is there.
    (!list.is_empty()).then_some(list)
}

fn speaks_foreign(kind: &Kind, entry: &Value, served: &[String]) -> bool {
    let Some((group, version)) = text(entry, "apiVersion").split_once('/') else { return false };
    group == kind.group && !served.iter().any(|it| it == version)
}

/// The entry in the hub's version; nothing if nothing of it is left.
fn translated(kind: &'static Kind, object: &Value, entry: &Value) -> Option<Value> {
    let said = entry.get("fieldsV1")?.as_object()?;
    let spoken = text(entry, "apiVersion");
    let mut fields = Map::new();
    if let Some(metadata) = said.get("f:metadata") {
        let mut metadata = metadata.clone();
        // What a version could not say was kept there, and is said now.
        if let Some(Value::Object(annotations)) = metadata.get_mut("f:annotations") {
            annotations.remove(&format!("f:{PRESERVED_FIELDS_ANNOTATION}"));
        }
        fields.insert("f:metadata".to_owned(), metadata);
    }
    let known = kind.version_of(spoken).is_some();
    for part in PARTS {
        let step = format!("f:{part}");
        let (Some(tree), Some(live)) = (said.get(&step), object.get(part)) else { continue };
        let owned = if known {
            let words = own_words(kind, object, spoken, part, tree)?;
            named(kind, part, &words, live)
        } else {
            keep(tree, live)
        };
        fields.extend(owned.map(|owned| (step, owned)));
    }
    if fields.is_empty() {
        return None;
    }
    let mut entry = entry.clone();
    let hub = kind.api_version(kind.hub());
    *entry.get_mut("apiVersion")? = json!(hub);
    *entry.get_mut("fieldsV1")? = Value::Object(fields);
    Some(entry)
}

/// What an owner says in this part of the object, and nothing else, in the hub's version.
fn own_words(
    kind: &'static Kind,
    object: &Value,
    spoken: &str,
    part: &str,
    tree: &Value,
) -> Option<Value> {
    let bare = |value: &Value, version: &str, metadata: Value| json!({ "apiVersion": version, "kind": kind.name, "metadata": metadata, part: value });
    let hub = kind.api_version(kind.hub());
    let there = convert(bare(object.get(part)?, &hub, json!({})), spoken).ok()?;
    let said = pick(there.get(part)?, tree)?;
    let back = convert(bare(&said, spoken, json!({})), &hub).ok()?;
    back.get(part).cloned()
}

/// Whether the API server would take both for one.
fn is_same_owner(one: &Value, other: &Value) -> bool {
    let same = |key: &str| text(one, key) == text(other, key);
    ["manager", "operation", "apiVersion", "subresource"].into_iter().all(same)
}

/// Gives an owner the fields of another entry, too, and the later of both times.
fn join(one: &mut Value, other: &Value) {
    if let (Some(mine), Some(theirs)) = (one.get_mut("fieldsV1"), other.get("fieldsV1")) {
        merge(mine, theirs);
    }
    let later = text(one, "time").max(text(other, "time")).to_owned();
    if let (Some(time), false) = (one.get_mut("time"), later.is_empty()) {
        *time = json!(later);
    }
}

fn text<'v>(entry: &'v Value, key: &str) -> &'v str {
    entry.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
