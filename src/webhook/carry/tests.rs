//! What an edit through an older version takes with it; `tests/admission.rs` tries it on thousands.

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

fn edit<'a>(through: &str, old: &'a Value) -> Edit<'a> {
    Edit::through(version(through), &ETCD_CLUSTER, old).unwrap()
}

#[test]
fn in_the_hub_everything_can_be_said_and_nothing_is_carried() {
    let old = cluster(&json!({"version": "3.6.16"}));
    assert!(Edit::through(version("v1"), &ETCD_CLUSTER, &old).is_none());
}

#[test]
fn an_edit_wins_and_what_could_not_be_said_stays() {
    let old =
        cluster(&json!({"version": "3.6.16", "replicas": 3, "repair": {"recreateAttempts": 9}}));
    let mut new = cluster(&json!({"version": "3.6.16", "replicas": 5}));
    new["metadata"]["annotations"][ANNOTATION] = json!("not what it was");
    new["status"] = json!({"replicas": 5});
    let carried = edit("v1alpha1", &old).carried(&new).unwrap();
    assert_eq!(carried["spec"]["replicas"], 5);
    assert_eq!(carried["spec"]["repair"], old["spec"]["repair"]);
    assert_eq!(carried["metadata"], new["metadata"]);
    assert_eq!(carried.get("status"), None, "the object had no status");
}

#[test]
fn other_annotations_take_no_room_from_what_is_carried() {
    let mut old = cluster(&json!({"version": "3.6.16", "options": {"snapshotCount": 5000}}));
    old["metadata"]["annotations"]["note"] = json!("x".repeat(256 * 1024));
    old["status"] = json!({"leader": "y".repeat(80 * 1024)});
    let new = cluster(&json!({"version": "3.6.16", "paused": true}));
    let carried = edit("v1beta1", &old).carried(&new).unwrap();
    assert_eq!(carried["spec"]["options"], old["spec"]["options"]);
    assert_eq!(carried["status"], old["status"]);
}

#[test]
fn what_the_stored_object_claims_was_kept_is_nobodys_word_either() {
    let mut old = cluster(&json!({"version": "3.6.16"}));
    let claim = json!({"v1": {"/spec/deletionPolicy": ["Delete"]}}).to_string();
    old["metadata"]["annotations"][ANNOTATION] = json!(claim);
    let carried = edit("v1beta1", &old).carried(&cluster(&json!({"version": "3.6.16"}))).unwrap();
    assert_eq!(carried["spec"], json!({"version": "3.6.16"}));
}

#[test]
fn a_block_that_a_default_brings_back_comes_with_what_could_not_be_said_of_it() {
    let client = json!({"source": "CertManager", "issuerRef": {"name": "ca"}});
    let old = cluster(&json!({
        "version": "3.6.16",
        "tls": {"client": client, "peer": {"source": "Managed"}},
        "storage": {"medium": "Memory", "size": "2Gi"},
        "image": {"pullSecrets": [{"name": "pull"}]},
    }));
    for through in ["v1beta1", "v1alpha1"] {
        let edit = edit(through, &old);
        let carried = edit.carried(&cluster(&json!({"version": "3.6.16", "replicas": 5}))).unwrap();
        let meant = edit.carried_and_filled(&carried).unwrap();
        assert_eq!(meant["spec"]["tls"]["client"], client, "{through}");
        assert_eq!(meant["spec"]["storage"], old["spec"]["storage"], "{through}");
        let image = json!({
            "repository": "gcr.io/etcd-development/etcd", "pullSecrets": [{"name": "pull"}],
        });
        assert_eq!(meant["spec"]["image"], image, "{through}");
        assert_eq!(edit.carried_and_filled(&edit.carried(&meant).unwrap()), Ok(meant));
    }
}

#[test]
fn sides_that_the_switch_of_v1beta1_cannot_tell_apart_stay_apart() {
    let tls = json!({"client": {"source": "Disabled"}, "peer": {"source": "Managed"}});
    let old = cluster(&json!({"version": "3.6.16", "tls": tls}));
    let edit = edit("v1beta1", &old);
    let carried = edit.carried(&cluster(&json!({"version": "3.6.16", "replicas": 5}))).unwrap();
    assert_eq!(edit.carried_and_filled(&carried).unwrap()["spec"]["tls"], tls);
}

#[test]
fn an_object_of_another_kind_is_named() {
    let old = cluster(&json!({}));
    let stranger = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
    assert!(edit("v1beta1", &old).carried(&stranger).is_err());
    assert!(edit("v1beta1", &stranger).carried(&old).is_err());
    assert_eq!(edit("v1beta1", &old).carried(&json!(5)), Ok(json!(5)));
}
