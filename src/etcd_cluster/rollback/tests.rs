//! Tests of what is rolled back, and for how long.

use serde_json::json;

use super::*;

fn cluster(spec: &Value, status: &Value) -> EtcdCluster {
    serde_json::from_value(json!({
        "apiVersion": "etcd.appdelivery.cncf.io/v1", "kind": "EtcdCluster",
        "metadata": {"name": "main", "namespace": "space", "generation": 4},
        "spec": spec, "status": status,
    }))
    .unwrap()
}

/// A cluster that was rolled back from a bad image.
fn rolled_back(spec: &Value) -> EtcdCluster {
    let bad = json!({"version": "3.6.16", "replicas": 3, "image": {"repository": "bad"}});
    let previous = json!({"version": "3.6.16"}).to_string();
    let member = MemberName("main-a".to_owned());
    let recorded = record(&cluster(&bad, &json!({})), &previous, &member, "ErrImagePull");
    cluster(spec, &recorded)
}

#[test]
fn rollback_holds_while_the_spec_is_unchanged() {
    let bad = json!({"version": "3.6.16", "replicas": 3, "image": {"repository": "bad"}});
    let cluster = rolled_back(&bad);
    assert_eq!(active(&cluster).unwrap().member.known().unwrap().as_str(), "main-a");
    let effective = effective_object(&cluster).unwrap();
    assert_eq!(effective["spec"], json!({"version": "3.6.16", "replicas": 3}));
}

#[test]
fn other_fields_still_follow_the_spec() {
    let other = json!({"version": "3.6.16", "replicas": 5, "image": {"repository": "bad"}});
    assert_eq!(effective_object(&rolled_back(&other)).unwrap()["spec"]["replicas"], json!(5));
}

#[test]
fn changed_template_ends_the_rollback() {
    for image in
        [json!({"repository": "good"}), json!({"repository": "bad", "pullPolicy": "Always"})]
    {
        let other = json!({"version": "3.6.16", "replicas": 3, "image": image});
        assert!(active(&rolled_back(&other)).is_none());
        assert!(effective_object(&rolled_back(&other)).is_none());
    }
    assert!(active(&cluster(&json!({"version": "3.6.16"}), &json!({}))).is_none());
}

#[test]
fn template_of_a_pod_has_the_version_of_the_current_step() {
    let release = Release::new(3, 5, 35);
    let requested =
        cluster(&json!({"version": "3.7.3", "replicas": 3, "paused": false}), &json!({}));
    assert_eq!(template_source(&requested, release).unwrap(), r#"{"version":"3.5.35"}"#);
    let back =
        rolled_back(&json!({"version": "3.6.16", "replicas": 3, "image": {"repository": "bad"}}));
    let release = Release::new(3, 6, 16);
    assert_eq!(
        template_source(&back, release).unwrap(),
        r#"{"version":"3.6.16"}"#,
        "the rolled back template"
    );
}

#[test]
fn invalid_template_is_never_used() {
    let bad = json!({"version": "3.6.16", "image": {"repository": "bad"}});
    let recorded =
        record(&cluster(&bad, &json!({})), "no JSON", &MemberName("main-a".to_owned()), "");
    assert!(effective_object(&cluster(&bad, &recorded)).is_none());
}
