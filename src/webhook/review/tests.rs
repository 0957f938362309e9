//! What counts as a review, and that the uid is found in any of them.

use serde_json::json;

use super::*;

fn review(request: &Value) -> Vec<u8> {
    let review =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    serde_json::to_vec(&review).unwrap()
}

#[test]
fn known_fields_are_read_and_others_ignored() {
    let body = review(&json!({
        "uid": "7", "kind": {"group": "g", "version": "v1", "kind": "K", "more": 1},
        "requestKind": {"group": "g", "version": "v2", "kind": "K"},
        "resource": {"group": "g", "version": "v1", "resource": "ks"},
        "requestResource": null, "subResource": "scale", "operation": "UPDATE",
        "name": "a", "namespace": "n", "userInfo": {"username": "alice", "groups": ["x"]},
        "object": {"a": 1}, "oldObject": null, "options": {"deep": [[]]}, "dryRun": true,
    }));
    let request = admission(&body).unwrap();
    assert_eq!(request.uid, "7");
    assert_eq!(request.kind.kind, "K");
    assert_eq!(request.request_kind.unwrap().version, "v2");
    assert_eq!(request.resource.resource, "ks");
    assert_eq!(request.request_resource, None);
    assert_eq!(request.sub_resource, "scale");
    assert_eq!(request.operation, Operation::Update);
    assert_eq!((request.name.as_str(), request.namespace.as_str()), ("a", "n"));
    assert_eq!(request.user_info.username, "alice");
    assert_eq!(request.object.unwrap().get(), r#"{"a":1}"#);
    assert!(request.old_object.is_none());
}

#[test]
fn uid_is_found_beside_fields_of_wrong_types() {
    let body = review(&json!({
        "uid": "7", "kind": 5, "requestKind": [], "resource": "x", "subResource": {},
        "operation": "DANCE", "name": 1.5, "namespace": false, "userInfo": "alice", "object": 1e9,
    }));
    let request = admission(&body).unwrap();
    assert_eq!(request.uid, "7");
    assert_eq!(request.operation, Operation::Other);
    assert_eq!(request.kind, KindName::default());
    assert_eq!(request.name, "");

    let body = br#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview",
        "request":{"objects":7,"desiredAPIVersion":[],"uid":"8"}}"#;
    let request = conversion(body).unwrap();
    assert_eq!((request.uid.as_str(), request.desired_api_version.as_str()), ("8", ""));
}

#[test]
fn uid_is_found_beside_an_object_nested_too_deeply() {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let body = format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","what":{deep},
        "request":{{"object":{deep},"options":{deep},"uid":"7"}}}}"#
    );
    let request = admission(body.as_bytes()).unwrap();
    assert_eq!(request.uid, "7");
    assert!(parse(request.object.unwrap()).is_err());
}

#[test]
fn error_for_other_bodies_names_the_expected_review() {
    let expected = "expected one AdmissionReview of admission.k8s.io/v1";
    let head = r#""apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview""#;
    for (body, rest) in [
        (String::new(), " as JSON; this cannot be read: EOF while parsing"),
        ("hello".to_owned(), " as JSON; this cannot be read: expected value"),
        ("7".to_owned(), " as JSON; this cannot be read: invalid type"),
        ("{}".to_owned(), r#"; this is "" of """#),
        (r#"{"kind":"AdmissionReview","apiVersion":5}"#.to_owned(), r#"; this is "AdmissionReview" of """#),
        (
            r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"7"}}"#.to_owned(),
            r#"; this is "AdmissionReview" of "admission.k8s.io/v1beta1""#,
        ),
        (format!("{{{head}}}"), " with a `request` in it; there is none"),
        (format!("{{{head},\"request\":null}}"), " with a `request` in it; there is none"),
        (format!("{{{head},\"request\":{{}}}}"), " with a `request.uid`; there is none"),
        (format!("{{{head},\"request\":{{\"uid\":7}}}}"), " with a `request.uid`; there is none"),
        (format!("{{{head},\"request\":{{\"uid\":\"7\"}}}} more"), " as JSON; this cannot be read: trailing"),
    ] {
        let message = admission(body.as_bytes()).unwrap_err().to_string();
        assert!(message.starts_with(&format!("{expected}{rest}")), "{body}: {message}");
    }
    let message = conversion(&review(&json!({"uid": "7"}))).unwrap_err().to_string();
    assert_eq!(
        message,
        "expected one ConversionReview of apiextensions.k8s.io/v1; this is \"AdmissionReview\" of \
         \"admission.k8s.io/v1\""
    );
}

#[test]
fn echoed_values_are_truncated() {
    let body = format!(r#"{{"kind":"{}"}}"#, "x".repeat(100_000));
    assert!(admission(body.as_bytes()).unwrap_err().to_string().len() < 250);
}
