//! The desk always has an answer, also to what it cannot read and to what makes it stumble.

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

fn response(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200);
    let review: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(review["response"]["uid"], "7");
    review["response"].clone()
}

#[test]
fn every_errand_ends_in_its_own_way() {
    let (short, wrong) =
        (json!({"version": "3.6.16"}), json!({"version": "3.6.16", "replicas": 9}));
    for (errand, body, outcome, objects) in [
        (Errand::Mutate, admission_of(&short), Outcome::Patched, 0),
        (Errand::Mutate, admission_of(&wrong), Outcome::Denied, 0),
        (Errand::Validate, admission_of(&short), Outcome::Allowed, 0),
        (Errand::Validate, admission_of(&wrong), Outcome::Denied, 0),
        (Errand::Convert, conversion_of("v1beta1"), Outcome::Converted, 2),
        (Errand::Convert, conversion_of("v9"), Outcome::Unconverted, 0),
    ] {
        let reply = answer(errand, &body, now());
        assert_eq!((reply.outcome, reply.objects), (outcome, objects), "{errand:?}");
        response(&reply);
    }
}

#[test]
fn what_is_not_a_review_is_answered_with_400_and_a_sentence() {
    let other = admission_of(&json!({}));
    for (errand, body) in [
        (Errand::Mutate, b"".as_slice()),
        (Errand::Validate, b"\xff\xfe".as_slice()),
        (Errand::Convert, b"{".as_slice()),
        (Errand::Convert, other.as_slice()),
    ] {
        let reply = answer(errand, body, now());
        assert_eq!((reply.status, reply.outcome), (400, Outcome::Unreadable));
        let words = String::from_utf8(reply.body).unwrap();
        assert!(words.starts_with("expected one ") && words.ends_with('\n'), "{words}");
    }
}

#[test]
fn a_panic_over_one_admission_is_its_answer() {
    let reply = admission(&admission_of(&json!({})), now(), |_, _| panic!("on purpose"));
    assert_eq!(reply.outcome, Outcome::Panicked);
    let response = response(&reply);
    assert_eq!(response["allowed"], false);
    assert_eq!(response["status"]["code"], 500);
    assert_eq!(response["status"]["reason"], "InternalError");
    assert!(response["status"]["message"].as_str().unwrap().contains("a bug of ours"));
    // And the next one is judged as if nothing had happened.
    let next = answer(Errand::Mutate, &admission_of(&json!({"version": "3.6.16"})), now());
    assert_eq!(next.outcome, Outcome::Patched);
}

#[test]
fn a_panic_over_one_object_fails_its_conversion() {
    let reply = conversion(&conversion_of("v1beta1"), |_, _| panic!("on purpose"));
    assert_eq!((reply.outcome, reply.objects), (Outcome::Panicked, 0));
    let response = response(&reply);
    assert_eq!(response["result"]["status"], "Failure");
    assert_eq!(response["convertedObjects"], json!([]));
    let message = response["result"]["message"].as_str().unwrap();
    assert!(message.starts_with("objects[0] EtcdCluster: ") && message.contains("a bug of ours"));
}
