//! Managed fields of older versions in the hub version.

use super::*;
use crate::api::kinds;

fn cluster() -> &'static Kind {
    kinds::by_name("EtcdCluster").unwrap()
}

fn entry(manager: &str, version: &str, fields: &Value) -> Value {
    json!({
        "manager": manager, "operation": "Apply", "apiVersion": format!("etcd.appdelivery.cncf.io/{version}"),
        "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields,
    })
}

fn object(entries: &[Value]) -> Value {
    json!({
        "apiVersion": "etcd.appdelivery.cncf.io/v1", "kind": "EtcdCluster",
        "metadata": { "name": "main", "managedFields": entries },
        "spec": {
            "replicas": 3, "version": "3.6.16",
            "image": { "repository": "example.org/etcd", "pullPolicy": "Always" },
            "storage": { "size": "10Gi" },
            "placement": { "nodeSelector": { "disk": "fast", "zone": "a" } },
        },
    })
}

fn served(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn alpha() -> Value {
    json!({
        "f:metadata": { "f:labels": { "f:team": {} } },
        "f:spec": {
            "f:size": {}, "f:repository": {},
            "f:pod": {
                "f:nodeSelector": { "f:disk": {} },
                "f:persistentVolumeClaimSpec": { "f:resources": { "f:requests": { "f:storage": {} } } },
            },
        },
    })
}

#[test]
fn managers_of_a_served_version_are_unchanged() {
    let object = object(&[entry("a", "v1alpha1", &alpha())]);
    assert_eq!(migrate_managers(cluster(), &object, &served(&["v1", "v1alpha1"])), None);
}

#[test]
fn manager_keeps_its_fields_under_their_hub_names() {
    let object = object(&[entry("a", "v1alpha1", &alpha())]);
    let list = migrate_managers(cluster(), &object, &served(&["v1"])).unwrap();
    let expected = json!({
        "f:metadata": { "f:labels": { "f:team": {} } },
        "f:spec": {
            "f:replicas": {},
            "f:image": { "f:repository": {} },
            "f:placement": { "f:nodeSelector": { "f:disk": {} } },
            "f:storage": { "f:size": {} },
        },
    });
    assert_eq!(list, [entry("a", "v1", &expected)]);
}

#[test]
fn manager_does_not_gain_fields_that_its_version_lacks() {
    let all = json!({ "f:spec": { "f:repository": {} } });
    let object = object(&[entry("a", "v1alpha1", &all)]);
    let list = migrate_managers(cluster(), &object, &served(&["v1"])).unwrap();
    let expected = json!({ "f:spec": { "f:image": { "f:repository": {} } } });
    assert_eq!(list[0]["fieldsV1"], expected, "pullPolicy has another manager");
}

#[test]
fn two_entries_of_one_manager_are_joined_and_other_entries_are_unchanged() {
    let object = object(&[
        entry("a", "v1beta1", &json!({ "f:spec": { "f:size": {} } })),
        entry("b", "v1", &json!({ "f:spec": { "f:version": {} } })),
        entry("a", "v1alpha1", &json!({ "f:spec": { "f:repository": {} } })),
    ]);
    let list = migrate_managers(cluster(), &object, &served(&["v1"])).unwrap();
    let both = json!({ "f:spec": { "f:replicas": {}, "f:image": { "f:repository": {} } } });
    let other = entry("b", "v1", &json!({ "f:spec": { "f:version": {} } }));
    assert_eq!(list, [entry("a", "v1", &both), other]);
}

#[test]
fn fields_of_an_unknown_version_are_kept_if_their_names_exist() {
    let fields = json!({ "f:spec": { "f:version": {}, "f:members": {} } });
    let object = object(&[entry("a", "v1alpha0", &fields)]);
    let list = migrate_managers(cluster(), &object, &served(&["v1"])).unwrap();
    assert_eq!(list, [entry("a", "v1", &json!({ "f:spec": { "f:version": {} } }))]);
}

#[test]
fn empty_list_is_never_written() {
    let fields = json!({ "f:spec": { "f:members": {} } });
    let object = object(&[entry("a", "v1alpha0", &fields)]);
    assert_eq!(migrate_managers(cluster(), &object, &served(&["v1"])), None);
}
