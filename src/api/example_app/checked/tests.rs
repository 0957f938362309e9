//! What an ExampleApp is read as.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::api::checked::tests::{becomes, means_the_same_when_filled, refused, value};
use crate::api::destination::checked::Store;
use crate::api::pod::PullPolicy;

fn with(key: &str, value: Value) -> Value {
    let mut spec = json!({"version": "0.0.1"});
    spec[key] = value;
    spec
}

fn bare() -> ExampleApp {
    ExampleApp {
        version: AppRelease { major: 0, minor: 0, patch: 1 },
        image: Pull { repository: None, policy: None, secrets: Vec::new() },
        scale: Replicas::Fixed(2),
        features: BTreeMap::new(),
        data: Data::Managed {
            replicas: 3,
            version: Release::new(3, 6, 16),
            bytes: 10 << 30,
            class: None,
        },
        exposure: Exposure { service_type: ServiceType::ClusterIp, host: None },
        backup: None,
        restore: None,
        upgrade: Upgrade { snapshot_first: false, rollback_after_failed_starts: 3 },
        resources: ResourceRequirements::default(),
        paused: false,
        deletion: DeletionPolicy::Delete,
    }
}

/// Every block that goes together with the others.
fn whole() -> Value {
    json!({
        "version": "1.20.3",
        "image": {
            "repository": "registry.example.com/app", "pullPolicy": "Always",
            "pullSecrets": [{"name": "registry"}],
        },
        "replicas": 0,
        "features": {"exampleFeature1": true, "exampleFeature2": false},
        "data": {"etcd": {"managed": {
            "replicas": 5, "version": "3.5.35", "storage": {"size": "1Gi", "className": "fast"},
        }}},
        "exposure": {
            "serviceType": "NodePort", "host": "app.example.com",
            "tls": {"secretRef": {"name": "certificate"}},
        },
        "backup": {
            "timeZone": "Europe/Berlin", "suspend": true,
            "destination": {"gcs": {"bucket": "backups"}}, "retention": {"keepLast": 7},
        },
        "restore": {"from": {"backupRef": {"name": "old"}}},
        "upgrade": {"snapshotFirst": true, "rollbackAfterFailedStarts": 1},
        "resources": {"requests": {"cpu": "100m"}},
        "paused": true,
        "deletionPolicy": "Disconnect",
    })
}

#[test]
fn a_version_is_enough_for_a_whole_application() {
    becomes(&json!({"version": "0.0.1"}), &bare());
}

#[test]
fn null_is_as_good_as_left_out() {
    let keys = whole().as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    for key in keys.iter().chain([&"autoscaling".to_owned()]).filter(|key| *key != "version") {
        becomes(&with(key, Value::Null), &bare());
    }
}

#[test]
fn everything_that_is_said_is_there() {
    let app = value::<ExampleApp>(&whole());
    let asked = app.resources.requests.as_ref().unwrap();
    assert_eq!(asked.get("cpu").unwrap().0, "100m");
    // The place is enough for a schedule; that it rests does not take the schedule away.
    let plan = Plan {
        schedule: Some("0 3 * * *".to_owned()),
        time_zone: Some("Europe/Berlin".to_owned()),
        suspend: true,
        store: Some(Store::Gcs { bucket: "backups".to_owned(), prefix: None, credentials: None }),
        keep_last: Some(7),
        keep_days: None,
        verify_schedule: None,
    };
    let expected = ExampleApp {
        version: AppRelease { major: 1, minor: 20, patch: 3 },
        image: Pull {
            repository: Some("registry.example.com/app".to_owned()),
            policy: Some(PullPolicy::Always),
            secrets: vec!["registry".to_owned()],
        },
        scale: Replicas::Fixed(0),
        features: [("exampleFeature1".to_owned(), true), ("exampleFeature2".to_owned(), false)]
            .into_iter()
            .collect(),
        data: Data::Managed {
            replicas: 5,
            version: Release::new(3, 5, 35),
            bytes: 1 << 30,
            class: Some("fast".to_owned()),
        },
        exposure: Exposure {
            service_type: ServiceType::NodePort,
            host: Some(Host {
                name: "app.example.com".to_owned(),
                tls_secret: Some("certificate".to_owned()),
            }),
        },
        backup: Some(plan),
        restore: Some(Source::Backup("old".to_owned())),
        upgrade: Upgrade { snapshot_first: true, rollback_after_failed_starts: 1 },
        resources: app.resources.clone(),
        paused: true,
        deletion: DeletionPolicy::Disconnect,
    };
    assert_eq!(app, expected);
}

