//! Who owns which field of a spec, as an object's `managedFields` tell it.
//! Comes in: an object. Goes out: its owners, and the fields of each, as paths into the spec.
//! May touch: JSON. Pure. The list is the apiserver's, but whoever may update an object may write it:
//! what cannot be read is nobody's word, and whoever asks must then leave everything as it is.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::{Map, Value};

/// The steps from a spec to a field, written as in `managedFields`: `f:` and a key, `k:` and the keys
/// of an item, `v:` and an item, `i:` and a number.
pub(crate) type Path<'a> = Vec<&'a str>;

/// Somebody who wrote fields of the spec, and the version that they wrote them in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FieldsEntry<'a> {
    pub(crate) api_version: &'a str,
    pub(crate) fields: Fields<'a>,
    manager: &'a str,
    operation: &'a str,
    subresource: &'a str,
}

impl FieldsEntry<'_> {
    /// Whether these are the fields that `manager` sent by server-side apply.
    pub(crate) fn is_applied_by(&self, manager: &str) -> bool {
        self.manager == manager && self.operation == "Apply" && self.subresource.is_empty()
    }

    /// Whether both are the same owner, at two times.
    fn is_same_entry(&self, other: &Self) -> bool {
        let Self { api_version, fields: _, manager, operation, subresource } = self;
        (*manager, *operation) == (other.manager, other.operation)
            && (*subresource, *api_version) == (other.subresource, other.api_version)
    }
}

/// The list of an object's owners.
#[derive(Debug)]
pub(crate) struct ManagedFields<'a> {
    of_spec: Vec<FieldsEntry<'a>>,
    /// The versions of all who own anything.
    versions: Vec<&'a str>,
}

/// All who own a part of an object; nothing if one of them cannot be read, or if there are too many.
pub(crate) fn managed_fields(object: &Value) -> Option<ManagedFields<'_>> {
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    if entries.len() > MAX_ENTRIES {
        return None;
    }
    let read = |entry| {
        let Some(spec) = fields(entry)?.get("f:spec") else { return Some(None) };
        Some(Some(FieldsEntry {
            api_version: text_at(entry, "/apiVersion"),
            fields: Fields(spec.as_object()?),
            manager: text_at(entry, "/manager"),
            operation: text_at(entry, "/operation"),
            subresource: text_at(entry, "/subresource"),
        }))
    };
    let all: Option<Vec<_>> = entries.iter().map(read).collect();
    Some(ManagedFields {
        of_spec: all?.into_iter().flatten().collect(),
        versions: entries.iter().map(|entry| text_at(entry, "/apiVersion")).collect(),
    })
}

fn text_at<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn fields(entry: &Value) -> Option<&Map<String, Value>> {
    entry.get("fieldsV1")?.as_object()
}

impl<'a> ManagedFields<'a> {
    /// Those who own a part of the spec.
    pub(crate) fn of_spec(&self) -> impl Iterator<Item = FieldsEntry<'a>> {
        self.of_spec.iter().copied()
    }

    /// Whether anybody speaks another version than this: then the apiserver has looked at the object
    /// in that one, too.
    pub(crate) fn has_other_version_than(&self, api_version: &str) -> bool {
        self.versions.iter().any(|it| *it != api_version)
    }

    /// Whether a server-side apply by `manager` can have made this list of that one. It gives the
    /// manager another set of fields, and takes some from others at most.
    pub(crate) fn is_apply_result(&self, before: &Self, manager: &str) -> bool {
        let mine = |all: &Self| all.of_spec().find(|owner| owner.is_applied_by(manager));
        let (Some(was), Some(is)) = (mine(before), mine(self)) else { return false };
        let mut others = self.of_spec().filter(|owner| !owner.is_applied_by(manager));
        was.fields != is.fields
            && others.all(|owner| {
                let earlier = before.of_spec().find(|it| it.is_same_entry(&owner));
                earlier.is_some_and(|it| owner.fields.is_subset_of(it.fields))
            })
    }
}

/// Some fields of a spec.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    /// Whether the field at `path` is among them, or a part of it. A block alone is not what is in it.
    pub(crate) fn contains(self, path: &[&str]) -> bool {
        let step = |here: &'a Map<String, Value>, step: &&str| here.get(*step)?.as_object();
        path.iter().try_fold(self.0, step).is_some()
    }

    /// Whether each of them is one of the others.
    fn is_subset_of(self, others: Fields<'_>) -> bool {
        self.paths().iter().all(|path| others.contains(path))
    }

    /// The fields by name: every leaf, and every item of a list before what is in it.
    pub(crate) fn paths(self) -> Vec<Path<'a>> {
        let mut found = Vec::new();
        collect(self.0, &mut Vec::new(), &mut found);
        found
    }
}

/// More owners than an object has. Each costs time, and whoever may write the list must not be able to
/// buy much with one request.
const MAX_ENTRIES: usize = 64;
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
pub(crate) fn value_at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |here, step| match location(here, step)? {
        Location::Key(key) => here.get(key),
        Location::Index(index) => here.get(index),
    })
}

/// Takes the value at a path away, and every block around it that is empty then, unless `is_owned`.
pub(crate) fn remove_field(value: &mut Value, path: &[&str], is_owned: &dyn Fn(&[&str]) -> bool) {
    remove(value, path, 0, is_owned);
}

fn remove(value: &mut Value, path: &[&str], depth: usize, is_owned: &dyn Fn(&[&str]) -> bool) {
    let Some(step) = path.get(depth) else { return };
    let Some(location) = location(value, step) else { return };
    let below = depth.saturating_add(1);
    let is_last = below == path.len();
    if !is_last {
        let next = match &location {
            Location::Key(key) => value.get_mut(key),
            Location::Index(index) => value.get_mut(index),
        };
        let Some(next) = next else { return };
        remove(next, path, below, is_owned);
        let around = path.get(..below).unwrap_or_default();
        if !is_empty(next) || is_owned(around) {
            return;
        }
    }
    match (value, location) {
        (Value::Object(object), Location::Key(key)) => drop(object.remove(&key)),
        (Value::Array(items), Location::Index(index)) => drop(items.remove(index)),
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
enum Location {
    Key(String),
    Index(usize),
}

fn location(here: &Value, step: &str) -> Option<Location> {
    let (how, what) = step.split_once(':')?;
    let item = |is_it: &dyn Fn(&Value) -> bool| here.as_array()?.iter().position(is_it);
    match how {
        "f" => here.get(what).map(|_| Location::Key(what.to_owned())),
        "k" => {
            let keys: Map<String, Value> = serde_json::from_str(what).ok()?;
            let has_them = |item: &Value| keys.iter().all(|(key, it)| item.get(key) == Some(it));
            item(&has_them).map(Location::Index)
        }
        "v" => {
            let wanted: Value = serde_json::from_str(what).ok()?;
            item(&|item| *item == wanted).map(Location::Index)
        }
        "i" => {
            let index = what.parse().ok()?;
            here.get(index).map(|_: &Value| Location::Index(index))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
