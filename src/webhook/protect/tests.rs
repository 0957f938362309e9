//! What counts as protection; who is refused is in `tests/reviews/delete.yaml`.

use serde_json::json;

use super::*;
use crate::api::kinds::ETCD_CLUSTER;
use crate::webhook::review::admission;

fn is_refused(old: &serde_json::Value) -> bool {
    let request = json!({"uid": "7", "operation": "DELETE", "namespace": "n", "oldObject": old});
    let review =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    let body = serde_json::to_vec(&review).unwrap();
    ruling(&admission(&body).unwrap(), &ETCD_CLUSTER).is_err()
}

#[test]
fn only_the_word_true_protects() {
    let with = |value: serde_json::Value| json!({"metadata": {"name": "a", "annotations": {PROTECTED_ANNOTATION: value}}});
    assert!(is_refused(&with(json!("true"))));
    for other in [json!("false"), json!("True"), json!(""), json!(true), json!(null)] {
        assert!(!is_refused(&with(other.clone())), "{other}");
    }
    assert!(!is_refused(&json!({"metadata": {"annotations": []}})));
    assert!(!is_refused(&json!({"metadata": {"labels": {PROTECTED_ANNOTATION: "true"}}})));
    assert!(!is_refused(&json!(null)));
}
