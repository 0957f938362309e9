//! Moves `managedFields` entries of unserved versions to the hub version, before such a version is
//! removed from the CRD.
//!
//! The API server drops entries of versions that it does not know, and fields that the manager
//! stops applying would then never be removed. An entry gets only the fields that the manager's own
//! values alone convert to: a field without an owner stays in the object, which is a nuisance; a
//! field with a wrong owner may be removed although it is still applied, which is data loss.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod fields;

use serde_json::{Map, Value, json};

use crate::api::convert::{PRESERVED_FIELDS_ANNOTATION, convert};
use crate::api::kinds::Kind;
use fields::{common_fields, merge, retain_existing, select};

const SECTIONS: [&str; 2] = ["spec", "status"];

/// Whether an entry uses an unserved version of this kind.
pub(super) fn uses_unserved_version(kind: &Kind, entries: &[Value], served: &[String]) -> bool {
    entries.iter().any(|entry| is_unserved(kind, entry, served))
}

/// The entries, all in served versions; none if there is nothing to change.
pub(super) fn migrate_managers(
    kind: &'static Kind,
    object: &Value,
    served: &[String],
) -> Option<Vec<Value>> {
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    if !uses_unserved_version(kind, entries, served) {
        return None;
    }
    let mut list: Vec<Value> = Vec::new();
    for entry in entries {
        let entry = if is_unserved(kind, entry, served) {
            match to_hub(kind, object, entry) {
                Some(entry) => entry,
                None => continue,
            }
        } else {
            entry.clone()
        };
        match list.iter_mut().find(|other| is_same_manager(other, &entry)) {
            Some(other) => join(other, &entry),
            None => list.push(entry),
        }
    }
    // With an empty list the next applier would own every existing field.
    (!list.is_empty()).then_some(list)
}

fn is_unserved(kind: &Kind, entry: &Value, served: &[String]) -> bool {
    let Some((group, version)) = text(entry, "apiVersion").split_once('/') else { return false };
    group == kind.group && !served.iter().any(|name| name == version)
}

/// The entry in the hub version; none if no field of it remains.
fn to_hub(kind: &'static Kind, object: &Value, entry: &Value) -> Option<Value> {
    let owned = entry.get("fieldsV1")?.as_object()?;
    let version = text(entry, "apiVersion");
    let mut fields = Map::new();
    if let Some(metadata) = owned.get("f:metadata") {
        let mut metadata = metadata.clone();
        // The preserved fields of the old version are ordinary fields in the hub version.
        if let Some(Value::Object(annotations)) = metadata.get_mut("f:annotations") {
            annotations.remove(&format!("f:{PRESERVED_FIELDS_ANNOTATION}"));
        }
        fields.insert("f:metadata".to_owned(), metadata);
    }
    let is_known = kind.version_of(version).is_some();
    for section in SECTIONS {
        let step = format!("f:{section}");
        let (Some(tree), Some(live)) = (owned.get(&step), object.get(section)) else { continue };
        let owned = if is_known {
            let applied = applied_values(kind, object, version, section, tree)?;
            common_fields(kind, section, &applied, live)
        } else {
            retain_existing(tree, live)
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

/// The values that a manager owns in this section, and no others, in the hub version.
fn applied_values(
    kind: &'static Kind,
    object: &Value,
    version: &str,
    section: &str,
    tree: &Value,
) -> Option<Value> {
    let bare = |value: &Value, version: &str| json!({ "apiVersion": version, "kind": kind.name, "metadata": {}, section: value });
    let hub = kind.api_version(kind.hub());
    let old = convert(bare(object.get(section)?, &hub), version).ok()?;
    let owned = select(old.get(section)?, tree)?;
    let back = convert(bare(&owned, version), &hub).ok()?;
    back.get(section).cloned()
}

/// Whether the API server treats both as the same manager.
fn is_same_manager(one: &Value, other: &Value) -> bool {
    let same = |key: &str| text(one, key) == text(other, key);
    ["manager", "operation", "apiVersion", "subresource"].into_iter().all(same)
}

/// Adds the fields of another entry, and keeps the later time.
fn join(one: &mut Value, other: &Value) {
    if let (Some(into), Some(from)) = (one.get_mut("fieldsV1"), other.get("fieldsV1")) {
        merge(into, from);
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
