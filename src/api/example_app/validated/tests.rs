//! Tests of reading a validated ExampleApp.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::api::destination::validated::ObjectStore;
use crate::api::pod::PullPolicy;
use crate::api::validated::tests::{
    assert_defaults_keep_meaning, assert_reads_as, assert_rejected, value,
};

fn with(key: &str, value: Value) -> Value {
    let mut spec = json!({"version": "0.0.1"});
    spec[key] = value;
    spec
}

fn bare() -> ExampleApp {
    ExampleApp {
        version: AppRelease { major: 0, minor: 0, patch: 1 },
        image: ImagePull { repository: None, policy: None, secrets: Vec::new() },
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

/// Every field that can be combined with the others.
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
fn only_the_version_is_required() {
    assert_reads_as(&json!({"version": "0.0.1"}), &bare());
}

#[test]
fn null_is_the_same_as_unset() {
    let keys = whole().as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    for key in keys.iter().chain([&"autoscaling".to_owned()]).filter(|key| *key != "version") {
        assert_reads_as(&with(key, Value::Null), &bare());
    }
}

#[test]
fn every_field_is_read() {
    let app = value::<ExampleApp>(&whole());
    let requests = app.resources.requests.as_ref().unwrap();
    assert_eq!(requests.get("cpu").unwrap().0, "100m");
    // A destination sets the default schedule, also while backups are suspended.
    let plan = BackupConfig {
        schedule: Some("0 3 * * *".to_owned()),
        time_zone: Some("Europe/Berlin".to_owned()),
        suspend: true,
        store: Some(ObjectStore::Gcs {
            bucket: "backups".to_owned(),
            prefix: None,
            credentials: None,
        }),
        keep_last: Some(7),
        keep_days: None,
        verify_schedule: None,
    };
    let expected = ExampleApp {
        version: AppRelease { major: 1, minor: 20, patch: 3 },
        image: ImagePull {
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
        restore: Some(RestoreSource::Backup("old".to_owned())),
        upgrade: Upgrade { snapshot_first: true, rollback_after_failed_starts: 1 },
        resources: app.resources.clone(),
        paused: true,
        deletion: DeletionPolicy::Disconnect,
    };
    assert_eq!(app, expected);
}

#[test]
fn autoscaling_has_the_defaults_of_kubernetes() {
    let range = |range: Value| value::<ExampleApp>(&with("autoscaling", range)).scale;
    let expected = Replicas::Range { min: 1, max: 5, target_percent: 80 };
    assert_eq!(range(json!({"maxReplicas": 5})), expected);
    let range_fields =
        json!({"minReplicas": 2, "maxReplicas": 9, "targetCPUUtilizationPercentage": 1000});
    assert_eq!(range(range_fields), Replicas::Range { min: 2, max: 9, target_percent: 1000 });
}

#[test]
fn cluster_ref_excludes_a_dedicated_cluster() {
    let spec = with("data", json!({"etcd": {"clusterRef": {"name": "main"}}}));
    assert_eq!(value::<ExampleApp>(&spec).data, Data::Cluster("main".to_owned()));
}

#[test]
fn written_defaults_do_not_change_the_value() {
    let same = assert_defaults_keep_meaning::<ExampleApp>;
    same(&json!({"version": "0.0.1"}));
    same(&whole());
    // Each field alone, except those that require another one.
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
fn errors_name_exactly_the_invalid_fields() {
    let wrong = |key: &str, value: Value, path: &str| {
        assert_rejected::<ExampleApp>(&with(key, value), &[path]);
    };
    assert_rejected::<ExampleApp>(&json!({"replicas": 1}), &["spec.version"]);
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
    assert_rejected::<ExampleApp>(
        &json!({"version": 1, "paused": "yes"}),
        &["spec.paused", "spec.version"],
    );
}

#[test]
fn null_in_a_list_or_map_is_an_error() {
    let features = json!({"exampleFeature1": null, "exampleFeature2": false});
    assert_rejected::<ExampleApp>(&with("features", features), &["spec.features"]);
    let image = json!({"pullSecrets": [{"name": "registry"}, null]});
    assert_rejected::<ExampleApp>(&with("image", image), &["spec.image.pullSecrets"]);
    let resources = json!({"limits": {"cpu": null, "memory": "1Gi"}});
    assert_rejected::<ExampleApp>(&with("resources", resources), &["spec.resources"]);
}
