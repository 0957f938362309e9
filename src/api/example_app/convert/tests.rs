//! ExampleApp through its versions: what was said is said again, and what was changed is changed.

mod objects;

use serde_json::{Value, json};

use crate::api::convert::{ANNOTATION, convert};
use crate::api::names;
use objects::{everything_in_v1, everything_in_v1beta1, spec, the_papers};

const VERSIONS: [&str; 3] = ["v1alpha1", "v1beta1", "v1"];

fn to(version: &str, object: &Value) -> Value {
    convert(object.clone(), &format!("{}/{version}", names::APP_GROUP)).unwrap()
}

/// There and back again, by way of each other version, changes nothing.
#[track_caller]
fn survives(object: &Value) {
    let home = object["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap();
    for other in VERSIONS.iter().filter(|version| **version != home) {
        let there = to(other, object);
        let back = to(home, &there);
        assert_eq!(&back, object, "by way of {other}: {there:#}");
    }
}

#[test]
fn the_papers_object_becomes_v1_and_comes_back_unchanged() {
    let hub = to("v1", &the_papers());
    let expected = json!({
        "version": "0.0.1",
        "features": {"exampleFeature1": true, "exampleFeature2": false},
        "backup": {
            "suspend": false,
            "destination": {"s3": {
                "bucket": "example-backup", "endpoint": "https://my-backup.example.com",
            }},
        },
    });
    assert_eq!(hub["spec"], expected);
    assert_eq!(hub["status"]["currentVersion"], "0.0.1");
    assert_eq!(hub["status"]["backup"], Value::Null, "a time of no day is not a moment");
    survives(&the_papers());
}

#[test]
fn v1_with_every_field_survives_the_older_versions() {
    survives(&everything_in_v1());
    let alpha = to("v1alpha1", &everything_in_v1());
    let shown = json!({
        "enabled": false,
        "storageType": "s3",
        "host": "minio.example.com:9000",
        "bucketName": "example-backup",
    });
    assert_eq!(alpha["spec"]["backup"], shown);
}

#[test]
fn v1beta1_with_every_field_needs_nothing_kept_in_v1_but_the_order_of_its_list() {
    survives(&everything_in_v1beta1());
    let hub = to("v1", &everything_in_v1beta1());
    let kept = hub["metadata"]["annotations"][ANNOTATION].as_str().unwrap();
    let kept: Value = serde_json::from_str(kept).unwrap();
    assert_eq!(kept, json!({"v1beta1": {"/spec/features": [["zebra", "ant"]]}}));
}

#[test]
fn whatever_stands_anywhere_survives_every_version() {
    let mut tried = 0;
    for mut whole in [the_papers(), everything_in_v1beta1(), everything_in_v1()] {
        let mut places = Vec::new();
        for part in ["spec", "status"] {
            let fields = whole[part].as_object_mut().unwrap();
            fields.retain(|key, _| !V1_ALONE.contains(&key.as_str()));
        }
        for part in ["spec", "status"] {
            find_places(&whole[part], format!("/{part}"), &mut places);
        }
        for place in places {
            for odd in odd_values() {
                let mut object = whole.clone();
                *object.pointer_mut(&place).unwrap() = odd;
                survives(&object);
                tried += 1;
            }
            let mut object = whole.clone();
            let (block, key) = place.rsplit_once('/').unwrap();
            object.pointer_mut(block).unwrap().as_object_mut().unwrap().remove(key);
            survives(&object);
        }
    }
    assert!(tried > 1000, "only {tried} were tried");
}

/// What only v1 can say. Nothing there is ever taken apart, so it need not be tried piece by piece.
const V1_ALONE: &[&str] = &[
    "image",
    "autoscaling",
    "exposure",
    "restore",
    "upgrade",
    "resources",
    "binding",
    "progress",
    "conditions",
    "observedGeneration",
];

/// Every place below `value` that is not in a list.
fn find_places(value: &Value, at: String, places: &mut Vec<String>) {
    for (key, below) in value.as_object().into_iter().flatten() {
        find_places(below, format!("{at}/{key}"), places);
    }
    places.push(at);
}

fn odd_values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(5),
        json!(2.5),
        json!(""),
        json!("s3"),
        json!("gcs"),
        json!("volume"),
        json!("“s3”"),
        json!("a/b"),
        json!("https://a.example.com"),
        json!("http://a.example.com/b?c"),
        json!("ftp://"),
        json!("a://b://c"),
        json!([]),
        json!(["a", "a"]),
        json!({}),
        json!({"a": true}),
        json!({"a": false}),
        json!({"a": "b"}),
        json!({"s3": {}, "gcs": {}}),
        json!({"s3": {"bucket": 5, "region": "x"}}),
        json!({"volume": {"claimRef": null}}),
        json!({"volume": {"claimRef": {}}}),
        json!({"storageType": "s3", "host": "http://a"}),
        json!({"storageType": "s3", "host": "a/b", "bucketName": null}),
        json!({"storageType": "gcs", "host": "a.example.com", "prefix": "p"}),
        json!({"storageType": "volume", "bucketName": "claim", "host": 1}),
        json!({"host": "a.example.com", "bucketName": "bucket"}),
        json!({"name": null}),
        json!({"etcd": {"clusterRef": {"name": 5}}}),
        json!({"lastBackupTime": "12:00"}),
    ]
}

