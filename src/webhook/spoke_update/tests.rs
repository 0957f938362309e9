//! Updates through an older version; `tests/admission.rs` tries thousands of generated ones.

use super::*;
use crate::api::kinds::ETCD_CLUSTER;

const GROUP: &str = "etcd.appdelivery.cncf.io";

fn version(name: &str) -> &'static Version {
    ETCD_CLUSTER.version_of(&format!("{GROUP}/{name}")).unwrap()
}

fn cluster(spec: &Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "EtcdCluster",
        "metadata": {"name": "main", "annotations": {"note": "mine"}}, "spec": spec,
    })
}

fn update<'a>(through: &str, old: &'a Value) -> SpokeUpdate<'a> {
    SpokeUpdate::for_version(version(through), &ETCD_CLUSTER, old).unwrap()
}

#[test]
fn hub_version_has_no_hub_only_fields_to_restore() {
    let old = cluster(&json!({"version": "3.6.16"}));
    assert!(SpokeUpdate::for_version(version("v1"), &ETCD_CLUSTER, &old).is_none());
}

#[test]
fn update_applies_and_hub_only_fields_stay() {
    let old =
        cluster(&json!({"version": "3.6.16", "replicas": 3, "repair": {"recreateAttempts": 9}}));
    let mut new = cluster(&json!({"version": "3.6.16", "replicas": 5}));
    new["metadata"]["annotations"][PRESERVED_FIELDS_ANNOTATION] = json!("forged");
    new["status"] = json!({"replicas": 5});
    let merged = update("v1alpha1", &old).with_hub_only_fields(&new).unwrap();
    assert_eq!(merged["spec"]["replicas"], 5);
    assert_eq!(merged["spec"]["repair"], old["spec"]["repair"]);
    assert_eq!(merged["metadata"], new["metadata"]);
    assert_eq!(merged.get("status"), None, "the object had no status");
}

#[test]
fn other_annotations_and_status_do_not_use_up_the_annotation_limit() {
    let mut old = cluster(&json!({"version": "3.6.16", "options": {"snapshotCount": 5000}}));
    old["metadata"]["annotations"]["note"] = json!("x".repeat(256 * 1024));
    old["status"] = json!({"leader": "y".repeat(80 * 1024)});
    let new = cluster(&json!({"version": "3.6.16", "paused": true}));
    let merged = update("v1beta1", &old).with_hub_only_fields(&new).unwrap();
    assert_eq!(merged["spec"]["options"], old["spec"]["options"]);
    assert_eq!(merged["status"], old["status"]);
}

#[test]
fn annotation_of_the_stored_object_is_not_trusted_either() {
    let mut old = cluster(&json!({"version": "3.6.16"}));
    let claim = json!({"v1": {"/spec/deletionPolicy": ["Delete"]}}).to_string();
    old["metadata"]["annotations"][PRESERVED_FIELDS_ANNOTATION] = json!(claim);
    let merged = update("v1beta1", &old)
        .with_hub_only_fields(&cluster(&json!({"version": "3.6.16"})))
        .unwrap();
    assert_eq!(merged["spec"], json!({"version": "3.6.16"}));
}

#[test]
fn block_restored_by_a_default_gets_its_hub_only_fields() {
    let client = json!({"source": "CertManager", "issuerRef": {"name": "ca"}});
    let old = cluster(&json!({
        "version": "3.6.16",
        "tls": {"client": client, "peer": {"source": "Managed"}},
        "storage": {"medium": "Memory", "size": "2Gi"},
        "image": {"pullSecrets": [{"name": "pull"}]},
    }));
    for through in ["v1beta1", "v1alpha1"] {
        let update = update(through, &old);
        let merged = update
            .with_hub_only_fields(&cluster(&json!({"version": "3.6.16", "replicas": 5})))
            .unwrap();
        let effective = update.with_hub_only_fields_and_defaults(&merged).unwrap();
        assert_eq!(effective["spec"]["tls"]["client"], client, "{through}");
        assert_eq!(effective["spec"]["storage"], old["spec"]["storage"], "{through}");
        let image = json!({
            "repository": "gcr.io/etcd-development/etcd", "pullSecrets": [{"name": "pull"}],
        });
        assert_eq!(effective["spec"]["image"], image, "{through}");
        assert_eq!(
            update.with_hub_only_fields_and_defaults(
                &update.with_hub_only_fields(&effective).unwrap()
            ),
            Ok(effective)
        );
    }
}

#[test]
fn different_client_and_peer_tls_survive_an_update_in_v1beta1() {
    let tls = json!({"client": {"source": "Disabled"}, "peer": {"source": "Managed"}});
    let old = cluster(&json!({"version": "3.6.16", "tls": tls}));
    let update = update("v1beta1", &old);
    let merged = update
        .with_hub_only_fields(&cluster(&json!({"version": "3.6.16", "replicas": 5})))
        .unwrap();
    assert_eq!(update.with_hub_only_fields_and_defaults(&merged).unwrap()["spec"]["tls"], tls);
}

#[test]
fn object_of_another_kind_is_an_error() {
    let old = cluster(&json!({}));
    let other = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
    assert!(update("v1beta1", &old).with_hub_only_fields(&other).is_err());
    assert!(update("v1beta1", &other).with_hub_only_fields(&old).is_err());
    assert_eq!(update("v1beta1", &old).with_hub_only_fields(&json!(5)), Ok(json!(5)));
}
