//! Who owns which field of a spec, as an object's `managedFields` tell it.
//! Comes in: an object. Goes out: its owners, and the fields of each, as paths into the spec.
//! May touch: JSON. Pure. The list is the apiserver's, but whoever may update an object may write it:
//! what cannot be read is nobody's word, and whoever asks must then leave everything as it is.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::{Map, Value};

use super::review::text_at;

/// The steps from a spec to a field, written as in `managedFields`: `f:` and a key, `k:` and the keys
/// of an item, `v:` and an item, `i:` and a number.
pub(super) type Path<'a> = Vec<&'a str>;

/// Somebody who wrote fields of the spec, and the version that they wrote them in.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Owner<'a> {
    pub(super) api_version: &'a str,
    pub(super) fields: Fields<'a>,
    manager: &'a str,
    applies_the_whole: bool,
}

impl Owner<'_> {
    /// Whether these are the fields that `manager` sent by server-side apply.
    pub(super) fn is_applier(&self, manager: &str) -> bool {
        self.applies_the_whole && self.manager == manager
    }
}

/// All who own a part of the spec; nothing if one of them cannot be read.
pub(super) fn owners(object: &Value) -> Option<Vec<Owner<'_>>> {
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    let read = |entry| {
        let Some(spec) = fields(entry)?.get("f:spec") else { return Some(None) };
        Some(Some(Owner {
            api_version: text_at(entry, "/apiVersion"),
            fields: Fields(spec.as_object()?),
            manager: text_at(entry, "/manager"),
            applies_the_whole: text_at(entry, "/operation") == "Apply"
                && text_at(entry, "/subresource").is_empty(),
        }))
    };
    let all: Option<Vec<_>> = entries.iter().map(read).collect();
    Some(all?.into_iter().flatten().collect())
}

fn fields(entry: &Value) -> Option<&Map<String, Value>> {
    entry.get("fieldsV1")?.as_object()
}

/// Some fields of a spec.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    /// Whether the field at `path` is among them, or a part of it, or a whole that it is a part of.
    pub(super) fn touch(self, path: &[&str]) -> bool {
        let mut here = self.0;
        for step in path {
            if here.is_empty() {
                return true;
            }
            let Some(next) = here.get(*step).and_then(Value::as_object) else { return false };
            here = next;
        }
        true
    }

    /// The fields by name: every leaf, and every item of a list before what is in it.
    pub(super) fn paths(self) -> Vec<Path<'a>> {
        let mut found = Vec::new();
        collect(self.0, &mut Vec::new(), &mut found);
        found
    }
}

/// What stands for the field itself, beside what is in it.
const ITSELF: &str = ".";

fn collect<'a>(here: &'a Map<String, Value>, path: &mut Path<'a>, found: &mut Vec<Path<'a>>) {
    let is_item = path.last().is_some_and(|step| step.starts_with("k:"));
    if here.is_empty() || (is_item && here.contains_key(ITSELF)) {
        found.push(path.clone());
    }
    for (step, below) in here.iter().filter(|(step, _)| *step != ITSELF) {
        path.push(step);
        match below.as_object() {
            Some(below) => collect(below, path, found),
            None => found.push(path.clone()),
        }
        path.pop();
    }
}

/// The value at a path, if there is one.
pub(super) fn value_at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |here, step| match place(here, step)? {
        Place::Key(key) => here.get(key),
        Place::Index(index) => here.get(index),
    })
}

/// Takes the value at a path away, and every block around it that is empty then, unless `is_owned`.
pub(super) fn take_away(value: &mut Value, path: &[&str], is_owned: &dyn Fn(&[&str]) -> bool) {
    take(value, path, 0, is_owned);
}

fn take(value: &mut Value, path: &[&str], depth: usize, is_owned: &dyn Fn(&[&str]) -> bool) {
    let Some(step) = path.get(depth) else { return };
    let Some(place) = place(value, step) else { return };
    let below = depth.saturating_add(1);
    let is_last = below == path.len();
    if !is_last {
        let next = match &place {
            Place::Key(key) => value.get_mut(key),
            Place::Index(index) => value.get_mut(index),
        };
        let Some(next) = next else { return };
        take(next, path, below, is_owned);
        let around = path.get(..below).unwrap_or_default();
        if !is_empty(next) || is_owned(around) {
            return;
        }
    }
    match (value, place) {
        (Value::Object(object), Place::Key(key)) => drop(object.remove(&key)),
        (Value::Array(items), Place::Index(index)) => drop(items.remove(index)),
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(object) => object.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Where one step leads to.
enum Place {
    Key(String),
    Index(usize),
}

fn place(here: &Value, step: &str) -> Option<Place> {
    let (how, what) = step.split_once(':')?;
    let item = |is_it: &dyn Fn(&Value) -> bool| here.as_array()?.iter().position(is_it);
    match how {
        "f" => here.get(what).map(|_| Place::Key(what.to_owned())),
        "k" => {
            let keys: Map<String, Value> = serde_json::from_str(what).ok()?;
            let has_them = |item: &Value| keys.iter().all(|(key, it)| item.get(key) == Some(it));
            item(&has_them).map(Place::Index)
        }
        "v" => {
            let wanted: Value = serde_json::from_str(what).ok()?;
            item(&|item| *item == wanted).map(Place::Index)
        }
        "i" => {
            let index = what.parse().ok()?;
            here.get(index).map(|_: &Value| Place::Index(index))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
