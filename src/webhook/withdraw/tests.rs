//! Managers that withdraw something, beside others that speak older versions.

use serde_json::json;

use super::*;
use crate::api::kinds;

const GROUP: &str = "etcd.appdelivery.cncf.io";

/// An entry of the list of owners.
fn owner(manager: &str, operation: &str, version: &str, spec: &Value) -> Value {
    json!({
        "manager": manager, "operation": operation, "apiVersion": format!("{GROUP}/{version}"),
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": spec},
    })
}

fn cluster(spec: &Value, owners: &[Value]) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "EtcdCluster",
        "metadata": {"name": "main", "managedFields": owners}, "spec": spec,
    })
}

fn spec() -> Value {
    json!({
        "replicas": 3, "version": "3.6.16",
        "options": {"snapshotCount": 20000, "heartbeatMilliseconds": 200},
        "repair": {"replaceAfterSeconds": 900},
    })
}

/// Somebody who speaks v1alpha1.
fn old_school() -> Value {
    owner("old", "Apply", "v1alpha1", &json!({"f:size": {}, "f:version": {}}))
}

fn options_and_repair() -> Value {
    owner(
        "new",
        "Apply",
        "v1",
        &json!({
            "f:options": {"f:snapshotCount": {}, "f:heartbeatMilliseconds": {}},
            "f:repair": {"f:replaceAfterSeconds": {}},
        }),
    )
}

fn without(old: &Value, new: &Value, applier: &str) -> Option<Value> {
    without_withdrawn(&kinds::ETCD_CLUSTER, old, new, applier)
}

#[test]
fn what_an_applier_withdrew_and_nobody_owns_goes_with_the_block_that_it_leaves_empty() {
    let old = cluster(&spec(), &[old_school(), options_and_repair()]);
    let fewer = owner("new", "Apply", "v1", &json!({"f:options": {"f:heartbeatMilliseconds": {}}}));
    let new = cluster(&spec(), &[old_school(), fewer]);
    let left = without(&old, &new, "new").unwrap();
    assert_eq!(left["options"], json!({"heartbeatMilliseconds": 200}));
    assert_eq!(left.get("repair"), None);
    assert_eq!(left["replicas"], 3);
    assert_eq!(without(&old, &new, "old"), None, "who withdrew nothing loses nothing");
    assert_eq!(without(&old, &new, "another"), None);
}

#[test]
fn what_somebody_else_owns_stays_in_whichever_version_they_say_it() {
    let mine = owner("new", "Apply", "v1", &json!({"f:replicas": {}, "f:version": {}}));
    let fewer = owner("new", "Apply", "v1", &json!({"f:version": {}}));
    let size = owner("scaler", "Update", "v1alpha1", &json!({"f:size": {}}));
    let replicas = owner("scaler", "Update", "v1", &json!({"f:replicas": {}}));
    for other in [size, replicas] {
        let old = cluster(&spec(), &[mine.clone(), other.clone()]);
        let new = cluster(&spec(), &[fewer.clone(), other]);
        assert_eq!(without(&old, &new, "new"), None);
    }
}

#[test]
fn one_field_that_cannot_go_does_not_hold_the_others() {
    let mine =
        json!({"f:replicas": {}, "f:version": {}, "f:repair": {"f:replaceAfterSeconds": {}}});
    let old = cluster(&spec(), &[old_school(), owner("new", "Apply", "v1", &mine)]);
    let rest = owner("new", "Apply", "v1", &json!({"f:options": {"f:snapshotCount": {}}}));
    let left = without(&old, &cluster(&spec(), &[old_school(), rest]), "new").unwrap();
    assert_eq!(left.get("repair"), None);
    assert_eq!((&left["replicas"], &left["version"]), (&json!(3), &json!("3.6.16")));
}

#[test]
fn a_list_of_owners_that_no_apply_can_have_made_withdraws_nothing() {
    let old = cluster(&spec(), &[old_school(), options_and_repair()]);
    let fewer = owner("new", "Apply", "v1", &json!({"f:repair": {"f:replaceAfterSeconds": {}}}));
    let nothing = |owners: &[Value], why: &str| {
        assert_eq!(without(&old, &cluster(&spec(), owners), "new"), None, "{why}");
    };
    nothing(&[old_school()], "struck from the list");
    nothing(&[], "the list was made anew");
    let relabelled = owner("old", "Apply", "v1beta1", &json!({"f:size": {}, "f:version": {}}));
    nothing(&[relabelled.clone(), fewer.clone()], "another speaks another version");
    let grown = json!({"f:size": {}, "f:version": {}, "f:paused": {}});
    nothing(&[owner("old", "Apply", "v1alpha1", &grown), fewer.clone()], "another owns more");
    let stranger = owner("stranger", "Update", "v1", &json!({"f:paused": {}}));
    nothing(&[old_school(), stranger, fewer.clone()], "another came along");
    let mut mine = options_and_repair();
    mine["apiVersion"] = json!(format!("{GROUP}/v1beta1"));
    nothing(&[relabelled, mine], "the same fields in another version");
    assert!(without(&old, &cluster(&spec(), &[old_school(), fewer]), "new").is_some());
}

