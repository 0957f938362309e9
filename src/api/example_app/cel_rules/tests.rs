//! Each CEL rule of ExampleApp, violated once in every version that can violate it.

use serde_json::{Value, json};

use crate::api::cel::violations;

fn violations_of(version: &str, old: Option<&Value>, new: &Value) -> Vec<String> {
    let whole = |spec: &Value| json!({"metadata": {"name": "app"}, "spec": spec});
    violations("ExampleApp", version, old.map(whole).as_ref(), &whole(new))
}

#[track_caller]
fn rejected(version: &str, old: Option<&Value>, new: &Value, message: &str) {
    let violations = violations_of(version, old, new);
    assert!(violations.len() == 1 && violations[0].contains(message), "{new} got {violations:?}");
}

#[track_caller]
fn accepted(version: &str, old: Option<&Value>, new: &Value) {
    let violations = violations_of(version, old, new);
    assert!(violations.is_empty(), "{new} got {violations:?}");
}

#[test]
fn schedule_requires_a_destination_in_every_version() {
    let schedule = "0 3 * * *";
    rejected(
        "v1",
        None,
        &json!({"backup": {"schedule": schedule}}),
        "requires `backup.destination`",
    );
    rejected("v1beta1", None, &json!({"schedule": schedule}), "requires `destination");
    rejected("v1beta1", None, &json!({"schedule": schedule, "destination": {}}), "requires");
    let store = json!({"storageType": "gcs", "bucketName": "bucket"});
    accepted("v1beta1", None, &json!({"schedule": schedule, "destination": store}));
    let destination = json!({"gcs": {"bucket": "bucket"}});
    accepted("v1", None, &json!({"backup": {"schedule": schedule, "destination": destination}}));
}

#[test]
fn data_source_is_immutable_in_every_version() {
    let reference = |name: &str| json!({"data": {"etcd": {"clusterRef": {"name": name}}}});
    let managed = json!({"data": {"etcd": {"managed": {"replicas": 3}}}});
    for own in [json!({}), managed] {
        rejected("v1", Some(&own), &reference("a"), "may not be changed");
        rejected("v1", Some(&reference("a")), &own, "may not be changed");
    }
    rejected("v1", Some(&reference("a")), &reference("b"), "may not be changed");
    accepted("v1", Some(&reference("a")), &reference("a"));
    let both = json!({"data": {"etcd": {"managed": {}, "clusterRef": {"name": "a"}}}});
    rejected("v1", None, &both, "both `clusterRef` and `managed`");
    let flat = json!({"etcdCluster": "a"});
    rejected("v1beta1", Some(&json!({})), &flat, "may not be changed");
    rejected("v1beta1", Some(&flat), &json!({}), "may not be changed");
    rejected("v1beta1", Some(&flat), &json!({"etcdCluster": "b"}), "may not be changed");
    accepted("v1beta1", Some(&flat), &flat);
}

#[test]
fn replicas_and_autoscaling_are_mutually_exclusive() {
    let range = |min: i32, max: i32| json!({"minReplicas": min, "maxReplicas": max});
    accepted("v1", None, &json!({"replicas": 3}));
    accepted("v1", None, &json!({"autoscaling": range(2, 2)}));
    rejected("v1", None, &json!({"autoscaling": range(3, 2)}), "must not be more than");
    rejected("v1", None, &json!({"replicas": 3, "autoscaling": range(1, 2)}), "both `replicas`");
}

#[test]
fn restore_is_only_for_creation_and_a_dedicated_cluster() {
    let restore = |name: &str| json!({"restore": {"from": {"backupRef": {"name": name}}}});
    accepted("v1", None, &restore("a"));
    accepted("v1", Some(&restore("a")), &restore("a"));
    accepted("v1", Some(&restore("a")), &json!({}));
    rejected("v1", Some(&json!({})), &restore("a"), "only be set when");
    rejected("v1", Some(&restore("a")), &restore("b"), "only be set when");
    let mut other = restore("a");
    other["data"] = json!({"etcd": {"clusterRef": {"name": "a"}}});
    rejected("v1", None, &other, "cannot be combined with");
}

#[test]
fn volume_class_is_immutable_and_size_never_shrinks() {
    let stored = |storage: Value| json!({"data": {"etcd": {"managed": {"storage": storage}}}});
    let old = stored(json!({"size": "10Gi", "className": "fast"}));
    accepted("v1", Some(&old), &stored(json!({"size": "20Gi", "className": "fast"})));
    let smaller = stored(json!({"size": "5Gi", "className": "fast"}));
    rejected("v1", Some(&old), &smaller, "may not be decreased");
    rejected("v1", Some(&old), &stored(json!({"className": "fast"})), "may not be removed");
    rejected("v1", Some(&old), &stored(json!({"size": "10Gi"})), "keep their StorageClass");
}

#[test]
fn required_fields_are_named() {
    rejected(
        "v1",
        None,
        &json!({"upgrade": {"snapshotFirst": true}}),
        "requires `backup.destination`",
    );
    accepted("v1", None, &json!({"upgrade": {"snapshotFirst": false}}));
    let tls = json!({"exposure": {"tls": {"secretRef": {"name": "a"}}}});
    rejected("v1", None, &tls, "`tls` requires `host`");
}

#[test]
fn backup_store_must_be_valid_in_the_hub() {
    let alpha = |store: &Value| json!({"backup": store});
    let beta = |store: &Value| json!({"destination": store});
    let good = [
        json!({}),
        json!({"storageType": "s3", "bucketName": "bucket"}),
        json!({"storageType": "s3", "bucketName": "bucket", "host": "a.example.com:9000"}),
        json!({"storageType": "azure", "bucketName": "bucket", "host": "account"}),
        json!({"storageType": "volume", "bucketName": "c"}),
    ];
    for store in good {
        accepted("v1alpha1", None, &alpha(&store));
        accepted("v1beta1", None, &beta(&store));
    }
    let bad = [
        (json!({"storageType": "s3"}), "both `storageType` and `bucketName`"),
        (json!({"bucketName": "bucket"}), "both `storageType` and `bucketName`"),
        (json!({"host": "a.example.com"}), "`host` requires `storageType`"),
        (
            json!({"storageType": "gcs", "bucketName": "bucket", "host": "a"}),
            "`host` requires `storageType`",
        ),
        (json!({"storageType": "azure", "bucketName": "bucket"}), "requires the storage account"),
        (
            json!({"storageType": "azure", "bucketName": "bucket", "host": "a.b"}),
            "requires the storage account",
        ),
        (json!({"storageType": "s3", "bucketName": "b"}), "3 to 63 characters"),
        (json!({"storageType": "volume", "bucketName": "a_b"}), "PersistentVolumeClaim"),
    ];
    for (store, message) in bad {
        rejected("v1alpha1", None, &alpha(&store), message);
        rejected("v1beta1", None, &beta(&store), message);
    }
    rejected("v1beta1", None, &beta(&json!({"prefix": "p"})), "`prefix` requires");
}

#[test]
fn name_is_short_enough_for_derived_names() {
    let longest = "a".repeat(40);
    for version in ["v1", "v1beta1", "v1alpha1"] {
        let named = |name: &str| {
            let object = json!({"metadata": {"name": name}, "spec": {}});
            violations("ExampleApp", version, None, &object)
        };
        assert!(named(&longest).is_empty());
        for bad in [&format!("{longest}a"), "1a", "a.b", "a-"] {
            assert_eq!(named(bad).len(), 1, "{bad} was accepted in {version}");
        }
    }
}
