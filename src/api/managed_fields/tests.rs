//! Managed fields as written by the API server, and as a hostile client might write them.

use serde_json::json;

use super::*;

fn object(fields: &Value) -> Value {
    json!({"metadata": {"managedFields": [
        {"manager": "a", "operation": "Apply", "apiVersion": "g/v1", "fieldsV1": fields},
        {"manager": "b", "operation": "Update", "apiVersion": "g/v1", "subresource": "status",
         "fieldsV1": {"f:status": {}}},
    ]}})
}

#[test]
fn entries_of_the_spec_are_read_with_their_fields() {
    let object = object(&json!({"f:spec": {
        "f:replicas": {},
        "f:options": {".": {}, "f:snapshotCount": {}},
        "f:items": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}, "f:size": {}}},
    }}));
    let managed = managed_fields(&object).unwrap();
    assert_eq!(managed.of_spec().count(), 1, "an entry of the status is not one of the spec");
    let entry = managed.of_spec().next().unwrap();
    assert!(entry.is_applied_by("a") && !entry.is_applied_by("b"));
    let item = "k:{\"name\":\"x\"}";
    let paths = entry.fields.paths();
    let expected: [&[&str]; 5] = [
        &["f:items", item],
        &["f:items", item, "f:name"],
        &["f:items", item, "f:size"],
        &["f:options", "f:snapshotCount"],
        &["f:replicas"],
    ];
    assert_eq!(paths, expected);
    for (path, contained) in [
        (&["f:replicas"][..], true),
        (&["f:options"], true),
        (&["f:options", "f:other"], false),
        (&["f:replicas", "f:part"], false),
        (&["f:version"], false),
    ] {
        assert_eq!(entry.fields.contains(path), contained, "{path:?}");
    }
}

#[test]
fn unreadable_managed_fields_are_none() {
    for fields in [json!(5), json!({"f:spec": "all"})] {
        assert!(managed_fields(&object(&fields)).is_none(), "{fields}");
    }
    assert!(managed_fields(&json!({})).is_none());
    assert!(managed_fields(&json!({"metadata": {"managedFields": {}}})).is_none());
}

#[test]
fn path_selects_a_key_an_item_a_value_or_an_index() {
    let spec = json!({"a": {"b": 1}, "items": [{"name": "x", "n": 2}], "set": ["p", "q"]});
    for (path, value) in [
        (&["f:a", "f:b"][..], Some(json!(1))),
        (&["f:items", "k:{\"name\":\"x\"}", "f:n"], Some(json!(2))),
        (&["f:items", "k:{\"name\":\"y\"}"], None),
        (&["f:set", "v:\"q\""], Some(json!("q"))),
        (&["f:set", "v:broken"], None),
        (&["f:set", "i:0"], Some(json!("p"))),
        (&["f:set", "i:7"], None),
        (&["f:a", "x:b"], None),
        (&["f:a", "b"], None),
        (&["f:set", "f:b"], None),
    ] {
        assert_eq!(value_at(&spec, path), value.as_ref(), "{path:?}");
    }
}

#[test]
fn removed_field_removes_its_empty_parents_unless_they_are_owned() {
    let spec = json!({"a": {"b": {"c": 1}, "d": 2}, "items": [{"name": "x"}]});
    let without = |path: &[&str], owned: &[&str]| {
        let mut spec = spec.clone();
        remove_field(&mut spec, path, &|enclosing| enclosing == owned);
        spec
    };
    assert_eq!(without(&["f:a", "f:b", "f:c"], &[])["a"], json!({"d": 2}));
    assert_eq!(without(&["f:a", "f:b", "f:c"], &["f:a", "f:b"])["a"], json!({"b": {}, "d": 2}));
    assert_eq!(without(&["f:items", "k:{\"name\":\"x\"}"], &[]).get("items"), None);
    assert_eq!(without(&["f:nowhere", "f:c"], &[]), spec);
    assert_eq!(without(&[], &[]), spec);
}
