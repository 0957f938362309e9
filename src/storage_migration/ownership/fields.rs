//! Fields as `managedFields` write them: chosen from an object by their names, and named for an object by its schema.
//! Comes in: values and trees of fields. Goes out: the same. May touch: the schema of a kind. Pure. The steps of a tree:
//! `f:` and a key, `k:` and the keys of an item, `v:` and an item, `i:` and a number; a dot is the field itself.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::{Map, Value, json};

use crate::api::kinds::Kind;
use crate::api::managed_fields::value_at;

const ITSELF: &str = ".";
const ATOMIC: &str = "atomic";

/// As much of a value as a tree names.
pub(super) fn pick(value: &Value, tree: &Value) -> Option<Value> {
    let steps = tree.as_object()?;
    if steps.is_empty() {
        return Some(value.clone());
    }
    let named = steps.iter().filter(|(step, _)| *step != ITSELF);
    let below = |(step, tree): (&String, &Value)| {
        let found = value_at(value, &[step.as_str()])?;
        let mut picked = pick(found, tree)?;
        // An item is known by its keys, whoever wrote them.
        if let (Some(keys), Value::Object(item)) = (step.strip_prefix("k:"), &mut picked) {
            let keys: Map<String, Value> = serde_json::from_str(keys).ok()?;
            item.extend(keys);
        }
        Some((step.clone(), picked))
    };
    let found: Vec<(String, Value)> = named.filter_map(below).collect();
    match value {
        Value::Object(whole) if found.is_empty() => whole.is_empty().then(|| value.clone()),
        Value::Object(_) => {
            let key = |step: String| step.strip_prefix("f:").map(ToOwned::to_owned);
            let fields = found.into_iter().filter_map(|(step, it)| Some((key(step)?, it)));
            Some(Value::Object(fields.collect()))
        }
        Value::Array(_) => Some(Value::Array(found.into_iter().map(|(_, it)| it).collect())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(value.clone()),
    }
}

/// As much of a tree as is there in a value.
pub(super) fn keep(tree: &Value, value: &Value) -> Option<Value> {
    let steps = tree.as_object()?;
    if steps.is_empty() {
        return Some(tree.clone());
    }
    let mut kept = Map::new();
    for (step, below) in steps {
        if step == ITSELF {
            kept.insert(step.clone(), below.clone());
        } else if let Some(found) = value_at(value, &[step.as_str()]) {
            kept.extend(keep(below, found).map(|below| (step.clone(), below)));
        }
    }
    (!kept.is_empty()).then_some(Value::Object(kept))
}

/// The tree that names what `words` say and `live` says, too, in a part of the hub's version.
pub(super) fn named(kind: &Kind, part: &str, words: &Value, live: &Value) -> Option<Value> {
    let versions = kind.hub().crd().spec.versions;
    let schema = versions.into_iter().next()?.schema?.open_api_v3_schema?;
    name(words, live, schema.properties?.get(part)?)
}

fn name(words: &Value, live: &Value, schema: &JSONSchemaProps) -> Option<Value> {
    match (words, live) {
        (Value::Object(words), Value::Object(live)) if is_granular(schema) => {
            let below = |(key, words): (&String, &Value)| {
                Some((format!("f:{key}"), name(words, live.get(key)?, field(schema, key)?)?))
            };
            let tree: Map<String, Value> = words.iter().filter_map(below).collect();
            (!tree.is_empty() || (words.is_empty() && live.is_empty()))
                .then_some(Value::Object(tree))
        }
        (Value::Array(words), Value::Array(live)) => {
            match schema.x_kubernetes_list_type.as_deref() {
                Some("map") => items(words, live, schema),
                Some("set") => {
                    let there = words.iter().filter(|word| live.contains(word));
                    let tree: Map<String, Value> =
                        there.map(|word| (format!("v:{word}"), json!({}))).collect();
                    (!tree.is_empty()).then_some(Value::Object(tree))
                }
                Some(_) | None => (words == live).then(|| json!({})),
            }
        }
        (words, live) => (words == live).then(|| json!({})),
    }
}

/// The items of a list by their keys.
fn items(words: &[Value], live: &[Value], schema: &JSONSchemaProps) -> Option<Value> {
    let Some(JSONSchemaPropsOrArray::Schema(of_item)) = &schema.items else { return None };
    let keys = schema.x_kubernetes_list_map_keys.as_ref()?;
    let mut tree = Map::new();
    for word in words {
        let key = |key: &String| Some((key.clone(), word.get(key)?.clone()));
        let Some(called) = keys.iter().map(key).collect::<Option<Map<String, Value>>>() else {
            continue;
        };
        let is_it = |item: &&Value| called.iter().all(|(key, it)| item.get(key) == Some(it));
        let Some(mut below) = live.iter().find(is_it).and_then(|it| name(word, it, of_item)) else {
            continue;
        };
        if let Value::Object(below) = &mut below {
            below.insert(ITSELF.to_owned(), json!({}));
        }
        tree.insert(format!("k:{}", Value::Object(called)), below);
    }
    (!tree.is_empty()).then_some(Value::Object(tree))
}

fn is_granular(schema: &JSONSchemaProps) -> bool {
    schema.x_kubernetes_map_type.as_deref() != Some(ATOMIC)
        && (schema.properties.is_some() || schema.additional_properties.is_some())
}

fn field<'s>(schema: &'s JSONSchemaProps, key: &str) -> Option<&'s JSONSchemaProps> {
    let named = schema.properties.as_ref().and_then(|all| all.get(key));
    named.or_else(|| match schema.additional_properties.as_ref()? {
        JSONSchemaPropsOrBool::Schema(any) => Some(any.as_ref()),
        JSONSchemaPropsOrBool::Bool(_) => None,
    })
}

/// Adds a tree to another.
pub(super) fn merge(into: &mut Value, from: &Value) {
    let (Value::Object(into), Value::Object(from)) = (into, from) else { return };
    for (step, below) in from {
        match into.get_mut(step) {
            Some(there) => merge(there, below),
            None => drop(into.insert(step.clone(), below.clone())),
        }
    }
}