#[test]
fn an_edit_of_the_list_of_features_wins() {
    let features = json!({"ant": true, "bee": false, "cat": false, "zebra": true});
    let hub = spec("v1", &json!({"version": "0.0.1", "features": features}));
    let mut beta = to("v1beta1", &hub);
    assert_eq!(beta["spec"]["features"], json!(["ant", "zebra"]));
    beta["spec"]["features"] = json!(["zebra", "bee"]);
    let edited = to("v1", &beta);
    assert_eq!(edited["spec"]["features"], json!({"bee": true, "cat": false, "zebra": true}));
}

#[test]
fn what_is_turned_off_stays_so_when_something_else_is_edited() {
    let hub = spec("v1", &json!({"version": "0.0.1", "features": {"ant": true, "bee": false}}));
    let mut beta = to("v1beta1", &hub);
    beta["spec"]["paused"] = json!(true);
    let edited = to("v1", &beta);
    assert_eq!(edited["spec"]["features"], json!({"ant": true, "bee": false}));
    assert_eq!(edited["spec"]["paused"], true);
}

#[test]
fn backups_that_are_not_enabled_are_suspended() {
    for (enabled, suspend) in [(json!(false), json!(true)), (json!(true), json!(false))] {
        let alpha = spec("v1alpha1", &json!({"backup": {"enabled": enabled}}));
        assert_eq!(to("v1", &alpha)["spec"], json!({"backup": {"suspend": suspend}}));
    }
    let silent = spec("v1alpha1", &json!({"backup": {}}));
    assert_eq!(to("v1", &silent)["spec"], json!({}));
}

#[test]
fn a_storage_type_in_typographic_quotes_survives_and_nothing_is_guessed() {
    let mut paper = the_papers();
    paper["spec"]["backup"]["storageType"] = json!("“s3”");
    assert_eq!(to("v1", &paper)["spec"]["backup"], json!({"suspend": false}));
    survives(&paper);
}

#[test]
fn a_place_without_a_storage_type_is_not_guessed() {
    let backup = json!({"host": "my-backup.example.com", "bucketName": "example-backup"});
    let alpha = spec("v1alpha1", &json!({"backup": backup}));
    assert_eq!(to("v1", &alpha)["spec"], json!({}));
    survives(&alpha);
}

#[test]
fn a_misfit_is_carried_to_where_its_field_is_in_the_other_version() {
    let alpha = spec(
        "v1alpha1",
        &json!({
            "appVersion": 1.0,
            "backup": {"enabled": "yes", "storageType": "s3", "host": 5, "bucketName": null},
        }),
    );
    let hub = to("v1", &alpha);
    let expected = json!({
        "version": 1.0,
        "backup": {"suspend": "yes", "destination": {"s3": {"endpoint": 5, "bucket": null}}},
    });
    assert_eq!(hub["spec"], expected);
    let beta = to("v1beta1", &hub);
    let place = json!({"storageType": "s3", "host": 5, "bucketName": null});
    assert_eq!(beta["spec"], json!({"version": 1.0, "destination": place}));
    survives(&alpha);
}

#[test]
fn a_map_where_the_list_belongs_is_not_taken_for_the_hubs_own() {
    let beta = spec("v1beta1", &json!({"version": "0.0.1", "features": {"ant": true}}));
    assert_eq!(to("v1", &beta)["spec"], json!({"version": "0.0.1"}));
    survives(&beta);
}

#[test]
fn a_url_where_the_host_belongs_is_not_taken_for_the_hubs_own() {
    let place =
        json!({"storageType": "s3", "host": "http://a.example.com", "bucketName": "bucket"});
    let alpha = spec("v1alpha1", &json!({"backup": place}));
    let s3 = &to("v1", &alpha)["spec"]["backup"]["destination"]["s3"];
    assert_eq!(s3, &json!({"bucket": "bucket"}));
    survives(&alpha);
}

#[test]
fn each_storage_type_selects_its_block() {
    let cases = [
        ("s3", json!({"s3": {"bucket": "name", "endpoint": "https://host1", "prefix": "p"}})),
        ("gcs", json!({"gcs": {"bucket": "name", "prefix": "p"}})),
        ("azure", json!({"azure": {"container": "name", "account": "host1", "prefix": "p"}})),
        ("volume", json!({"volume": {"claimRef": {"name": "name"}, "prefix": "p"}})),
    ];
    for (kind, expected) in cases {
        let place =
            json!({"storageType": kind, "host": "host1", "bucketName": "name", "prefix": "p"});
        let beta = spec("v1beta1", &json!({"destination": place}));
        assert_eq!(to("v1", &beta)["spec"]["backup"]["destination"], expected);
        survives(&beta);
    }
}

#[test]
fn another_storage_type_leaves_nothing_of_the_old_block() {
    let mut alpha = to("v1alpha1", &everything_in_v1());
    alpha["spec"]["backup"]["storageType"] = json!("gcs");
    let hub = to("v1", &alpha);
    let backup = &hub["spec"]["backup"];
    assert_eq!(backup["destination"], json!({"gcs": {"bucket": "example-backup"}}));
    assert_eq!(backup["schedule"], "0 3 * * *");
}
