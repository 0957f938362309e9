//! Owners as the apiserver lists them, and as somebody else might.

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
fn those_who_own_a_part_of_the_spec_are_found_with_their_fields() {
    let object = object(&json!({"f:spec": {
        "f:replicas": {},
        "f:options": {".": {}, "f:snapshotCount": {}},
        "f:items": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}, "f:size": {}}},
    }}));
    let owners = managed_fields(&object).unwrap();
    assert_eq!(owners.of_spec().count(), 1, "who owns only status is no owner of the spec");
    let mine = owners.of_spec().next().unwrap();
    assert!(mine.is_applied_by("a") && !mine.is_applied_by("b"));
    let item = "k:{\"name\":\"x\"}";
    let paths = mine.fields.paths();
    let expected: [&[&str]; 5] = [
        &["f:items", item],
        &["f:items", item, "f:name"],
        &["f:items", item, "f:size"],
        &["f:options", "f:snapshotCount"],
        &["f:replicas"],
    ];
    assert_eq!(paths, expected);
    for (path, touched) in [
        (&["f:replicas"][..], true),
        (&["f:options"], true),
        (&["f:options", "f:other"], false),
        (&["f:replicas", "f:part"], false),
        (&["f:version"], false),
    ] {
        assert_eq!(mine.fields.contains(path), touched, "{path:?}");
    }
}

#[test]
fn a_list_of_owners_that_cannot_be_read_is_none() {
    for fields in [json!(5), json!({"f:spec": "all"})] {
        assert!(managed_fields(&object(&fields)).is_none(), "{fields}");
    }
    assert!(managed_fields(&json!({})).is_none());
    assert!(managed_fields(&json!({"metadata": {"managedFields": {}}})).is_none());
}

#[test]
fn a_path_leads_to_a_key_an_item_a_value_or_an_index() {
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
fn what_is_taken_away_takes_its_empty_blocks_with_it_unless_they_are_owned() {
    let spec = json!({"a": {"b": {"c": 1}, "d": 2}, "items": [{"name": "x"}]});
    let taken = |path: &[&str], owned: &[&str]| {
        let mut spec = spec.clone();
        remove_field(&mut spec, path, &|around| around == owned);
        spec
    };
    assert_eq!(taken(&["f:a", "f:b", "f:c"], &[])["a"], json!({"d": 2}));
    assert_eq!(taken(&["f:a", "f:b", "f:c"], &["f:a", "f:b"])["a"], json!({"b": {}, "d": 2}));
    assert_eq!(taken(&["f:items", "k:{\"name\":\"x\"}"], &[]).get("items"), None);
    assert_eq!(taken(&["f:nowhere", "f:c"], &[]), spec);
    assert_eq!(taken(&[], &[]), spec);
}
