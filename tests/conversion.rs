//! Property tests of conversion on objects generated from the schemas: every pair of versions in
//! both directions, with every leaf set, and with keys missing, null, unknown or of another type.
//! `QUORATE_CASES` sets the number of objects for each pair of versions, `QUORATE_SEED` the seed.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test fails by panicking"
)]

#[path = "conversion/annotation.rs"]
mod annotation;
#[path = "support/arbitrary_objects.rs"]
mod arbitrary_objects;
#[path = "conversion/meaning.rs"]
mod meaning;
#[path = "support/schemas.rs"]
mod schemas;

use arbitrary_objects::{Fill, Objects, runner};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use quorate::api::convert::{PRESERVED_FIELDS_ANNOTATION, convert};
use quorate::api::kinds::{self, Kind};
use schemas::schema;
use serde_json::{Value, json};

fn kind(name: &str) -> &'static Kind {
    kinds::by_name(name).unwrap()
}

/// Objects of one version, from its schema.
fn objects(kind: &Kind, version: &str, fill: Fill) -> Objects {
    Objects {
        api_version: format!("{}/{version}", kind.group),
        kind: kind.name.to_owned(),
        schema: schema(kind.name, version),
        fill,
        annotation: PRESERVED_FIELDS_ANNOTATION.to_owned(),
    }
}

fn to(kind: &Kind, version: &str, object: &Value) -> Value {
    convert(object.clone(), &format!("{}/{version}", kind.group)).unwrap()
}

/// Tests a property in both directions of a pair. Full objects are large, so there are few of them.
fn both_directions(
    kind: &'static Kind,
    pair: [&'static str; 2],
    holds: impl Fn(&'static str, &'static str, &Value) -> Result<(), TestCaseError>,
) {
    let [one, other] = pair;
    for (from, to) in [(one, other), (other, one)] {
        for (fill, percent) in [(Fill::Full, 4), (Fill::Valid, 23), (Fill::Disturbed, 23)] {
            let mut runner = runner(percent);
            let holds = |object: Value| holds(from, to, &object);
            if let Err(error) = runner.run(&objects(kind, from, fill), holds) {
                panic!("{} {from} -> {to}, {fill:?}: {error}", kind.name);
            }
        }
    }
}

fn same(left: &Value, right: &Value) -> Result<(), TestCaseError> {
    prop_assert_eq!(left, right);
    Ok(())
}

/// The object without empty annotations: `{}` and `null` are the same as none for the API server,
/// and conversion removes an empty map.
fn normalized(object: &Value) -> Value {
    let mut object = object.clone();
    let empty =
        |value: &Value| value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
    if object["metadata"].get("annotations").is_some_and(empty) {
        object["metadata"].as_object_mut().unwrap().remove("annotations");
    }
    object
}

/// The object without the preserved-fields annotation.
fn without_annotation(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(annotations) =
        object["metadata"].get_mut("annotations").and_then(Value::as_object_mut)
    {
        annotations.remove(PRESERVED_FIELDS_ANNOTATION);
    }
    normalized(&object)
}

/// Asserts a round trip: other metadata is unchanged in both versions, and no annotation is left.
fn assert_round_trip(object: &Value, converted: &Value, back: &Value) -> Result<(), TestCaseError> {
    same(&without_annotation(object)["metadata"], &without_annotation(converted)["metadata"])?;
    same(&without_annotation(object), &normalized(back))
}

/// Spec and status.
fn parts(object: &Value) -> Value {
    json!({ "spec": object.get("spec"), "status": object.get("status") })
}

fn round_trips(name: &str, pair: [&'static str; 2]) {
    let kind = kind(name);
    both_directions(kind, pair, |from, other, object| {
        let converted = to(kind, other, object);
        assert_round_trip(object, &converted, &to(kind, from, &converted))
    });
}

#[test]
fn cluster_round_trips_between_v1alpha1_and_v1() {
    round_trips("EtcdCluster", ["v1alpha1", "v1"]);
}

#[test]
fn cluster_round_trips_between_v1beta1_and_v1() {
    round_trips("EtcdCluster", ["v1beta1", "v1"]);
}

#[test]
fn cluster_round_trips_between_v1alpha1_and_v1beta1() {
    round_trips("EtcdCluster", ["v1alpha1", "v1beta1"]);
}

#[test]
fn app_round_trips_between_v1alpha1_and_v1() {
    round_trips("ExampleApp", ["v1alpha1", "v1"]);
}

#[test]
fn app_round_trips_between_v1beta1_and_v1() {
    round_trips("ExampleApp", ["v1beta1", "v1"]);
}

#[test]
fn app_round_trips_between_v1alpha1_and_v1beta1() {
    round_trips("ExampleApp", ["v1alpha1", "v1beta1"]);
}

/// The result does not depend on the path of conversions, and the whole chain round-trips.
fn path_does_not_matter(name: &str) {
    let kind = kind(name);
    both_directions(kind, ["v1alpha1", "v1"], |from, other, object| {
        let through = to(kind, "v1beta1", object);
        let (indirect, direct) = (to(kind, other, &through), to(kind, other, object));
        same(&normalized(&indirect), &normalized(&direct))?;
        assert_round_trip(object, &indirect, &to(kind, from, &to(kind, "v1beta1", &indirect)))
    });
}

#[test]
fn path_of_conversions_does_not_matter_for_a_cluster() {
    path_does_not_matter("EtcdCluster");
}

#[test]
fn path_of_conversions_does_not_matter_for_an_app() {
    path_does_not_matter("ExampleApp");
}

/// Pointers of all leaves except nulls, which request the default.
fn leaves(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                leaves(
                    value,
                    &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")),
                    found,
                );
            }
        }
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            found.push(at.to_owned());
        }
    }
}

#[test]
fn any_input_is_converted_or_rejected_without_a_panic() {
    let odd = [
        json!(null),
        json!(1),
        json!({}),
        json!({"apiVersion": 5, "kind": "EtcdCluster"}),
        json!({"apiVersion": "etcd.appdelivery.cncf.io/v9", "kind": "EtcdCluster"}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment"}),
    ];
    for object in odd {
        assert!(convert(object, "etcd.appdelivery.cncf.io/v1").is_err());
    }
    let hub = "etcd.appdelivery.cncf.io/v1";
    for rest in [
        json!({}),
        json!({"metadata": null}),
        json!({"spec": null}),
        json!({"spec": 5, "status": []}),
        json!({"metadata": {"annotations": {PRESERVED_FIELDS_ANNOTATION: "]["}}, "spec": {}}),
        json!({"metadata": {"annotations": {PRESERVED_FIELDS_ANNOTATION: 7}}, "spec": {}}),
    ] {
        let mut object =
            json!({"apiVersion": "etcd.appdelivery.cncf.io/v1alpha1", "kind": "EtcdCluster"});
        object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        let converted = convert(object.clone(), hub).unwrap();
        assert_eq!(converted["apiVersion"], hub);
        assert!(converted["metadata"].is_object());
        assert_eq!(parts(&converted), parts(&object));
    }
}
