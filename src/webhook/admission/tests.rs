//! Unusual admission requests; the usual ones are in `tests/admission_reviews`.

use serde_json::{Map, json};

use super::*;
use crate::api::names::DELETION_PROTECTION_ANNOTATION;
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

/// A review of a cluster in this version, with additional fields of the request.
fn review(version: &str, operation: &str, fields: &Value) -> Vec<u8> {
    let kind = json!({"group": GROUP, "version": version, "kind": "EtcdCluster"});
    let mut request = json!({"uid": "7", "kind": kind, "operation": operation, "name": "main"});
    request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let review =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    serde_json::to_vec(&review).unwrap()
}

fn mutated(body: &[u8]) -> AdmissionDecision {
    mutate(&admission(body).unwrap(), now())
}

fn validated(body: &[u8]) -> AdmissionDecision {
    validate(&admission(body).unwrap(), now())
}

/// The object with the patch of the decision applied.
fn patched(decision: &AdmissionDecision, object: &Value) -> Value {
    let AdmissionDecision::Allowed { patch: Some(patch), warnings } = decision else {
        panic!("{decision:?}")
    };
    assert!(warnings.is_empty(), "only the validating webhook returns warnings: {warnings:?}");
    let mut object = object.clone();
    json_patch::patch(&mut object, patch).unwrap();
    object
}

/// The Status of a denial.
fn denial_status(decision: &AdmissionDecision) -> Value {
    let AdmissionDecision::Denied(denial) = decision else { panic!("{decision:?}") };
    serde_json::to_value(denial).unwrap()
}

#[test]
fn patch_applies_and_a_second_run_is_empty() {
    let object = cluster("v1", &json!({"version": "3.6.16", "storage": {"className": "fast"}}));
    let once = patched(&mutated(&review("v1", "CREATE", &json!({"object": object}))), &object);
    assert_eq!(
        once["spec"]["storage"],
        json!({"className": "fast", "medium": "Disk", "size": "10Gi"})
    );
    assert_eq!(
        mutated(&review("v1", "CREATE", &json!({"object": once}))),
        AdmissionDecision::ALLOWED
    );
}

#[test]
fn unknown_fields_survive_the_mutating_webhook() {
    // Stored by a newer release, from which this one was rolled back.
    let old = cluster("v1", &json!({"version": "3.6.16", "colour": {"of": "the bikeshed"}}));
    let mut new = old.clone();
    new["spec"]["paused"] = json!(true);
    new["metadata"]["labels"] = json!({"a": "b"});
    let decision = mutated(&review("v1", "UPDATE", &json!({"object": new, "oldObject": old})));
    let result = patched(&decision, &new);
    assert_eq!(result["spec"]["colour"], old["spec"]["colour"]);
    assert_eq!(result["spec"]["replicas"], 3);
    assert_eq!(result["metadata"], new["metadata"]);
}

#[test]
fn object_outside_the_hub_version_is_validated_and_not_patched() {
    let good = cluster("v1beta1", &json!({"version": "3.6.16"}));
    assert_eq!(
        mutated(&review("v1beta1", "CREATE", &json!({"object": good}))),
        AdmissionDecision::ALLOWED
    );
    let bad = cluster("v1beta1", &json!({"version": "3.6.16", "size": 9}));
    let body = review("v1beta1", "CREATE", &json!({"object": bad}));
    for decision in [mutated(&body), validated(&body)] {
        assert_eq!(denial_status(&decision)["details"]["causes"][0]["field"], "spec.size");
    }
}

#[test]
fn missing_spec_is_not_created() {
    let old = cluster("v1", &json!({"version": "3.6.16", "deletionPolicy": "Disconnect"}));
    let mut old = old;
    old["metadata"]["deletionTimestamp"] = json!("2026-11-16T05:00:00Z");
    let mut new = old.clone();
    new.as_object_mut().unwrap().remove("spec");
    let fields = json!({"object": new, "oldObject": old, "requestKind": {"group": GROUP, "version": "v1beta1", "kind": "EtcdCluster"}});
    assert_eq!(mutated(&review("v1", "UPDATE", &fields)), AdmissionDecision::ALLOWED);
}

