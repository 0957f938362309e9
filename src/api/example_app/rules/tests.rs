//! The rules of ExampleApp, each broken once in every version that can break it.

use serde_json::{Value, json};

use crate::api::cel::objections;

fn judged(version: &str, old: Option<&Value>, new: &Value) -> Vec<String> {
    let whole = |spec: &Value| json!({"metadata": {"name": "app"}, "spec": spec});
    objections("ExampleApp", version, old.map(whole).as_ref(), &whole(new))
}

#[track_caller]
fn refused(version: &str, old: Option<&Value>, new: &Value, words: &str) {
    let said = judged(version, old, new);
    assert!(said.len() == 1 && said[0].contains(words), "{new} got {said:?}");
}

#[track_caller]
fn taken(version: &str, old: Option<&Value>, new: &Value) {
    let said = judged(version, old, new);
    assert!(said.is_empty(), "{new} got {said:?}");
}

#[test]
fn a_schedule_needs_a_place_in_every_version_that_has_one() {
    let schedule = "0 3 * * *";
    refused("v1", None, &json!({"backup": {"schedule": schedule}}), "needs `backup.destination`");
    refused("v1beta1", None, &json!({"schedule": schedule}), "needs `destination");
    refused("v1beta1", None, &json!({"schedule": schedule, "destination": {}}), "needs");
    let place = json!({"storageType": "gcs", "bucketName": "bucket"});
    taken("v1beta1", None, &json!({"schedule": schedule, "destination": place}));
    let destination = json!({"gcs": {"bucket": "bucket"}});
    taken("v1", None, &json!({"backup": {"schedule": schedule, "destination": destination}}));
}

#[test]
fn the_source_of_the_data_stays_in_every_version_that_names_it() {
    let reference = |name: &str| json!({"data": {"etcd": {"clusterRef": {"name": name}}}});
    let managed = json!({"data": {"etcd": {"managed": {"replicas": 3}}}});
    for own in [json!({}), managed] {
        refused("v1", Some(&own), &reference("a"), "may not be changed");
        refused("v1", Some(&reference("a")), &own, "may not be changed");
    }
    refused("v1", Some(&reference("a")), &reference("b"), "may not be changed");
    taken("v1", Some(&reference("a")), &reference("a"));
    let both = json!({"data": {"etcd": {"managed": {}, "clusterRef": {"name": "a"}}}});
    refused("v1", None, &both, "both `clusterRef` and `managed`");
    let flat = json!({"etcdCluster": "a"});
    refused("v1beta1", Some(&json!({})), &flat, "may not be changed");
    refused("v1beta1", Some(&flat), &json!({}), "may not be changed");
    refused("v1beta1", Some(&flat), &json!({"etcdCluster": "b"}), "may not be changed");
    taken("v1beta1", Some(&flat), &flat);
}

#[test]
fn either_a_number_or_a_range_says_how_many_replicas_there_are() {
    let range = |least: i32, most: i32| json!({"minReplicas": least, "maxReplicas": most});
    taken("v1", None, &json!({"replicas": 3}));
    taken("v1", None, &json!({"autoscaling": range(2, 2)}));
    refused("v1", None, &json!({"autoscaling": range(3, 2)}), "must not be more than");
    refused("v1", None, &json!({"replicas": 3, "autoscaling": range(1, 2)}), "both `replicas`");
}

#[test]
fn data_to_begin_with_is_only_for_a_beginning_and_only_for_ones_own_cluster() {
    let restore = |name: &str| json!({"restore": {"from": {"backupRef": {"name": name}}}});
    taken("v1", None, &restore("a"));
    taken("v1", Some(&restore("a")), &restore("a"));
    taken("v1", Some(&restore("a")), &json!({}));
    refused("v1", Some(&json!({})), &restore("a"), "only be given when");
    refused("v1", Some(&restore("a")), &restore("b"), "only be given when");
    let mut other = restore("a");
    other["data"] = json!({"etcd": {"clusterRef": {"name": "a"}}});
    refused("v1", None, &other, "does not go with");
}

#[test]
fn a_volume_keeps_its_class_and_never_shrinks() {
    let stored = |storage: Value| json!({"data": {"etcd": {"managed": {"storage": storage}}}});
    let old = stored(json!({"size": "10Gi", "className": "fast"}));
    taken("v1", Some(&old), &stored(json!({"size": "20Gi", "className": "fast"})));
    let smaller = stored(json!({"size": "5Gi", "className": "fast"}));
    refused("v1", Some(&old), &smaller, "may not shrink");
    refused("v1", Some(&old), &stored(json!({"className": "fast"})), "may not be removed");
    refused("v1", Some(&old), &stored(json!({"size": "10Gi"})), "stays in its class");
}

#[test]
fn what_needs_something_else_says_so() {
    refused("v1", None, &json!({"upgrade": {"snapshotFirst": true}}), "needs `backup.destination`");
    taken("v1", None, &json!({"upgrade": {"snapshotFirst": false}}));
    let tls = json!({"exposure": {"tls": {"secretRef": {"name": "a"}}}});
    refused("v1", None, &tls, "`tls` needs `host`");
}

#[test]
fn a_place_must_be_one_that_the_hub_can_name() {
    let alpha = |place: &Value| json!({"backup": place});
    let beta = |place: &Value| json!({"destination": place});
    let good = [
        json!({}),
        json!({"storageType": "s3", "bucketName": "bucket"}),
        json!({"storageType": "s3", "bucketName": "bucket", "host": "a.example.com:9000"}),
        json!({"storageType": "azure", "bucketName": "bucket", "host": "account"}),
        json!({"storageType": "volume", "bucketName": "c"}),
    ];
    for place in good {
        taken("v1alpha1", None, &alpha(&place));
        taken("v1beta1", None, &beta(&place));
    }
    let bad = [
        (json!({"storageType": "s3"}), "both `storageType` and `bucketName`"),
        (json!({"bucketName": "bucket"}), "both `storageType` and `bucketName`"),
        (json!({"host": "a.example.com"}), "`host` goes with"),
        (json!({"storageType": "gcs", "bucketName": "bucket", "host": "a"}), "`host` goes with"),
        (json!({"storageType": "azure", "bucketName": "bucket"}), "needs the storage account"),
        (
            json!({"storageType": "azure", "bucketName": "bucket", "host": "a.b"}),
            "needs the storage account",
        ),
        (json!({"storageType": "s3", "bucketName": "b"}), "3 to 63 characters"),
        (json!({"storageType": "volume", "bucketName": "a_b"}), "PersistentVolumeClaim"),
    ];
    for (place, words) in bad {
        refused("v1alpha1", None, &alpha(&place), words);
        refused("v1beta1", None, &beta(&place), words);
    }
    refused("v1beta1", None, &beta(&json!({"prefix": "p"})), "`prefix` needs");
}

#[test]
fn the_name_leaves_room_for_what_is_named_after_it() {
    let longest = "a".repeat(40);
    for version in ["v1", "v1beta1", "v1alpha1"] {
        let named = |name: &str| {
            let object = json!({"metadata": {"name": name}, "spec": {}});
            objections("ExampleApp", version, None, &object)
        };
        assert!(named(&longest).is_empty());
        for bad in [&format!("{longest}a"), "1a", "a.b", "a-"] {
            assert_eq!(named(bad).len(), 1, "{bad} was taken in {version}");
        }
    }
}
