//! Managed fields: which field manager owns which fields of a spec.
//!
//! Assumptions: the API server maintains the list, but any client that may update the object can
//! write it. If it cannot be read, callers must change nothing.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::{Map, Value};

/// Path of a field in the spec, in the notation of `managedFields`: `f:` and a key, `k:` and the
/// keys of an item, `v:` and an item, `i:` and an index.
pub(crate) type Path<'a> = Vec<&'a str>;

/// Entry of the managed fields: a manager, the API version it used, and its fields of the spec.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FieldsEntry<'a> {
    pub(crate) api_version: &'a str,
    pub(crate) fields: Fields<'a>,
    manager: &'a str,
    operation: &'a str,
    subresource: &'a str,
}

impl FieldsEntry<'_> {
    /// Whether this is the entry of `manager` for server-side apply.
    pub(crate) fn is_applied_by(&self, manager: &str) -> bool {
        self.manager == manager && self.operation == "Apply" && self.subresource.is_empty()
    }

    /// Whether both are the entry of the same manager, at different times.
    fn is_same_entry(&self, other: &Self) -> bool {
        let Self { api_version, fields: _, manager, operation, subresource } = self;
        (*manager, *operation) == (other.manager, other.operation)
            && (*subresource, *api_version) == (other.subresource, other.api_version)
    }
}

/// Managed fields of an object.
#[derive(Debug)]
pub(crate) struct ManagedFields<'a> {
    of_spec: Vec<FieldsEntry<'a>>,
    /// API versions of all entries.
    versions: Vec<&'a str>,
}

/// Reads the managed fields of an object; `None` if an entry cannot be read or there are too many.
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
    /// Entries with fields of the spec.
    pub(crate) fn of_spec(&self) -> impl Iterator<Item = FieldsEntry<'a>> {
        self.of_spec.iter().copied()
    }

    /// Whether an entry has another API version than this: the API server then processed the object
    /// in that version, too.
    pub(crate) fn has_other_version_than(&self, api_version: &str) -> bool {
        self.versions.iter().any(|version| *version != api_version)
    }

    /// Whether a server-side apply by `manager` can have produced this list from `before`. It
    /// changes the fields of the manager, and at most removes fields of others.
    pub(crate) fn is_apply_result(&self, before: &Self, manager: &str) -> bool {
        let own_entry = |all: &Self| all.of_spec().find(|entry| entry.is_applied_by(manager));
        let (Some(was), Some(is)) = (own_entry(before), own_entry(self)) else { return false };
        let mut others = self.of_spec().filter(|entry| !entry.is_applied_by(manager));
        was.fields != is.fields
            && others.all(|entry| {
                let earlier = before.of_spec().find(|earlier| earlier.is_same_entry(&entry));
                earlier.is_some_and(|earlier| entry.fields.is_subset_of(earlier.fields))
            })
    }
}

/// A set of fields of a spec.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    /// Whether the set contains the field at `path` or a part of it. An object alone does not
    /// include its fields.
    pub(crate) fn contains(self, path: &[&str]) -> bool {
        let step = |here: &'a Map<String, Value>, step: &&str| here.get(*step)?.as_object();
        path.iter().try_fold(self.0, step).is_some()
    }

    /// Whether every field is in `others`.
    fn is_subset_of(self, others: Fields<'_>) -> bool {
        self.paths().iter().all(|path| others.contains(path))
    }

    /// Paths of all leaves, and of every list item before its fields.
    pub(crate) fn paths(self) -> Vec<Path<'a>> {
        let mut found = Vec::new();
        collect(self.0, &mut Vec::new(), &mut found);
        found
    }
}

/// More entries than any legitimate object has. Each costs time, and a client that can write the
/// list must not be able to cause much work with one request.
const MAX_ENTRIES: usize = 64;
/// Key that stands for the field itself, beside its parts.
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

/// The value at a path, if it exists.
pub(crate) fn value_at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |here, step| match location(here, step)? {
        PathStep::Key(key) => here.get(key),
        PathStep::Index(index) => here.get(index),
    })
}

/// Removes the value at a path, and every enclosing object that becomes empty unless `is_owned`.
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
            PathStep::Key(key) => value.get_mut(key),
            PathStep::Index(index) => value.get_mut(index),
        };
        let Some(next) = next else { return };
        remove(next, path, below, is_owned);
        let enclosing = path.get(..below).unwrap_or_default();
        if !is_empty(next) || is_owned(enclosing) {
            return;
        }
    }
    match (value, location) {
        (Value::Object(object), PathStep::Key(key)) => drop(object.remove(&key)),
        (Value::Array(items), PathStep::Index(index)) => drop(items.remove(index)),
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

/// Location of one path step in a value.
enum PathStep {
    Key(String),
    Index(usize),
}

fn location(here: &Value, step: &str) -> Option<PathStep> {
    let (kind, value) = step.split_once(':')?;
    let item = |matches: &dyn Fn(&Value) -> bool| here.as_array()?.iter().position(matches);
    match kind {
        "f" => here.get(value).map(|_| PathStep::Key(value.to_owned())),
        "k" => {
            let keys: Map<String, Value> = serde_json::from_str(value).ok()?;
            let has_keys =
                |item: &Value| keys.iter().all(|(key, value)| item.get(key) == Some(value));
            item(&has_keys).map(PathStep::Index)
        }
        "v" => {
            let expected: Value = serde_json::from_str(value).ok()?;
            item(&|item| *item == expected).map(PathStep::Index)
        }
        "i" => {
            let index = value.parse().ok()?;
            here.get(index).map(|_: &Value| PathStep::Index(index))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
