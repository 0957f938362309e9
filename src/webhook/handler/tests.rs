//! The handler has a response for any input, including unreadable bodies and panics.

use serde_json::{Value, json};

use super::*;

const GROUP: &str = "etcd.appdelivery.cncf.io";

fn now() -> Timestamp {
    "2026-11-16T06:00:00Z".parse().unwrap()
}

fn admission_of(spec: &Value) -> Vec<u8> {
    let object = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "EtcdCluster",
        "metadata": {"name": "main"}, "spec": spec,
    });
    let kind = json!({"group": GROUP, "version": "v1", "kind": "EtcdCluster"});
    let request = json!({"uid": "7", "kind": kind, "operation": "CREATE", "object": object});
    let review =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    serde_json::to_vec(&review).unwrap()
}

fn conversion_of(version: &str) -> Vec<u8> {
    let object = json!({"apiVersion": format!("{GROUP}/{version}"), "kind": "EtcdCluster"});
    let request = json!({"uid": "7", "desiredAPIVersion": format!("{GROUP}/v1"), "objects": [object, object]});
    let review = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request,
    });
    serde_json::to_vec(&review).unwrap()
}

fn review_response(response: &ReviewResponse) -> Value {
    assert_eq!(response.status, 200);
    let review: Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!(review["response"]["uid"], "7");
    review["response"].clone()
}

#[test]
fn every_review_type_reports_its_outcome() {
    let (short, wrong) =
        (json!({"version": "3.6.16"}), json!({"version": "3.6.16", "replicas": 9}));
    for (review_type, body, outcome, objects) in [
        (ReviewType::Mutate, admission_of(&short), Outcome::Patched, 0),
        (ReviewType::Mutate, admission_of(&wrong), Outcome::Denied, 0),
        (ReviewType::Validate, admission_of(&short), Outcome::Allowed, 0),
        (ReviewType::Validate, admission_of(&wrong), Outcome::Denied, 0),
        (ReviewType::Convert, conversion_of("v1beta1"), Outcome::Converted, 2),
        (ReviewType::Convert, conversion_of("v9"), Outcome::Unconverted, 0),
    ] {
        let response = handle(review_type, &body, now());
        assert_eq!((response.outcome, response.objects), (outcome, objects), "{review_type:?}");
        review_response(&response);
    }
}

#[test]
fn body_that_is_not_a_review_gets_400_with_a_message() {
    let other = admission_of(&json!({}));
    for (review_type, body) in [
        (ReviewType::Mutate, b"".as_slice()),
        (ReviewType::Validate, b"\xff\xfe".as_slice()),
        (ReviewType::Convert, b"{".as_slice()),
        (ReviewType::Convert, other.as_slice()),
    ] {
        let response = handle(review_type, body, now());
        assert_eq!((response.status, response.outcome), (400, Outcome::Unreadable));
        let message = String::from_utf8(response.body).unwrap();
        assert!(message.starts_with("expected one ") && message.ends_with('\n'), "{message}");
    }
}

#[test]
fn panic_in_one_admission_denies_it_with_an_internal_error() {
    let response = admission(&admission_of(&json!({})), now(), |_, _| panic!("on purpose"));
    assert_eq!(response.outcome, Outcome::Panicked);
    let response = review_response(&response);
    assert_eq!(response["allowed"], false);
    assert_eq!(response["status"]["code"], 500);
    assert_eq!(response["status"]["reason"], "InternalError");
    assert!(response["status"]["message"].as_str().unwrap().contains("this is a bug"));
    // The next review is handled normally.
    let next = handle(ReviewType::Mutate, &admission_of(&json!({"version": "3.6.16"})), now());
    assert_eq!(next.outcome, Outcome::Patched);
}

#[test]
fn panic_on_one_object_fails_its_conversion() {
    let response = conversion(&conversion_of("v1beta1"), |_, _| panic!("on purpose"));
    assert_eq!((response.outcome, response.objects), (Outcome::Panicked, 0));
    let response = review_response(&response);
    assert_eq!(response["result"]["status"], "Failure");
    assert_eq!(response["convertedObjects"], json!([]));
    let message = response["result"]["message"].as_str().unwrap();
    assert!(message.starts_with("objects[0] EtcdCluster: ") && message.contains("this is a bug"));
}
