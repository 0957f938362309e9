//! Tests of reading a validated EtcdCluster.

use serde_json::json;

use super::*;
use crate::api::etcd_cluster::defaults::REPOSITORY;
use crate::api::validated::tests::{
    assert_defaults_keep_meaning, assert_reads_as, assert_rejected, value,
};

fn with(key: &str, value: Value) -> Value {
    let mut spec = json!({"version": "3.6.16"});
    spec[key] = value;
    spec
}

fn bare() -> EtcdCluster {
    EtcdCluster {
        replicas: 3,
        version: Release::new(3, 6, 16),
        image: ImagePull { repository: REPOSITORY.to_owned(), policy: None, secrets: Vec::new() },
        storage: Storage { bytes: 10 << 30, class: None, medium: Medium::Disk },
        options: Options::default(),
        client_tls: Certificates::Managed,
        peer_tls: Certificates::Managed,
        root_secret: None,
        pods: Pods {
            node_selector: BTreeMap::new(),
            tolerations: Vec::new(),
            affinity: None,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            resources: ResourceRequirements::default(),
        },
        snapshot_first: false,
        repair: Repair { recreate_attempts: 3, replace_after: Duration::from_mins(10) },
        defragment: None,
        backup: None,
        restore: None,
        paused: false,
        deletion: DeletionPolicy::Retain,
    }
}

#[test]
fn only_the_version_is_required() {
    assert_reads_as(&json!({"version": "3.6.16"}), &bare());
}

#[test]
fn null_is_the_same_as_unset() {
    for key in ["replicas", "image", "storage", "options", "tls", "auth", "placement", "backup"] {
        assert_reads_as(&with(key, Value::Null), &bare());
    }
    for key in ["podMetadata", "resources", "upgrade", "repair", "defragment", "deletionPolicy"] {
        assert_reads_as(&with(key, Value::Null), &bare());
    }
}

#[test]
fn options_and_pod_fields_are_read_into_their_types() {
    let spec = json!({
        "version": "3.6.16",
        "options": {
            "quota": "2Gi", "autoCompaction": {"mode": "Revision", "retentionRevisions": 900},
            "heartbeatMilliseconds": 100, "electionMilliseconds": 1000,
        },
        "placement": {
            "nodeSelector": {"disk": "fast"}, "tolerations": [{"operator": "Exists"}],
        },
        "podMetadata": {"labels": {"team": "a"}},
        "resources": {"requests": {"cpu": 1}},
        "auth": {"enabled": true, "rootSecretRef": {"name": "root"}},
        "tls": {"peer": {"source": "Secret", "secretRef": {"name": "certificates"}}},
    });
    let cluster = value::<EtcdCluster>(&spec);
    let options = Options {
        quota: Some(2 << 30),
        compaction: Some(Compaction::Count(900)),
        snapshot_count: None,
        heartbeat: Some(Duration::from_millis(100)),
        election: Some(Duration::from_secs(1)),
    };
    assert_eq!(cluster.options, options);
    assert_eq!(cluster.pods.node_selector.get("disk").unwrap(), "fast");
    assert_eq!(cluster.pods.tolerations.first().unwrap().operator.as_deref(), Some("Exists"));
    assert_eq!(cluster.pods.labels.get("team").unwrap(), "a");
    assert_eq!(cluster.pods.resources.requests.unwrap().get("cpu").unwrap().0, "1");
    assert_eq!(cluster.root_secret.as_deref(), Some("root"));
    assert_eq!(cluster.peer_tls, Certificates::Secret("certificates".to_owned()));
    assert_defaults_keep_meaning::<EtcdCluster>(&spec);
}

#[test]
fn root_secret_is_ignored_while_auth_is_disabled() {
    let off = with("auth", json!({"enabled": false, "rootSecretRef": {"name": "root"}}));
    assert_reads_as(&off, &bare());
}

#[test]
fn written_defaults_do_not_change_the_value() {
    let same = assert_defaults_keep_meaning::<EtcdCluster>;
    same(&json!({"version": "3.6.16"}));
    same(&with("storage", json!({"medium": "Memory"})));
    same(&with("image", json!({"pullPolicy": "Always"})));
    same(&with("tls", json!({"client": {"source": "Disabled"}})));
    same(&with("repair", json!({"recreateAttempts": 1})));
    same(&with("replicas", json!(0)));
}

#[test]
fn errors_name_exactly_the_invalid_fields() {
    let wrong = |key: &str, value: Value, path: &str| {
        assert_rejected::<EtcdCluster>(&with(key, value), &[path]);
    };
    assert_rejected::<EtcdCluster>(&json!({"replicas": 3}), &["spec.version"]);
    wrong("replicas", json!(8), "spec.replicas");
    wrong("storage", json!({"size": "much"}), "spec.storage.size");
    wrong("options", json!({"quota": "999999999999999P"}), "spec.options.quota");
    wrong(
        "defragment",
        json!({"reclaimAbove": "999999999999999P"}),
        "spec.defragment.reclaimAbove",
    );
    wrong("auth", json!({"enabled": true}), "spec.auth.rootSecretRef");
    wrong("tls", json!({"client": {"source": "Secret"}}), "spec.tls.client.secretRef");
    wrong("restore", json!({"from": null}), "spec.restore.from");
    wrong("backup", json!({"destination": {}}), "spec.backup.destination");
}

#[test]
fn null_in_a_list_or_map_is_an_error() {
    let wrong = |block: &str, part: &str, value: Value| {
        let path = format!("spec.{block}.{part}");
        assert_rejected::<EtcdCluster>(&with(block, json!({part: value})), &[&path]);
    };
    wrong("podMetadata", "labels", json!({"team": null, "tier": "a"}));
    wrong("podMetadata", "annotations", json!({"team": null}));
    wrong("placement", "nodeSelector", json!({"disk": null}));
    wrong("placement", "tolerations", json!([{"operator": "Exists"}, null]));
}
