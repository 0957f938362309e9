//! Admissions that no apiserver sends every day; those that it does are in `tests/reviews`.

use serde_json::{Map, json};

use super::*;
use crate::api::names::PROTECTED_ANNOTATION;
use crate::webhook::review::admission;

const GROUP: &str = "etcd.appdelivery.cncf.io";

fn now() -> Timestamp {
    "2026-11-16T06:00:00Z".parse().unwrap()
}

fn cluster(version: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/{version}"), "kind": "EtcdCluster",
        "metadata": {"name": "main"}, "spec": spec,
    })
}

/// A review about a cluster in this version, with these fields besides.
fn review(version: &str, operation: &str, fields: &Value) -> Vec<u8> {
    let kind = json!({"group": GROUP, "version": version, "kind": "EtcdCluster"});
    let mut request = json!({"uid": "7", "kind": kind, "operation": operation, "name": "main"});
    request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let review =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    serde_json::to_vec(&review).unwrap()
}

fn mutated(body: &[u8]) -> Ruling {
    mutate(&admission(body).unwrap(), now())
}

fn validated(body: &[u8]) -> Ruling {
    validate(&admission(body).unwrap(), now())
}

/// The object with the patch of the ruling.
fn patched(ruling: &Ruling, object: &Value) -> Value {
    let Ruling::Allowed { patch: Some(patch), warnings } = ruling else { panic!("{ruling:?}") };
    assert!(warnings.is_empty(), "only the validator warns: {warnings:?}");
    let mut object = object.clone();
    json_patch::patch(&mut object, patch).unwrap();
    object
}

/// The words of a refusal.
fn refused(ruling: &Ruling) -> Value {
    let Ruling::Denied(refusal) = ruling else { panic!("{ruling:?}") };
    serde_json::to_value(refusal).unwrap()
}

#[test]
fn a_patch_applies_and_a_second_run_has_none() {
    let object = cluster("v1", &json!({"version": "3.6.16", "storage": {"className": "fast"}}));
    let once = patched(&mutated(&review("v1", "CREATE", &json!({"object": object}))), &object);
    assert_eq!(
        once["spec"]["storage"],
        json!({"className": "fast", "medium": "Disk", "size": "10Gi"})
    );
    assert_eq!(mutated(&review("v1", "CREATE", &json!({"object": once}))), Ruling::UNTOUCHED);
}

#[test]
fn what_this_release_does_not_know_survives_the_mutator() {
    // Stored by a newer release, which this one was rolled back from.
    let old = cluster("v1", &json!({"version": "3.6.16", "colour": {"of": "the bikeshed"}}));
    let mut new = old.clone();
    new["spec"]["paused"] = json!(true);
    new["metadata"]["labels"] = json!({"a": "b"});
    let ruling = mutated(&review("v1", "UPDATE", &json!({"object": new, "oldObject": old})));
    let made = patched(&ruling, &new);
    assert_eq!(made["spec"]["colour"], old["spec"]["colour"]);
    assert_eq!(made["spec"]["replicas"], 3);
    assert_eq!(made["metadata"], new["metadata"]);
}

#[test]
fn an_object_that_did_not_come_in_the_hub_is_judged_and_not_patched() {
    let good = cluster("v1beta1", &json!({"version": "3.6.16"}));
    assert_eq!(mutated(&review("v1beta1", "CREATE", &json!({"object": good}))), Ruling::UNTOUCHED);
    let bad = cluster("v1beta1", &json!({"version": "3.6.16", "size": 9}));
    let body = review("v1beta1", "CREATE", &json!({"object": bad}));
    for ruling in [mutated(&body), validated(&body)] {
        assert_eq!(refused(&ruling)["details"]["causes"][0]["field"], "spec.size");
    }
}

#[test]
fn a_spec_that_is_not_there_is_not_made() {
    let old = cluster("v1", &json!({"version": "3.6.16", "deletionPolicy": "Disconnect"}));
    let mut old = old;
    old["metadata"]["deletionTimestamp"] = json!("2026-11-16T05:00:00Z");
    let mut new = old.clone();
    new.as_object_mut().unwrap().remove("spec");
    let fields = json!({"object": new, "oldObject": old, "requestKind": {"group": GROUP, "version": "v1beta1", "kind": "EtcdCluster"}});
    assert_eq!(mutated(&review("v1", "UPDATE", &fields)), Ruling::UNTOUCHED);
}

#[test]
fn what_is_not_known_is_let_through() {
    let mut bad = cluster("v1", &json!({"replicas": 99}));
    bad["metadata"]["annotations"] = json!({PROTECTED_ANNOTATION: "true"});
    let known = json!({"group": GROUP, "version": "v1", "kind": "EtcdCluster"});
    for (version, operation, fields) in [
        ("v9", "CREATE", json!({"object": bad})),
        ("v1", "CONNECT", json!({"object": bad})),
        ("v1", "DANCE", json!({"object": bad})),
        ("v1", "CREATE", json!({"object": bad, "subResource": "status"})),
        ("v1", "UPDATE", json!({"object": bad, "oldObject": bad, "subResource": "other"})),
        ("v1", "DELETE", json!({"oldObject": null})),
        ("v1", "DELETE", json!({"oldObject": bad, "subResource": "status"})),
        (
            "v1",
            "CREATE",
            json!({"kind": {"group": "apps", "version": "v1", "kind": "EtcdCluster"}}),
        ),
        ("v1", "CREATE", json!({"kind": {"group": GROUP, "version": "v1", "kind": "Other"}})),
    ] {
        let body = review(version, operation, &fields);
        assert_eq!(mutated(&body), Ruling::UNTOUCHED, "{version} {operation} {fields}");
        assert_eq!(validated(&body), Ruling::UNTOUCHED, "{version} {operation} {fields}");
    }
    // So that the others prove something.
    let body = review("v1", "CREATE", &json!({"object": bad, "kind": known}));
    assert_eq!(refused(&mutated(&body))["code"], 422);
    assert_eq!(refused(&validated(&body))["code"], 422);
    let body = review("v1", "DELETE", &json!({"oldObject": bad}));
    assert_eq!(refused(&validated(&body))["code"], 403);
}

