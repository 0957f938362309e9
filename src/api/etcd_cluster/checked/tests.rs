//! What an EtcdCluster is read as.

use serde_json::json;

use super::*;
use crate::api::checked::tests::{becomes, means_the_same_when_filled, refused, value};
use crate::api::etcd_cluster::defaults::REPOSITORY;

fn with(key: &str, value: Value) -> Value {
    let mut spec = json!({"version": "3.6.16"});
    spec[key] = value;
    spec
}

fn bare() -> EtcdCluster {
    EtcdCluster {
        replicas: 3,
        version: Release::new(3, 6, 16),
        image: Pull { repository: REPOSITORY.to_owned(), policy: None, secrets: Vec::new() },
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
fn a_version_is_enough_for_a_whole_cluster() {
    becomes(&json!({"version": "3.6.16"}), &bare());
}

#[test]
fn null_is_as_good_as_left_out() {
    for key in ["replicas", "image", "storage", "options", "tls", "auth", "placement", "backup"] {
        becomes(&with(key, Value::Null), &bare());
    }
    for key in ["podMetadata", "resources", "upgrade", "repair", "defragment", "deletionPolicy"] {
        becomes(&with(key, Value::Null), &bare());
    }
}

#[test]
fn settings_and_blocks_for_pods_arrive_in_their_own_types() {
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
    means_the_same_when_filled::<EtcdCluster>(&spec);
}

#[test]
fn a_password_counts_only_where_it_is_asked_for() {
    let off = with("auth", json!({"enabled": false, "rootSecretRef": {"name": "root"}}));
    becomes(&off, &bare());
}

#[test]
fn what_the_webhook_writes_changes_nothing_about_what_is_meant() {
    let same = means_the_same_when_filled::<EtcdCluster>;
    same(&json!({"version": "3.6.16"}));
    same(&with("storage", json!({"medium": "Memory"})));
    same(&with("image", json!({"pullPolicy": "Always"})));
    same(&with("tls", json!({"client": {"source": "Disabled"}})));
    same(&with("repair", json!({"recreateAttempts": 1})));
    same(&with("replicas", json!(0)));
}

#[test]
fn what_is_wrong_is_named_and_nothing_else() {
    let wrong = |key: &str, value: Value, path: &str| {
        refused::<EtcdCluster>(&with(key, value), &[path]);
    };
    refused::<EtcdCluster>(&json!({"replicas": 3}), &["spec.version"]);
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
fn a_null_in_a_list_or_a_map_does_not_take_the_rest_away_in_silence() {
    let wrong = |block: &str, part: &str, value: Value| {
        let path = format!("spec.{block}.{part}");
        refused::<EtcdCluster>(&with(block, json!({part: value})), &[&path]);
    };
    wrong("podMetadata", "labels", json!({"team": null, "tier": "a"}));
    wrong("podMetadata", "annotations", json!({"team": null}));
    wrong("placement", "nodeSelector", json!({"disk": null}));
    wrong("placement", "tolerations", json!([{"operator": "Exists"}, null]));
}
