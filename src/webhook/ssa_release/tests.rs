//! Managers that release fields, beside managers that use older versions.

use serde_json::json;

use super::*;
use crate::api::kinds;

const GROUP: &str = "etcd.appdelivery.cncf.io";

/// An entry of the managed fields.
fn entry(manager: &str, operation: &str, version: &str, spec: &Value) -> Value {
    json!({
        "manager": manager, "operation": operation, "apiVersion": format!("{GROUP}/{version}"),
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": spec},
    })
}

fn cluster(spec: &Value, entries: &[Value]) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "EtcdCluster",
        "metadata": {"name": "main", "managedFields": entries}, "spec": spec,
    })
}

fn spec() -> Value {
    json!({
        "replicas": 3, "version": "3.6.16",
        "options": {"snapshotCount": 20000, "heartbeatMilliseconds": 200},
        "repair": {"replaceAfterSeconds": 900},
    })
}

/// A manager that uses v1alpha1.
fn v1alpha1_entry() -> Value {
    entry("old", "Apply", "v1alpha1", &json!({"f:size": {}, "f:version": {}}))
}

fn options_and_repair() -> Value {
    entry(
        "new",
        "Apply",
        "v1",
        &json!({
            "f:options": {"f:snapshotCount": {}, "f:heartbeatMilliseconds": {}},
            "f:repair": {"f:replaceAfterSeconds": {}},
        }),
    )
}

fn without(old: &Value, new: &Value, manager: &str) -> Option<Value> {
    without_released_fields(&kinds::ETCD_CLUSTER, old, new, manager)
}

#[test]
fn released_fields_without_owner_are_removed_with_their_empty_block() {
    let old = cluster(&spec(), &[v1alpha1_entry(), options_and_repair()]);
    let fewer = entry("new", "Apply", "v1", &json!({"f:options": {"f:heartbeatMilliseconds": {}}}));
    let new = cluster(&spec(), &[v1alpha1_entry(), fewer]);
    let left = without(&old, &new, "new").unwrap();
    assert_eq!(left["options"], json!({"heartbeatMilliseconds": 200}));
    assert_eq!(left.get("repair"), None);
    assert_eq!(left["replicas"], 3);
    assert_eq!(without(&old, &new, "old"), None, "a manager that released nothing loses nothing");
    assert_eq!(without(&old, &new, "another"), None);
}

#[test]
fn field_owned_by_another_manager_stays_in_any_version() {
    let own_entry = entry("new", "Apply", "v1", &json!({"f:replicas": {}, "f:version": {}}));
    let fewer = entry("new", "Apply", "v1", &json!({"f:version": {}}));
    let size = entry("scaler", "Update", "v1alpha1", &json!({"f:size": {}}));
    let replicas = entry("scaler", "Update", "v1", &json!({"f:replicas": {}}));
    for other in [size, replicas] {
        let old = cluster(&spec(), &[own_entry.clone(), other.clone()]);
        let new = cluster(&spec(), &[fewer.clone(), other]);
        assert_eq!(without(&old, &new, "new"), None);
    }
}

#[test]
fn one_field_that_must_stay_does_not_keep_the_others() {
    let own_entry =
        json!({"f:replicas": {}, "f:version": {}, "f:repair": {"f:replaceAfterSeconds": {}}});
    let old = cluster(&spec(), &[v1alpha1_entry(), entry("new", "Apply", "v1", &own_entry)]);
    let rest = entry("new", "Apply", "v1", &json!({"f:options": {"f:snapshotCount": {}}}));
    let left = without(&old, &cluster(&spec(), &[v1alpha1_entry(), rest]), "new").unwrap();
    assert_eq!(left.get("repair"), None);
    assert_eq!((&left["replicas"], &left["version"]), (&json!(3), &json!("3.6.16")));
}

#[test]
fn managed_fields_that_no_apply_can_produce_release_nothing() {
    let old = cluster(&spec(), &[v1alpha1_entry(), options_and_repair()]);
    let fewer = entry("new", "Apply", "v1", &json!({"f:repair": {"f:replaceAfterSeconds": {}}}));
    let nothing_released = |entries: &[Value], case: &str| {
        assert_eq!(without(&old, &cluster(&spec(), entries), "new"), None, "{case}");
    };
    nothing_released(&[v1alpha1_entry()], "the entry was removed");
    nothing_released(&[], "the managed fields were reset");
    let relabelled = entry("old", "Apply", "v1beta1", &json!({"f:size": {}, "f:version": {}}));
    nothing_released(&[relabelled.clone(), fewer.clone()], "another manager changed its version");
    let grown = json!({"f:size": {}, "f:version": {}, "f:paused": {}});
    nothing_released(
        &[entry("old", "Apply", "v1alpha1", &grown), fewer.clone()],
        "another manager owns more fields",
    );
    let other = entry("other", "Update", "v1", &json!({"f:paused": {}}));
    nothing_released(&[v1alpha1_entry(), other, fewer.clone()], "another manager was added");
    let mut own_entry = options_and_repair();
    own_entry["apiVersion"] = json!(format!("{GROUP}/v1beta1"));
    nothing_released(&[relabelled, own_entry], "the same fields in another version");
    assert!(without(&old, &cluster(&spec(), &[v1alpha1_entry(), fewer]), "new").is_some());
}

