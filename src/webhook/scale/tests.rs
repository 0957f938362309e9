//! A number of replicas is validated as in its object; whole responses are in
//! `tests/admission_reviews/scale.yaml`.

use super::*;
use crate::webhook::review::admission;

fn now() -> Timestamp {
    "2026-11-16T06:00:00Z".parse().unwrap()
}

fn review(object: &Value, old: &Value) -> Vec<u8> {
    let resource =
        json!({"group": "etcd.appdelivery.cncf.io", "version": "v1", "resource": "etcdclusters"});
    let request = json!({
        "uid": "7", "operation": "UPDATE", "resource": resource, "subResource": "scale",
        "name": "main", "namespace": "n", "object": object, "oldObject": old,
    });
    let review =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    serde_json::to_vec(&review).unwrap()
}

fn scale(number: i64) -> Value {
    json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": number}})
}

#[test]
fn scale_gets_the_same_messages_as_the_object() {
    let context =
        ValidationContext { now: now(), features: FeatureSet::CURRENT, request_version: "v1" };
    for (kind, version) in [(&kinds::ETCD_CLUSTER, "3.6.16"), (&kinds::EXAMPLE_APP, "0.0.1")] {
        for number in (-2..12).chain([100, 101, 1 << 40]) {
            let whole = json!({
                "apiVersion": kind.api_version(kind.hub()), "kind": kind.name,
                "metadata": {"name": "main"}, "spec": {"version": version, "replicas": number},
            });
            let expected = validate(kind, None, &whole, &context);
            let body = review(&scale(number), &scale(3));
            let result = validate_replicas(&admission(&body).unwrap(), kind, &json!(number), now());
            assert_eq!(result.violations, expected.violations, "{} {number}", kind.name);
            let about = |warning: &&String| warning.contains("replicas");
            let expected: Vec<&String> = expected.warnings.iter().filter(about).collect();
            assert_eq!(
                result.warnings.iter().collect::<Vec<_>>(),
                expected,
                "{} {number}",
                kind.name
            );
        }
    }
}

#[test]
fn unchanged_replicas_are_not_validated() {
    let body = review(&scale(9), &scale(9));
    let request = admission(&body).unwrap();
    assert_eq!(decide(&request, &kinds::ETCD_CLUSTER, now()), Ok(AdmissionDecision::ALLOWED));
    let body = review(&scale(9), &scale(3));
    assert!(decide(&admission(&body).unwrap(), &kinds::ETCD_CLUSTER, now()).is_err());
}

#[test]
fn unknown_scale_kind_is_allowed() {
    let mut other = scale(9);
    other["kind"] = json!("OtherScale");
    let body = review(&other, &scale(3));
    let request = admission(&body).unwrap();
    assert_eq!(decide(&request, &kinds::ETCD_CLUSTER, now()), Ok(AdmissionDecision::ALLOWED));
}

#[test]
fn scale_without_an_object_is_denied() {
    let body = review(&Value::Null, &scale(3));
    assert!(decide(&admission(&body).unwrap(), &kinds::ETCD_CLUSTER, now()).is_err());
}
