//! What is a review, what is not, and that the uid is found in whatever is one.

use serde_json::json;

use super::*;

fn review(request: &Value) -> Vec<u8> {
    let review =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    serde_json::to_vec(&review).unwrap()
}

#[test]
fn what_is_needed_is_read_and_the_rest_is_passed_over() {
    let body = review(&json!({
        "uid": "7", "kind": {"group": "g", "version": "v1", "kind": "K", "more": 1},
        "requestKind": {"group": "g", "version": "v2", "kind": "K"},
        "resource": {"group": "g", "version": "v1", "resource": "ks"},
        "requestResource": null, "subResource": "scale", "operation": "UPDATE",
        "name": "a", "namespace": "n", "userInfo": {"username": "alice", "groups": ["x"]},
        "object": {"a": 1}, "oldObject": null, "options": {"deep": [[]]}, "dryRun": true,
    }));
    let asked = admission(&body).unwrap();
    assert_eq!(asked.uid, "7");
    assert_eq!(asked.kind.kind, "K");
    assert_eq!(asked.request_kind.unwrap().version, "v2");
    assert_eq!(asked.resource.resource, "ks");
    assert_eq!(asked.request_resource, None);
    assert_eq!(asked.sub_resource, "scale");
    assert_eq!(asked.operation, Operation::Update);
    assert_eq!((asked.name.as_str(), asked.namespace.as_str()), ("a", "n"));
    assert_eq!(asked.user_info.username, "alice");
    assert_eq!(asked.object.unwrap().get(), r#"{"a":1}"#);
    assert!(asked.old_object.is_none());
}

#[test]
fn the_uid_is_found_whatever_else_there_is() {
    let body = review(&json!({
        "uid": "7", "kind": 5, "requestKind": [], "resource": "x", "subResource": {},
        "operation": "DANCE", "name": 1.5, "namespace": false, "userInfo": "alice", "object": 1e9,
    }));
    let asked = admission(&body).unwrap();
    assert_eq!(asked.uid, "7");
    assert_eq!(asked.operation, Operation::Else);
    assert_eq!(asked.kind, KindName::default());
    assert_eq!(asked.name, "");

    let body = br#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview",
        "request":{"objects":7,"desiredAPIVersion":[],"uid":"8"}}"#;
    let asked = conversion(body).unwrap();
    assert_eq!((asked.uid.as_str(), asked.wanted.as_str()), ("8", ""));
}

#[test]
fn the_uid_is_found_before_an_object_that_is_nested_too_deep() {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let body = format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","what":{deep},
        "request":{{"object":{deep},"options":{deep},"uid":"7"}}}}"#
    );
    let asked = admission(body.as_bytes()).unwrap();
    assert_eq!(asked.uid, "7");
    assert!(tree(asked.object.unwrap()).is_err());
}

#[test]
fn what_is_not_a_review_is_told_what_was_expected() {
    let form = "expected one AdmissionReview of admission.k8s.io/v1";
    let head = r#""apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview""#;
    for (body, why) in [
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
        let said = admission(body.as_bytes()).unwrap_err().to_string();
        assert!(said.starts_with(&format!("{form}{why}")), "{body}: {said}");
    }
    let said = conversion(&review(&json!({"uid": "7"}))).unwrap_err().to_string();
    assert_eq!(
        said,
        "expected one ConversionReview of apiextensions.k8s.io/v1; this is \"AdmissionReview\" of \
         \"admission.k8s.io/v1\""
    );
}

#[test]
fn a_stranger_is_not_repeated_at_length() {
    let body = format!(r#"{{"kind":"{}"}}"#, "x".repeat(100_000));
    assert!(admission(body.as_bytes()).unwrap_err().to_string().len() < 250);
}
