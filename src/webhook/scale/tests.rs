//! A number alone is judged as it is judged in its object; whole answers are in
//! `tests/reviews/scale.yaml`.

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
fn a_number_alone_gets_the_words_that_it_gets_in_its_object() {
    let facts = Facts { now: now(), can: Abilities::THIS_RELEASE, written_in: "v1" };
    for (kind, version) in [(&kinds::ETCD_CLUSTER, "3.6.16"), (&kinds::EXAMPLE_APP, "0.0.1")] {
        for number in (-2..12).chain([100, 101, 1 << 40]) {
            let whole = json!({
                "apiVersion": kind.api_version(kind.hub()), "kind": kind.name,
                "metadata": {"name": "main"}, "spec": {"version": version, "replicas": number},
            });
            let expected = check(kind, None, &whole, &facts);
            let body = review(&scale(number), &scale(3));
            let said = judged(&admission(&body).unwrap(), kind, &json!(number), now());
            assert_eq!(said.violations, expected.violations, "{} {number}", kind.name);
            let about = |words: &&String| words.contains("replicas");
            let expected: Vec<&String> = expected.warnings.iter().filter(about).collect();
            assert_eq!(
                said.warnings.iter().collect::<Vec<_>>(),
                expected,
                "{} {number}",
                kind.name
            );
        }
    }
}

#[test]
fn a_number_that_does_not_change_is_not_judged() {
    let body = review(&scale(9), &scale(9));
    let asked = admission(&body).unwrap();
    assert_eq!(ruling(&asked, &kinds::ETCD_CLUSTER, now()), Ok(Ruling::UNTOUCHED));
    let body = review(&scale(9), &scale(3));
    assert!(ruling(&admission(&body).unwrap(), &kinds::ETCD_CLUSTER, now()).is_err());
}

#[test]
fn another_scale_than_there_is_today_is_let_through() {
    let mut other = scale(9);
    other["kind"] = json!("ScaleOfTomorrow");
    let body = review(&other, &scale(3));
    let asked = admission(&body).unwrap();
    assert_eq!(ruling(&asked, &kinds::ETCD_CLUSTER, now()), Ok(Ruling::UNTOUCHED));
}

#[test]
fn a_scale_without_an_object_is_named() {
    let body = review(&Value::Null, &scale(3));
    assert!(ruling(&admission(&body).unwrap(), &kinds::ETCD_CLUSTER, now()).is_err());
}
