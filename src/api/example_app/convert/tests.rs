//! Round trips of ExampleApp through its versions: no value is lost, and every edit takes effect.

mod objects;

use serde_json::{Value, json};

use crate::api::convert::{PRESERVED_FIELDS_ANNOTATION, convert};
use crate::api::names;
use objects::{everything_in_v1, everything_in_v1beta1, spec, white_paper};

const VERSIONS: [&str; 3] = ["v1alpha1", "v1beta1", "v1"];

fn to(version: &str, object: &Value) -> Value {
    convert(object.clone(), &format!("{}/{version}", names::APP_GROUP)).unwrap()
}

/// Conversion to each other version and back changes nothing.
#[track_caller]
fn round_trips(object: &Value) {
    let home = object["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap();
    for other in VERSIONS.iter().filter(|version| **version != home) {
        let there = to(other, object);
        let back = to(home, &there);
        assert_eq!(&back, object, "via {other}: {there:#}");
    }
}

#[test]
fn white_paper_object_round_trips_through_v1() {
    let hub = to("v1", &white_paper());
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
    assert_eq!(hub["status"]["backup"], Value::Null, "a time without a date is not a timestamp");
    round_trips(&white_paper());
}

#[test]
fn v1_with_every_field_round_trips_through_older_versions() {
    round_trips(&everything_in_v1());
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
fn v1beta1_with_every_field_preserves_only_the_order_of_features() {
    round_trips(&everything_in_v1beta1());
    let hub = to("v1", &everything_in_v1beta1());
    let preserved = hub["metadata"]["annotations"][PRESERVED_FIELDS_ANNOTATION].as_str().unwrap();
    let preserved: Value = serde_json::from_str(preserved).unwrap();
    assert_eq!(preserved, json!({"v1beta1": {"/spec/features": [["zebra", "ant"]]}}));
}

#[test]
fn any_value_in_any_field_round_trips() {
    let mut cases = 0;
    for mut whole in [white_paper(), everything_in_v1beta1(), everything_in_v1()] {
        let mut paths = Vec::new();
        for part in ["spec", "status"] {
            let fields = whole[part].as_object_mut().unwrap();
            fields.retain(|key, _| !V1_ALONE.contains(&key.as_str()));
        }
        for part in ["spec", "status"] {
            collect_paths(&whole[part], format!("/{part}"), &mut paths);
        }
        for path in paths {
            for odd in odd_values() {
                let mut object = whole.clone();
                *object.pointer_mut(&path).unwrap() = odd;
                round_trips(&object);
                cases += 1;
            }
            let mut object = whole.clone();
            let (block, key) = path.rsplit_once('/').unwrap();
            object.pointer_mut(block).unwrap().as_object_mut().unwrap().remove(key);
            round_trips(&object);
        }
    }
    assert!(cases > 1000, "only {cases} cases");
}

/// Fields that only v1 has. They are never destructured, so they are not tried one by one.
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

/// Every path below `value` that is not in a list.
fn collect_paths(value: &Value, at: String, paths: &mut Vec<String>) {
    for (key, below) in value.as_object().into_iter().flatten() {
        collect_paths(below, format!("{at}/{key}"), paths);
    }
    paths.push(at);
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
fn edit_of_the_feature_list_takes_effect() {
    let features = json!({"ant": true, "bee": false, "cat": false, "zebra": true});
    let hub = spec("v1", &json!({"version": "0.0.1", "features": features}));
    let mut beta = to("v1beta1", &hub);
    assert_eq!(beta["spec"]["features"], json!(["ant", "zebra"]));
    beta["spec"]["features"] = json!(["zebra", "bee"]);
    let edited = to("v1", &beta);
    assert_eq!(edited["spec"]["features"], json!({"bee": true, "cat": false, "zebra": true}));
}

#[test]
fn disabled_feature_is_preserved_by_unrelated_edits() {
    let hub = spec("v1", &json!({"version": "0.0.1", "features": {"ant": true, "bee": false}}));
    let mut beta = to("v1beta1", &hub);
    beta["spec"]["paused"] = json!(true);
    let edited = to("v1", &beta);
    assert_eq!(edited["spec"]["features"], json!({"ant": true, "bee": false}));
    assert_eq!(edited["spec"]["paused"], true);
}

#[test]
fn disabled_backups_are_suspended() {
    for (enabled, suspend) in [(json!(false), json!(true)), (json!(true), json!(false))] {
        let alpha = spec("v1alpha1", &json!({"backup": {"enabled": enabled}}));
        assert_eq!(to("v1", &alpha)["spec"], json!({"backup": {"suspend": suspend}}));
    }
    let unset = spec("v1alpha1", &json!({"backup": {}}));
    assert_eq!(to("v1", &unset)["spec"], json!({}));
}

#[test]
fn storage_type_in_typographic_quotes_round_trips() {
    let mut paper = white_paper();
    paper["spec"]["backup"]["storageType"] = json!("“s3”");
    assert_eq!(to("v1", &paper)["spec"]["backup"], json!({"suspend": false}));
    round_trips(&paper);
}

#[test]
fn missing_storage_type_is_not_guessed() {
    let backup = json!({"host": "my-backup.example.com", "bucketName": "example-backup"});
    let alpha = spec("v1alpha1", &json!({"backup": backup}));
    assert_eq!(to("v1", &alpha)["spec"], json!({}));
    round_trips(&alpha);
}

#[test]
fn invalid_value_is_moved_to_the_corresponding_field() {
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
    let store = json!({"storageType": "s3", "host": 5, "bucketName": null});
    assert_eq!(beta["spec"], json!({"version": 1.0, "destination": store}));
    round_trips(&alpha);
}

#[test]
fn map_in_place_of_the_list_is_not_converted() {
    let beta = spec("v1beta1", &json!({"version": "0.0.1", "features": {"ant": true}}));
    assert_eq!(to("v1", &beta)["spec"], json!({"version": "0.0.1"}));
    round_trips(&beta);
}

#[test]
fn url_in_place_of_the_host_is_not_converted() {
    let store =
        json!({"storageType": "s3", "host": "http://a.example.com", "bucketName": "bucket"});
    let alpha = spec("v1alpha1", &json!({"backup": store}));
    let s3 = &to("v1", &alpha)["spec"]["backup"]["destination"]["s3"];
    assert_eq!(s3, &json!({"bucket": "bucket"}));
    round_trips(&alpha);
}

#[test]
fn each_storage_type_selects_its_store() {
    let cases = [
        ("s3", json!({"s3": {"bucket": "name", "endpoint": "https://host1", "prefix": "p"}})),
        ("gcs", json!({"gcs": {"bucket": "name", "prefix": "p"}})),
        ("azure", json!({"azure": {"container": "name", "account": "host1", "prefix": "p"}})),
        ("volume", json!({"volume": {"claimRef": {"name": "name"}, "prefix": "p"}})),
    ];
    for (kind, expected) in cases {
        let store =
            json!({"storageType": kind, "host": "host1", "bucketName": "name", "prefix": "p"});
        let beta = spec("v1beta1", &json!({"destination": store}));
        assert_eq!(to("v1", &beta)["spec"]["backup"]["destination"], expected);
        round_trips(&beta);
    }
}

#[test]
fn changed_storage_type_drops_the_previous_store() {
    let mut alpha = to("v1alpha1", &everything_in_v1());
    alpha["spec"]["backup"]["storageType"] = json!("gcs");
    let hub = to("v1", &alpha);
    let backup = &hub["spec"]["backup"];
    assert_eq!(backup["destination"], json!({"gcs": {"bucket": "example-backup"}}));
    assert_eq!(backup["schedule"], "0 3 * * *");
}