#[test]
fn unknown_kinds_and_operations_are_allowed() {
    let mut bad = cluster("v1", &json!({"replicas": 99}));
    bad["metadata"]["annotations"] = json!({DELETION_PROTECTION_ANNOTATION: "true"});
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
        assert_eq!(mutated(&body), AdmissionDecision::ALLOWED, "{version} {operation} {fields}");
        assert_eq!(validated(&body), AdmissionDecision::ALLOWED, "{version} {operation} {fields}");
    }
    // The same requests with a known kind are denied, so the cases above prove something.
    let body = review("v1", "CREATE", &json!({"object": bad, "kind": known}));
    assert_eq!(denial_status(&mutated(&body))["code"], 422);
    assert_eq!(denial_status(&validated(&body))["code"], 422);
    let body = review("v1", "DELETE", &json!({"oldObject": bad}));
    assert_eq!(denial_status(&validated(&body))["code"], 403);
}

#[test]
fn object_of_another_kind_than_the_review_names_is_denied() {
    let app = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ExampleApp", "spec": {}});
    let beta = cluster("v1beta1", &json!({"version": "3.6.16"}));
    let good = cluster("v1", &json!({"version": "3.6.16"}));
    for (operation, fields, message_start) in [
        ("CREATE", json!({}), "object of the review is missing"),
        ("CREATE", json!({"object": 5}), "object of the review is not the EtcdCluster"),
        ("CREATE", json!({"object": app}), "object of the review is not the EtcdCluster"),
        ("CREATE", json!({"object": beta}), "object of the review is not the EtcdCluster"),
        ("UPDATE", json!({"object": good}), "oldObject of the review is missing"),
        ("UPDATE", json!({"object": good, "oldObject": beta}), "oldObject of the review is not"),
    ] {
        let body = review("v1", operation, &fields);
        for decision in [mutated(&body), validated(&body)] {
            let status = denial_status(&decision);
            assert_eq!((&status["code"], &status["reason"]), (&json!(400), &json!("BadRequest")));
            let message = status["message"].as_str().unwrap();
            assert!(message.starts_with(message_start), "{operation} {fields}: {message}");
        }
    }
}

#[test]
fn object_nested_too_deeply_is_denied() {
    let mut spec = json!({});
    for _ in 0..100 {
        spec = json!([[spec]]);
    }
    let body = review("v1", "CREATE", &json!({"object": cluster("v1", &spec)}));
    for decision in [mutated(&body), validated(&body)] {
        let status = denial_status(&decision);
        assert_eq!(status["code"], 400);
        assert!(status["message"].as_str().unwrap().contains("recursion limit"), "{status}");
    }
}

#[test]
fn missing_request_kind_means_the_version_of_the_object() {
    let old = cluster("v1", &json!({"version": "3.6.16", "deletionPolicy": "Disconnect"}));
    let new = cluster("v1", &json!({"version": "3.6.16", "paused": true}));
    let result =
        patched(&mutated(&review("v1", "UPDATE", &json!({"object": new, "oldObject": old}))), &new);
    assert_eq!(result["spec"]["deletionPolicy"], "Retain");
}

#[test]
fn nulls_equal_absence_and_arrays_are_compared_in_order() {
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
        assert_eq!(equal_ignoring_nulls(Some(&one), Some(&other)), equal, "{one} {other}");
        assert_eq!(equal_ignoring_nulls(Some(&other), Some(&one)), equal, "{other} {one}");
    }
    assert!(equal_ignoring_nulls(None, Some(&Value::Null)));
    assert!(!equal_ignoring_nulls(None, Some(&Value::Object(Map::new()))));
}

#[test]
fn status_may_lose_fields_but_not_gain_any() {
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
    for allowed in [
        json!(null),
        json!({}),
        json!({"replicas": 2}),
        json!({"backup": {"location": "x"}, "leader": null}),
        json!({"members": [{"name": "b", "healthy": false}, {"name": "a", "healthy": true}]}),
    ] {
        assert_eq!(validated(&body(&allowed)), AdmissionDecision::ALLOWED, "{allowed}");
    }
    for (added, path) in [
        (json!({"replicas": 3}), "`status.replicas`"),
        (json!({"leader": "a"}), "`status.leader`"),
        (json!({"backup": {"location": "y"}}), "`status.backup.location`"),
        (json!({"members": [{"name": "a", "healthy": false}]}), "`status.members`"),
        (json!("odd"), "`status`"),
    ] {
        let status = denial_status(&validated(&body(&added)));
        assert_eq!(status["details"]["causes"][0]["field"], "status");
        assert!(status["message"].as_str().unwrap().contains(path), "{status}");
    }
}
