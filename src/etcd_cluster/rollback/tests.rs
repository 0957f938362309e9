//! What is taken back, and for how long, one sentence each.

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

/// A cluster of which a change to a bad image was taken back.
fn rolled_back(spec: &Value) -> EtcdCluster {
    let bad = json!({"version": "3.6.16", "replicas": 3, "image": {"repository": "bad"}});
    let before = json!({"version": "3.6.16"}).to_string();
    let member = MemberName("main-a".to_owned());
    let recorded = record(&cluster(&bad, &json!({})), &before, &member, "ErrImagePull");
    cluster(spec, &recorded)
}

#[test]
fn what_was_taken_back_holds_while_the_spec_asks_for_it() {
    let bad = json!({"version": "3.6.16", "replicas": 3, "image": {"repository": "bad"}});
    let cluster = rolled_back(&bad);
    assert_eq!(active(&cluster).unwrap().member.known().unwrap().as_str(), "main-a");
    let effective = effective_object(&cluster).unwrap();
    assert_eq!(effective["spec"], json!({"version": "3.6.16", "replicas": 3}));
}

#[test]
fn what_pods_are_not_made_of_still_follows_the_spec() {
    let other = json!({"version": "3.6.16", "replicas": 5, "image": {"repository": "bad"}});
    assert_eq!(effective_object(&rolled_back(&other)).unwrap()["spec"]["replicas"], json!(5));
}

#[test]
fn another_spec_is_tried_anew() {
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
fn a_pod_tells_what_it_was_made_from_with_the_step_that_was_taken() {
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
        "not what is refused"
    );
}

#[test]
fn garbage_is_never_gone_back_to() {
    let bad = json!({"version": "3.6.16", "image": {"repository": "bad"}});
    let recorded =
        record(&cluster(&bad, &json!({})), "no JSON", &MemberName("main-a".to_owned()), "");
    assert!(effective_object(&cluster(&bad, &recorded)).is_none());
}