#[test]
fn an_object_that_is_not_what_it_announces_is_refused() {
    let app = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ExampleApp", "spec": {}});
    let beta = cluster("v1beta1", &json!({"version": "3.6.16"}));
    let good = cluster("v1", &json!({"version": "3.6.16"}));
    for (operation, fields, says) in [
        ("CREATE", json!({}), "object of the review is missing"),
        ("CREATE", json!({"object": 5}), "object of the review is not the EtcdCluster"),
        ("CREATE", json!({"object": app}), "object of the review is not the EtcdCluster"),
        ("CREATE", json!({"object": beta}), "object of the review is not the EtcdCluster"),
        ("UPDATE", json!({"object": good}), "oldObject of the review is missing"),
        ("UPDATE", json!({"object": good, "oldObject": beta}), "oldObject of the review is not"),
    ] {
        let body = review("v1", operation, &fields);
        for ruling in [mutated(&body), validated(&body)] {
            let refused = refused(&ruling);
            assert_eq!((&refused["code"], &refused["reason"]), (&json!(400), &json!("BadRequest")));
            let message = refused["message"].as_str().unwrap();
            assert!(message.starts_with(says), "{operation} {fields}: {message}");
        }
    }
}

#[test]
fn an_object_that_is_nested_too_deep_is_refused() {
    let mut spec = json!({});
    for _ in 0..100 {
        spec = json!([[spec]]);
    }
    let body = review("v1", "CREATE", &json!({"object": cluster("v1", &spec)}));
    for ruling in [mutated(&body), validated(&body)] {
        let refused = refused(&ruling);
        assert_eq!(refused["code"], 400);
        assert!(refused["message"].as_str().unwrap().contains("recursion limit"), "{refused}");
    }
}

#[test]
fn without_a_request_kind_the_user_wrote_what_came() {
    let old = cluster("v1", &json!({"version": "3.6.16", "deletionPolicy": "Disconnect"}));
    let new = cluster("v1", &json!({"version": "3.6.16", "paused": true}));
    let made =
        patched(&mutated(&review("v1", "UPDATE", &json!({"object": new, "oldObject": old}))), &new);
    assert_eq!(made["spec"]["deletionPolicy"], "Retain");
}

#[test]
fn nulls_say_nothing_and_lists_are_compared_whole() {
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    for (one, other, equal) in [
        (r#"{"a":1,"b":null}"#, r#"{"a":1}"#, true),
        (r#"{"a":{"b":null}}"#, r#"{"a":{}}"#, true),
        (r#"{"a":{}}"#, "{}", false),
        (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#, false),
        (r#"{"a":1}"#, r#"{"a":2}"#, false),
        ("null", "null", true),
    ] {
        let (one, other) = (value(one), value(other));
        assert_eq!(same(Some(&one), Some(&other)), equal, "{one} {other}");
        assert_eq!(same(Some(&other), Some(&one)), equal, "{other} {one}");
    }
    assert!(same(None, Some(&Value::Null)));
    assert!(!same(None, Some(&Value::Object(Map::new()))));
}

#[test]
fn a_status_may_lose_and_not_gain() {
    let body = |status: &Value| {
        let mut old = cluster("v1", &json!({"version": "3.6.16"}));
        old["status"] = json!({
            "replicas": 2, "backup": {"location": "x", "version": "3.6.16"},
            "members": [{"name": "a", "healthy": true, "id": "1"}, {"name": "b", "healthy": false}],
        });
        let mut new = old.clone();
        new["status"] = status.clone();
        let through = json!({"group": GROUP, "version": "v1alpha1", "kind": "EtcdCluster"});
        let fields = json!({"object": new, "oldObject": old, "requestKind": through});
        review("v1", "UPDATE", &fields)
    };
    for fine in [
        json!(null),
        json!({}),
        json!({"replicas": 2}),
        json!({"backup": {"location": "x"}, "leader": null}),
        json!({"members": [{"name": "b", "healthy": false}, {"name": "a", "healthy": true}]}),
    ] {
        assert_eq!(validated(&body(&fine)), Ruling::UNTOUCHED, "{fine}");
    }
    for (foreign, place) in [
        (json!({"replicas": 3}), "`status.replicas`"),
        (json!({"leader": "a"}), "`status.leader`"),
        (json!({"backup": {"location": "y"}}), "`status.backup.location`"),
        (json!({"members": [{"name": "a", "healthy": false}]}), "`status.members`"),
        (json!("odd"), "`status`"),
    ] {
        let refused = refused(&validated(&body(&foreign)));
        assert_eq!(refused["details"]["causes"][0]["field"], "status");
        assert!(refused["message"].as_str().unwrap().contains(place), "{refused}");
    }
}
