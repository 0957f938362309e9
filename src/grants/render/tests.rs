//! What is sent, to the letter.

use serde_json::{from_value, to_value};

use super::*;
use crate::api::kinds;
use crate::grants::seen::Which;

const NOW: i64 = 1_800_000_000;

fn word(says: Says) -> Word {
    Word {
        which: Which(&kinds::ETCD_CLUSTER),
        namespace: "team".to_owned(),
        name: "data".to_owned(),
        uid: "u1".to_owned(),
        version: "5".to_owned(),
        says,
    }
}

fn object(status: &Value, marked: bool) -> DynamicObject {
    let manager = if marked { "quorate-grants" } else { "kubectl" };
    from_value(json!({
        "apiVersion": "etcd.appdelivery.cncf.io/v1", "kind": "EtcdCluster",
        "metadata": {
            "name": "data", "namespace": "team", "uid": "u1", "generation": 3,
            "managedFields": [{ "manager": manager, "operation": "Apply" }],
        },
        "status": status,
    }))
    .unwrap()
}

fn sent(object: &DynamicObject, says: Says) -> Option<Value> {
    let now = Timestamp::from_second(NOW).unwrap();
    status(object, &word(says), "quorate-system", now)
}

const MISSING: Says = Says::NotGranted(Lack::NoBinding);

#[test]
fn the_binding_binds_our_account_to_our_role_and_nothing_else() {
    let binding = to_value(binding("team", "quorate-system")).unwrap();
    assert_eq!(
        binding,
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {
                "name": names::NAMESPACE_ROLE_BINDING, "namespace": "team",
                "labels": {
                    "app.kubernetes.io/name": "quorate",
                    "app.kubernetes.io/part-of": "quorate",
                    "app.kubernetes.io/managed-by": "quorate",
                },
            },
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole", "name": "quorate-namespace",
            },
            "subjects": [{
                "kind": "ServiceAccount", "name": "quorate", "namespace": "quorate-system",
            }],
        })
    );
}

#[test]
fn a_repair_names_the_binding_that_it_means() {
    let target = Target { uid: "b1".to_owned(), version: "7".to_owned() };
    let patch = repair(&target, "quorate-system");
    assert_eq!(patch["metadata"], json!({ "uid": "b1", "resourceVersion": "7" }));
    let made = to_value(binding("team", "quorate-system")).unwrap();
    assert_eq!(patch["subjects"], made["subjects"]);
}

#[test]
fn an_object_is_told_the_command_that_helps() {
    let sent = sent(&object(&json!({}), false), MISSING).unwrap();
    let message = "The operator may not work in the namespace team until an administrator grants \
                   it; work begins by itself then. To grant it: kubectl -n team create rolebinding \
                   quorate-namespace --clusterrole=quorate-namespace \
                   --serviceaccount=quorate-system:quorate";
    let condition = |kind: &str, status: &str| {
        json!({
            "type": kind, "status": status, "observedGeneration": 3,
            "lastTransitionTime": "2027-01-15T08:00:00Z",
            "reason": "NamespaceNotGranted", "message": message,
        })
    };
    assert_eq!(
        sent,
        json!({
            "apiVersion": "etcd.appdelivery.cncf.io/v1", "kind": "EtcdCluster",
            "metadata": { "name": "data", "namespace": "team", "uid": "u1" },
            "status": { "conditions": [condition("Ready", "False"), condition("Stalled", "True")] },
        })
    );
}

#[test]
fn what_an_object_says_already_is_not_written_again() {
    let first = sent(&object(&json!({}), false), MISSING).unwrap();
    assert_eq!(sent(&object(&first["status"], true), MISSING), None);
    // Without the mark it could not be taken back later.
    assert!(sent(&object(&first["status"], false), MISSING).is_some());
    // Another spec, another reason: said anew.
    let mut older = first["status"].clone();
    older["conditions"][1]["observedGeneration"] = json!(2);
    assert!(sent(&object(&older, true), MISSING).is_some());
    let other = Says::NotGranted(Lack::OtherBinding);
    assert!(sent(&object(&first["status"], true), other).is_some());
}

#[test]
fn a_condition_keeps_the_time_since_when_it_is_so() {
    let ready = |status: &str| {
        json!({ "conditions": [
            { "type": "Available", "status": "True" },
            { "type": "Ready", "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z" },
        ] })
    };
    let times = |object: &DynamicObject| {
        let sent = sent(object, MISSING).unwrap();
        let conditions = sent["status"]["conditions"].as_array().unwrap().clone();
        conditions.into_iter().map(|it| it["lastTransitionTime"].clone()).collect::<Vec<_>>()
    };
    let (old, new) = (json!("2026-01-01T00:00:00Z"), json!("2027-01-15T08:00:00Z"));
    assert_eq!(times(&object(&ready("False"), false)), [old, new.clone()]);
    assert_eq!(times(&object(&ready("True"), false)), [new.clone(), new]);
}

#[test]
fn what_was_said_is_taken_back_by_saying_nothing() {
    let sent_back = sent(&object(&json!({}), true), Says::Nothing).unwrap();
    assert_eq!(sent_back.get("status"), None);
    assert_eq!(sent_back["metadata"]["uid"], "u1");
    assert_eq!(sent(&object(&json!({}), false), Says::Nothing), None);
}

#[test]
fn every_message_fits_into_a_condition() {
    let long = "n".repeat(63);
    for lack in [Lack::NoBinding, Lack::OtherBinding] {
        let message = message(lack, &long, &long);
        assert!(message.len() <= 1024 && message.contains("create rolebinding"), "{message}");
    }
}
