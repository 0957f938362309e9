//! Field sets in the format of `managedFields`: values are selected by a field set, and a field set
//! is derived from values and the schema.
//!
//! Path elements: `f:` with a key, `k:` with the keys of a list item, `v:` with a list item, `i:`
//! with an index; `.` is the field itself.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::{Map, Value, json};

use crate::api::kinds::Kind;
use crate::api::managed_fields::value_at;

const ITSELF: &str = ".";
const ATOMIC: &str = "atomic";

/// The part of a value that a field set contains.
pub(super) fn select(value: &Value, tree: &Value) -> Option<Value> {
    let steps = tree.as_object()?;
    if steps.is_empty() {
        return Some(value.clone());
    }
    let children = steps.iter().filter(|(step, _)| *step != ITSELF);
    let select_child = |(step, tree): (&String, &Value)| {
        let found = value_at(value, &[step.as_str()])?;
        let mut selected = select(found, tree)?;
        // A list item is identified by its keys, whichever manager owns them.
        if let (Some(keys), Value::Object(item)) = (step.strip_prefix("k:"), &mut selected) {
            let keys: Map<String, Value> = serde_json::from_str(keys).ok()?;
            item.extend(keys);
        }
        Some((step.clone(), selected))
    };
    let found: Vec<(String, Value)> = children.filter_map(select_child).collect();
    match value {
        Value::Object(fields) if found.is_empty() => fields.is_empty().then(|| value.clone()),
        Value::Object(_) => {
            let key = |step: String| step.strip_prefix("f:").map(ToOwned::to_owned);
            let fields = found.into_iter().filter_map(|(step, value)| Some((key(step)?, value)));
            Some(Value::Object(fields.collect()))
        }
        Value::Array(_) => Some(Value::Array(found.into_iter().map(|(_, value)| value).collect())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(value.clone()),
    }
}

/// The part of a field set that exists in a value.
pub(super) fn retain_existing(tree: &Value, value: &Value) -> Option<Value> {
    let steps = tree.as_object()?;
    if steps.is_empty() {
        return Some(tree.clone());
    }
    let mut retained = Map::new();
    for (step, below) in steps {
        if step == ITSELF {
            retained.insert(step.clone(), below.clone());
        } else if let Some(found) = value_at(value, &[step.as_str()]) {
            retained.extend(retain_existing(below, found).map(|below| (step.clone(), below)));
        }
    }
    (!retained.is_empty()).then_some(Value::Object(retained))
}

/// The field set of what `applied` and `live` have in common, in a section of the hub version.
pub(super) fn common_fields(
    kind: &Kind,
    section: &str,
    applied: &Value,
    live: &Value,
) -> Option<Value> {
    let versions = kind.hub().crd().spec.versions;
    let schema = versions.into_iter().next()?.schema?.open_api_v3_schema?;
    field_set(applied, live, schema.properties?.get(section)?)
}

fn field_set(applied: &Value, live: &Value, schema: &JSONSchemaProps) -> Option<Value> {
    match (applied, live) {
        (Value::Object(applied), Value::Object(live)) if is_granular(schema) => {
            let below = |(key, applied): (&String, &Value)| {
                let below = field_set(applied, live.get(key)?, field(schema, key)?)?;
                Some((format!("f:{key}"), below))
            };
            let tree: Map<String, Value> = applied.iter().filter_map(below).collect();
            (!tree.is_empty() || (applied.is_empty() && live.is_empty()))
                .then_some(Value::Object(tree))
        }
        (Value::Array(applied), Value::Array(live)) => {
            match schema.x_kubernetes_list_type.as_deref() {
                Some("map") => item_set(applied, live, schema),
                Some("set") => {
                    let common = applied.iter().filter(|item| live.contains(item));
                    let tree: Map<String, Value> =
                        common.map(|item| (format!("v:{item}"), json!({}))).collect();
                    (!tree.is_empty()).then_some(Value::Object(tree))
                }
                Some(_) | None => (applied == live).then(|| json!({})),
            }
        }
        (applied, live) => (applied == live).then(|| json!({})),
    }
}

/// The items of a list by their keys.
fn item_set(applied: &[Value], live: &[Value], schema: &JSONSchemaProps) -> Option<Value> {
    let Some(JSONSchemaPropsOrArray::Schema(item_schema)) = &schema.items else { return None };
    let keys = schema.x_kubernetes_list_map_keys.as_ref()?;
    let mut tree = Map::new();
    for item in applied {
        let key = |key: &String| Some((key.clone(), item.get(key)?.clone()));
        let Some(keys) = keys.iter().map(key).collect::<Option<Map<String, Value>>>() else {
            continue;
        };
        let matches = |live: &&Value| keys.iter().all(|(key, value)| live.get(key) == Some(value));
        let found = live.iter().find(matches);
        let Some(mut below) = found.and_then(|live| field_set(item, live, item_schema)) else {
            continue;
        };
        if let Value::Object(below) = &mut below {
            below.insert(ITSELF.to_owned(), json!({}));
        }
        tree.insert(format!("k:{}", Value::Object(keys)), below);
    }
    (!tree.is_empty()).then_some(Value::Object(tree))
}

fn is_granular(schema: &JSONSchemaProps) -> bool {
    schema.x_kubernetes_map_type.as_deref() != Some(ATOMIC)
        && (schema.properties.is_some() || schema.additional_properties.is_some())
}

fn field<'s>(schema: &'s JSONSchemaProps, key: &str) -> Option<&'s JSONSchemaProps> {
    let property = schema.properties.as_ref().and_then(|properties| properties.get(key));
    property.or_else(|| match schema.additional_properties.as_ref()? {
        JSONSchemaPropsOrBool::Schema(any) => Some(any.as_ref()),
        JSONSchemaPropsOrBool::Bool(_) => None,
    })
}

/// Adds a field set to another.
pub(super) fn merge(into: &mut Value, from: &Value) {
    let (Value::Object(into), Value::Object(from)) = (into, from) else { return };
    for (step, below) in from {
        match into.get_mut(step) {
            Some(existing) => merge(existing, below),
            None => drop(into.insert(step.clone(), below.clone())),
        }
    }
}