#[test]
fn with_one_version_the_api_server_has_already_removed_released_fields() {
    let old = cluster(&spec(), &[options_and_repair()]);
    let fewer = entry("new", "Apply", "v1", &json!({"f:options": {"f:snapshotCount": {}}}));
    assert_eq!(without(&old, &cluster(&spec(), std::slice::from_ref(&fewer)), "new"), None);
    // A manager with an older version makes the difference, whatever fields it owns.
    let other = json!({"manager": "x", "operation": "Update", "fieldsV1": {"f:metadata": {}},
        "apiVersion": format!("{GROUP}/v1alpha1")});
    assert!(without(&old, &cluster(&spec(), &[fewer, other]), "new").is_some());
}

#[test]
fn block_that_cannot_be_removed_completely_stays_complete() {
    let mut tls = spec();
    tls["tls"] = json!({"client": {"source": "Managed"}, "peer": {"source": "Managed"}});
    let both = json!({"f:tls": {"f:client": {"f:source": {}}, "f:peer": {"f:source": {}}},
        "f:repair": {"f:replaceAfterSeconds": {}}, "f:version": {}});
    let tls_entry = entry("old", "Apply", "v1beta1", &json!({"f:tls": {}}));
    let old = cluster(&tls, &[tls_entry.clone(), entry("new", "Apply", "v1", &both)]);
    let fewer = entry("new", "Apply", "v1", &json!({"f:version": {}}));
    let left = without(&old, &cluster(&tls, &[tls_entry, fewer]), "new").unwrap();
    assert_eq!((&left["tls"], left.get("repair")), (&tls["tls"], None));
}

#[test]
fn owning_an_empty_block_does_not_keep_its_fields() {
    let old = cluster(&spec(), &[v1alpha1_entry(), options_and_repair()]);
    let empty = json!({"f:options": {}, "f:repair": {"f:replaceAfterSeconds": {}}});
    let new = cluster(&spec(), &[v1alpha1_entry(), entry("new", "Apply", "v1", &empty)]);
    assert_eq!(without(&old, &new, "new").unwrap()["options"], json!({}));
}

#[test]
fn managed_fields_beyond_the_limit_are_ignored() {
    let fewer = entry("new", "Apply", "v1", &json!({"f:version": {}}));
    let with = |first: Value, many: usize| {
        let others = (0..many)
            .map(|index| entry(&format!("x{index}"), "Apply", "v1alpha1", &json!({"f:size": {}})));
        cluster(&spec(), &std::iter::once(first).chain(others).collect::<Vec<_>>())
    };
    let released =
        |many| without(&with(options_and_repair(), many), &with(fewer.clone(), many), "new");
    assert!(released(63).is_some());
    assert_eq!(released(64), None);
}

#[test]
fn changed_field_is_not_released() {
    let old = cluster(&spec(), &[v1alpha1_entry(), options_and_repair()]);
    let mut changed = spec();
    changed["repair"]["replaceAfterSeconds"] = json!(600);
    let fewer = entry("new", "Apply", "v1", &json!({"f:options": {"f:snapshotCount": {}}}));
    let new = cluster(&changed, &[v1alpha1_entry(), fewer]);
    let left = without(&old, &new, "new").unwrap();
    assert_eq!(left["repair"], json!({"replaceAfterSeconds": 600}));
    assert_eq!(left["options"], json!({"snapshotCount": 20000}));
}

#[test]
fn manager_that_changes_its_version_keeps_its_fields() {
    let old = cluster(&spec(), &[v1alpha1_entry()]);
    let moved = entry("old", "Apply", "v1", &json!({"f:replicas": {}, "f:version": {}}));
    assert_eq!(without(&old, &cluster(&spec(), &[moved]), "old"), None);
    // One field is not in the new entry.
    let moved = entry("old", "Apply", "v1", &json!({"f:version": {}}));
    let left = without(&old, &cluster(&spec(), &[moved]), "old").unwrap();
    assert_eq!((left.get("replicas"), &left["version"]), (None, &json!("3.6.16")));
}

#[test]
fn unreadable_managed_fields_and_unknown_versions_release_nothing() {
    let fewer = entry("new", "Apply", "v1", &json!({"f:version": {}}));
    for other in [
        entry("x", "Update", "v9", &json!({"f:size": {}})),
        json!({"manager": "x", "fieldsV1": "nonsense"}),
        json!(null),
    ] {
        let old = cluster(&spec(), &[options_and_repair(), other.clone()]);
        let new = cluster(&spec(), &[fewer.clone(), other.clone()]);
        assert_eq!(without(&old, &new, "new"), None, "{other}");
    }
}