#[test]
fn a_range_begins_at_one_and_follows_the_load_as_kubernetes_does() {
    let range = |range: Value| value::<ExampleApp>(&with("autoscaling", range)).scale;
    let expected = Replicas::Range { least: 1, most: 5, target_percent: 80 };
    assert_eq!(range(json!({"maxReplicas": 5})), expected);
    let said = json!({"minReplicas": 2, "maxReplicas": 9, "targetCPUUtilizationPercentage": 1000});
    assert_eq!(range(said), Replicas::Range { least: 2, most: 9, target_percent: 1000 });
}

#[test]
fn an_application_that_names_a_cluster_has_no_other() {
    let spec = with("data", json!({"etcd": {"clusterRef": {"name": "main"}}}));
    assert_eq!(value::<ExampleApp>(&spec).data, Data::Cluster("main".to_owned()));
}

#[test]
fn what_the_webhook_writes_changes_nothing_about_what_is_meant() {
    let same = means_the_same_when_filled::<ExampleApp>;
    same(&json!({"version": "0.0.1"}));
    same(&whole());
    // Alone, but for what needs another block.
    for (key, value) in whole().as_object().unwrap().iter().filter(|(key, _)| *key != "upgrade") {
        same(&with(key, value.clone()));
    }
    same(&with("autoscaling", json!({"maxReplicas": 5})));
    same(&with("data", json!({"etcd": {"clusterRef": {"name": "main"}}})));
    same(&with("data", json!({"etcd": {"managed": {"replicas": 1}}})));
    same(&with("exposure", json!({"host": "app.example.com"})));
    same(&with("backup", json!({"suspend": true})));
}

#[test]
fn what_is_wrong_is_named_and_nothing_else() {
    let wrong = |key: &str, value: Value, path: &str| {
        refused::<ExampleApp>(&with(key, value), &[path]);
    };
    refused::<ExampleApp>(&json!({"replicas": 1}), &["spec.version"]);
    wrong("version", json!("0.1"), "spec.version");
    wrong("replicas", json!(-1), "spec.replicas");
    wrong("autoscaling", json!({}), "spec.autoscaling.maxReplicas");
    wrong("features", json!({"no": true}), "spec.features[no]");
    wrong("data", json!({"etcd": {"clusterRef": {}}}), "spec.data.etcd.clusterRef.name");
    let tls = json!({"tls": {"secretRef": {"name": "certificate"}}});
    wrong("exposure", tls, "spec.exposure.tls");
    wrong("backup", json!({"schedule": "@daily"}), "spec.backup.destination");
    wrong("restore", json!({"from": null}), "spec.restore.from");
    wrong("restore", json!({"from": {}}), "spec.restore.from");
    wrong("upgrade", json!({"snapshotFirst": true}), "spec.upgrade.snapshotFirst");
    wrong("deletionPolicy", json!("Retain"), "spec.deletionPolicy");
    let size = json!({"etcd": {"managed": {"storage": {"size": "999999999999999P"}}}});
    wrong("data", size, "spec.data.etcd.managed.storage.size");
    refused::<ExampleApp>(
        &json!({"version": 1, "paused": "yes"}),
        &["spec.paused", "spec.version"],
    );
}

#[test]
fn a_null_in_a_list_or_a_map_does_not_take_the_rest_away_in_silence() {
    let features = json!({"exampleFeature1": null, "exampleFeature2": false});
    refused::<ExampleApp>(&with("features", features), &["spec.features"]);
    let image = json!({"pullSecrets": [{"name": "registry"}, null]});
    refused::<ExampleApp>(&with("image", image), &["spec.image.pullSecrets"]);
    let resources = json!({"limits": {"cpu": null, "memory": "1Gi"}});
    refused::<ExampleApp>(&with("resources", resources), &["spec.resources"]);
}
