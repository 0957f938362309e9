//! Removes the fields that a manager released by server-side apply, when another manager uses
//! another API version.
//!
//! While all managers use one version, the API server does this itself. When another manager uses
//! an older version, the API server also prunes the object in that version, where all hub-only
//! fields are in one annotation: the annotation stays, and conversion brings the released fields
//! back. The managed fields are right nevertheless, so the rest of the pruning is done here from
//! them.
//!
//! A request does not contain whether it is a server-side apply, and any update may rewrite the
//! managed fields. So any change of the managed fields that an apply cannot cause means that no
//! field was released: keeping a field is a nuisance, removing one that no manager released is data
//! loss.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::api::convert::convert;
use crate::api::kinds::Kind;
use crate::api::managed_fields::{
    Fields, FieldsEntry, Path, managed_fields, remove_field, value_at,
};

const SPEC: &str = "spec";

/// The spec without the fields that `manager` released; `None` if there are none. A field is
/// released if the manager owned it, no manager owns it now, and its value is unchanged.
pub(super) fn without_released_fields(
    kind: &'static Kind,
    old: &Value,
    new: &Value,
    manager: &str,
) -> Option<Value> {
    let (before, after) = (managed_fields(old)?, managed_fields(new)?);
    let own_entry = before.of_spec().find(|owner| owner.is_applied_by(manager))?;
    if !after.is_apply_result(&before, manager)
        || !after.has_other_version_than(own_entry.api_version)
    {
        return None;
    }
    // The managers that use the version in which the fields were owned, and those that use another.
    let (same_version, other_versions): (Vec<_>, Vec<_>) =
        after.of_spec().partition(|owner| owner.api_version == own_entry.api_version);
    let is_owned = |path: &[&str]| same_version.iter().any(|owner| owner.fields.contains(path));
    let mut paths = own_entry.fields.paths();
    paths.retain(|path| !is_owned(path));
    if paths.is_empty() {
        return None;
    }
    let (old, new) = (minimal_object(old), minimal_object(new));
    let previous = convert(old, own_entry.api_version).ok()?;
    let current = convert(new.clone(), own_entry.api_version).ok()?;
    paths.retain(|path| {
        let field =
            |object: &Value| object.get(SPEC).and_then(|spec| value_at(spec, path).cloned());
        field(&current).is_some() && field(&current) == field(&previous)
    });
    if paths.is_empty() {
        return None;
    }
    let other_versions = OtherManagers::by_version(&other_versions, &new)?;
    Release { kind, current, is_owned: &is_owned, other_versions }.remove(paths)
}

/// The parts of an object that are needed here; the rest would only be converted for nothing.
fn minimal_object(object: &Value) -> Value {
    let mut minimal = Map::new();
    for key in ["apiVersion", "kind", SPEC] {
        minimal.extend(object.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    // The preserved fields of other versions.
    let annotations = object.pointer("/metadata/annotations").cloned().unwrap_or_default();
    minimal.insert(
        "metadata".to_owned(),
        Value::Object(Map::from_iter([("annotations".to_owned(), annotations)])),
    );
    Value::Object(minimal)
}

/// The managers that use one other version.
struct OtherManagers<'a> {
    api_version: &'a str,
    fields: Vec<Fields<'a>>,
    /// The object in their version.
    object: Value,
}

impl<'a> OtherManagers<'a> {
    fn by_version(owners: &[FieldsEntry<'a>], new: &Value) -> Option<Vec<Self>> {
        let mut by_version: BTreeMap<&str, Vec<Fields<'a>>> = BTreeMap::new();
        for owner in owners {
            by_version.entry(owner.api_version).or_default().push(owner.fields);
        }
        let managers = |(api_version, fields)| {
            let object = convert(new.clone(), api_version).ok()?;
            Some(Self { api_version, fields, object })
        };
        by_version.into_iter().map(managers).collect()
    }

    /// Whether every field that they own has the same value in this object, in their version.
    fn is_unaffected_by(&self, pruned: &Value) -> bool {
        let Ok(after) = convert(pruned.clone(), self.api_version) else { return false };
        let (Some(before), Some(after)) = (self.object.get(SPEC), after.get(SPEC)) else {
            return false;
        };
        let mut paths = self.fields.iter().flat_map(|fields| fields.paths());
        paths.all(|path| value_at(before, &path) == value_at(after, &path))
    }
}

/// A removal of released fields that must not affect other managers.
struct Release<'a> {
    kind: &'static Kind,
    /// The object in the version of the manager that released the fields.
    current: Value,
    /// Whether another manager with this version owns a field.
    is_owned: &'a dyn Fn(&[&str]) -> bool,
    other_versions: Vec<OtherManagers<'a>>,
}

impl Release<'_> {
    /// The spec without as many of these fields as possible. The fields of one top-level block are
    /// removed together, because half a block would be a configuration that no user wrote.
    fn remove(&self, paths: Vec<Path<'_>>) -> Option<Value> {
        let all_removed = self.try_without(&paths);
        if all_removed.is_some() {
            return all_removed;
        }
        let mut blocks: BTreeMap<&str, Vec<Path<'_>>> = BTreeMap::new();
        for path in paths {
            blocks.entry(path.first()?).or_default().push(path);
        }
        let (mut removed, mut spec_without) = (Vec::new(), None);
        for block in blocks.into_values() {
            let extended = [removed.clone(), block].concat();
            if let Some(pruned) = self.try_without(&extended) {
                (removed, spec_without) = (extended, Some(pruned));
            }
        }
        spec_without
    }

    /// The spec without these fields, if no manager with another version is affected.
    fn try_without(&self, paths: &[Path<'_>]) -> Option<Value> {
        let mut pruned = self.current.clone();
        let spec = pruned.get_mut(SPEC)?;
        for path in paths {
            remove_field(spec, path, self.is_owned);
        }
        let mut in_hub = convert(pruned, &self.kind.api_version(self.kind.hub())).ok()?;
        let unaffected = self.other_versions.iter().all(|other| other.is_unaffected_by(&in_hub));
        if unaffected { Some(in_hub.get_mut(SPEC)?.take()) } else { None }
    }
}

#[cfg(test)]
mod tests;
