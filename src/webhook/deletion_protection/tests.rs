//! Which annotation values protect; which users are denied is in
//! `tests/admission_reviews/delete.yaml`.

use serde_json::json;

use super::*;
use crate::api::kinds::ETCD_CLUSTER;
use crate::webhook::review::admission;

fn is_denied(old: &serde_json::Value) -> bool {
    let request = json!({"uid": "7", "operation": "DELETE", "namespace": "n", "oldObject": old});
    let review =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    let body = serde_json::to_vec(&review).unwrap();
    decide(&admission(&body).unwrap(), &ETCD_CLUSTER).is_err()
}

#[test]
fn only_the_string_true_protects() {
    let with = |value: serde_json::Value| json!({"metadata": {"name": "a", "annotations": {DELETION_PROTECTION_ANNOTATION: value}}});
    assert!(is_denied(&with(json!("true"))));
    for other in [json!("false"), json!("True"), json!(""), json!(true), json!(null)] {
        assert!(!is_denied(&with(other.clone())), "{other}");
    }
    assert!(!is_denied(&json!({"metadata": {"annotations": []}})));
    assert!(!is_denied(&json!({"metadata": {"labels": {DELETION_PROTECTION_ANNOTATION: "true"}}})));
    assert!(!is_denied(&json!(null)));
}
