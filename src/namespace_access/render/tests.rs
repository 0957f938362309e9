//! The exact content of bindings, patches and conditions.

use serde_json::{from_value, to_value};

use super::*;
use crate::api::kinds;
use crate::namespace_access::state::KindRef;

const NOW: i64 = 1_800_000_000;

fn update(condition: AccessCondition) -> ConditionUpdate {
    ConditionUpdate {
        kind: KindRef(&kinds::ETCD_CLUSTER),
        namespace: "team".to_owned(),
        name: "data".to_owned(),
        uid: "u1".to_owned(),
        resource_version: "5".to_owned(),
        condition,
    }
}

fn object(status: &Value, has_condition: bool) -> DynamicObject {
    let manager = if has_condition { "quorate-namespace-access" } else { "kubectl" };
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

fn sent(object: &DynamicObject, condition: AccessCondition) -> Option<Value> {
    let now = Timestamp::from_second(NOW).unwrap();
    status(object, &update(condition), "quorate-system", now)
}

const MISSING: AccessCondition = AccessCondition::NotGranted(MissingAccess::NoBinding);

#[test]
fn binding_binds_only_the_operators_account_to_its_role() {
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
fn repair_has_the_uid_and_version_of_the_observed_binding() {
    let target = Target { uid: "b1".to_owned(), resource_version: "7".to_owned() };
    let patch = repair(&target, "quorate-system");
    assert_eq!(patch["metadata"], json!({ "uid": "b1", "resourceVersion": "7" }));
    let created = to_value(binding("team", "quorate-system")).unwrap();
    assert_eq!(patch["subjects"], created["subjects"]);
}

#[test]
fn condition_has_the_command_that_grants_access() {
    let sent = sent(&object(&json!({}), false), MISSING).unwrap();
    let message = "The operator has no access to namespace team: RoleBinding quorate-namespace \
                   not found. Reconciliation starts automatically once an administrator creates \
                   it: kubectl -n team create rolebinding quorate-namespace \
                   --clusterrole=quorate-namespace --serviceaccount=quorate-system:quorate";
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
fn unchanged_condition_is_not_written_again() {
    let first = sent(&object(&json!({}), false), MISSING).unwrap();
    assert_eq!(sent(&object(&first["status"], true), MISSING), None);
    // Without managed fields the condition could not be removed later.
    assert!(sent(&object(&first["status"], false), MISSING).is_some());
    // Another generation or another message is written.
    let mut older = first["status"].clone();
    older["conditions"][1]["observedGeneration"] = json!(2);
    assert!(sent(&object(&older, true), MISSING).is_some());
    let other = AccessCondition::NotGranted(MissingAccess::BindingMismatch);
    assert!(sent(&object(&first["status"], true), other).is_some());
}

#[test]
fn unchanged_condition_keeps_its_last_transition_time() {
    let ready = |status: &str| {
        json!({ "conditions": [
            { "type": "Available", "status": "True" },
            { "type": "Ready", "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z" },
        ] })
    };
    let times = |object: &DynamicObject| {
        let sent = sent(object, MISSING).unwrap();
        let conditions = sent["status"]["conditions"].as_array().unwrap().clone();
        conditions
            .into_iter()
            .map(|condition| condition["lastTransitionTime"].clone())
            .collect::<Vec<_>>()
    };
    let (old, new) = (json!("2026-01-01T00:00:00Z"), json!("2027-01-15T08:00:00Z"));
    assert_eq!(times(&object(&ready("False"), false)), [old, new.clone()]);
    assert_eq!(times(&object(&ready("True"), false)), [new.clone(), new]);
}

#[test]
fn condition_is_removed_by_applying_a_body_without_status() {
    let removal = sent(&object(&json!({}), true), AccessCondition::Absent).unwrap();
    assert_eq!(removal.get("status"), None);
    assert_eq!(removal["metadata"]["uid"], "u1");
    assert_eq!(sent(&object(&json!({}), false), AccessCondition::Absent), None);
}

#[test]
fn every_message_fits_into_a_condition() {
    let long = "n".repeat(63);
    for missing in [MissingAccess::NoBinding, MissingAccess::BindingMismatch] {
        let message = message(missing, &long, &long);
        assert!(message.len() <= 1024 && message.contains("create rolebinding"), "{message}");
    }
}
