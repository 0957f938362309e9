//! What owners of an older version own in the hub's.

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

fn object(owners: &[Value]) -> Value {
    json!({
        "apiVersion": "etcd.appdelivery.cncf.io/v1", "kind": "EtcdCluster",
        "metadata": { "name": "main", "managedFields": owners },
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
fn owners_that_speak_a_served_version_are_left_alone() {
    let object = object(&[entry("a", "v1alpha1", &alpha())]);
    assert_eq!(rewritten(cluster(), &object, &served(&["v1", "v1alpha1"])), None);
}

#[test]
fn an_owner_keeps_what_they_own_under_the_names_of_the_hub() {
    let object = object(&[entry("a", "v1alpha1", &alpha())]);
    let list = rewritten(cluster(), &object, &served(&["v1"])).unwrap();
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
fn what_an_owner_could_not_say_does_not_become_theirs() {
    let all = json!({ "f:spec": { "f:repository": {} } });
    let object = object(&[entry("a", "v1alpha1", &all)]);
    let list = rewritten(cluster(), &object, &served(&["v1"])).unwrap();
    let expected = json!({ "f:spec": { "f:image": { "f:repository": {} } } });
    assert_eq!(list[0]["fieldsV1"], expected, "pullPolicy is somebody else's");
}

#[test]
fn two_entries_of_one_owner_become_one_and_others_stay_as_they_are() {
    let object = object(&[
        entry("a", "v1beta1", &json!({ "f:spec": { "f:size": {} } })),
        entry("b", "v1", &json!({ "f:spec": { "f:version": {} } })),
        entry("a", "v1alpha1", &json!({ "f:spec": { "f:repository": {} } })),
    ]);
    let list = rewritten(cluster(), &object, &served(&["v1"])).unwrap();
    let both = json!({ "f:spec": { "f:replicas": {}, "f:image": { "f:repository": {} } } });
    let other = entry("b", "v1", &json!({ "f:spec": { "f:version": {} } }));
    assert_eq!(list, [entry("a", "v1", &both), other]);
}

#[test]
fn of_a_version_that_nobody_knows_any_more_what_has_the_same_name_stays() {
    let fields = json!({ "f:spec": { "f:version": {}, "f:members": {} } });
    let object = object(&[entry("a", "v1alpha0", &fields)]);
    let list = rewritten(cluster(), &object, &served(&["v1"])).unwrap();
    assert_eq!(list, [entry("a", "v1", &json!({ "f:spec": { "f:version": {} } }))]);
}

#[test]
fn an_empty_list_is_never_written() {
    let fields = json!({ "f:spec": { "f:members": {} } });
    let object = object(&[entry("a", "v1alpha0", &fields)]);
    assert_eq!(rewritten(cluster(), &object, &served(&["v1"])), None);
}