#[test]
fn while_all_speak_one_version_the_apiserver_has_done_it_and_somebody_else_brought_it_back() {
    let old = cluster(&spec(), &[options_and_repair()]);
    let fewer = owner("new", "Apply", "v1", &json!({"f:options": {"f:snapshotCount": {}}}));
    assert_eq!(without(&old, &cluster(&spec(), std::slice::from_ref(&fewer)), "new"), None);
    // Who speaks an older version makes the difference, whatever they own.
    let other = json!({"manager": "x", "operation": "Update", "fieldsV1": {"f:metadata": {}},
        "apiVersion": format!("{GROUP}/v1alpha1")});
    assert!(without(&old, &cluster(&spec(), &[fewer, other]), "new").is_some());
}

#[test]
fn a_block_that_cannot_go_whole_stays_whole() {
    let mut tls = spec();
    tls["tls"] = json!({"client": {"source": "Managed"}, "peer": {"source": "Managed"}});
    let both = json!({"f:tls": {"f:client": {"f:source": {}}, "f:peer": {"f:source": {}}},
        "f:repair": {"f:replaceAfterSeconds": {}}, "f:version": {}});
    let says = owner("old", "Apply", "v1beta1", &json!({"f:tls": {}}));
    let old = cluster(&tls, &[says.clone(), owner("new", "Apply", "v1", &both)]);
    let fewer = owner("new", "Apply", "v1", &json!({"f:version": {}}));
    let left = without(&old, &cluster(&tls, &[says, fewer]), "new").unwrap();
    assert_eq!((&left["tls"], left.get("repair")), (&tls["tls"], None));
}

#[test]
fn a_block_that_is_kept_empty_is_not_what_was_in_it() {
    let old = cluster(&spec(), &[old_school(), options_and_repair()]);
    let empty = json!({"f:options": {}, "f:repair": {"f:replaceAfterSeconds": {}}});
    let new = cluster(&spec(), &[old_school(), owner("new", "Apply", "v1", &empty)]);
    assert_eq!(without(&old, &new, "new").unwrap()["options"], json!({}));
}

#[test]
fn a_long_list_of_owners_is_not_read() {
    let fewer = owner("new", "Apply", "v1", &json!({"f:version": {}}));
    let with = |first: Value, many: usize| {
        let others = (0..many)
            .map(|it| owner(&format!("x{it}"), "Apply", "v1alpha1", &json!({"f:size": {}})));
        cluster(&spec(), &std::iter::once(first).chain(others).collect::<Vec<_>>())
    };
    let tried =
        |many| without(&with(options_and_repair(), many), &with(fewer.clone(), many), "new");
    assert!(tried(63).is_some());
    assert_eq!(tried(64), None);
}

#[test]
fn what_was_changed_meanwhile_is_not_what_was_withdrawn() {
    let old = cluster(&spec(), &[old_school(), options_and_repair()]);
    let mut changed = spec();
    changed["repair"]["replaceAfterSeconds"] = json!(600);
    let fewer = owner("new", "Apply", "v1", &json!({"f:options": {"f:snapshotCount": {}}}));
    let new = cluster(&changed, &[old_school(), fewer]);
    let left = without(&old, &new, "new").unwrap();
    assert_eq!(left["repair"], json!({"replaceAfterSeconds": 600}));
    assert_eq!(left["options"], json!({"snapshotCount": 20000}));
}

#[test]
fn an_applier_that_moves_to_another_version_takes_its_fields_along() {
    let old = cluster(&spec(), &[old_school()]);
    let moved = owner("old", "Apply", "v1", &json!({"f:replicas": {}, "f:version": {}}));
    assert_eq!(without(&old, &cluster(&spec(), &[moved]), "old"), None);
    // One field was not taken along.
    let moved = owner("old", "Apply", "v1", &json!({"f:version": {}}));
    let left = without(&old, &cluster(&spec(), &[moved]), "old").unwrap();
    assert_eq!((left.get("replicas"), &left["version"]), (None, &json!("3.6.16")));
}

#[test]
fn owners_that_cannot_be_read_or_speak_of_unknown_versions_leave_everything_as_it_is() {
    let fewer = owner("new", "Apply", "v1", &json!({"f:version": {}}));
    for stranger in [
        owner("x", "Update", "v9", &json!({"f:size": {}})),
        json!({"manager": "x", "fieldsV1": "nonsense"}),
        json!(null),
    ] {
        let old = cluster(&spec(), &[options_and_repair(), stranger.clone()]);
        let new = cluster(&spec(), &[fewer.clone(), stranger.clone()]);
        assert_eq!(without(&old, &new, "new"), None, "{stranger}");
    }
}
