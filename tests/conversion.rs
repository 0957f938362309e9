//! What conversion promises, tried on objects that are made from the schemas: every pair of
//! versions, both ways, with every leaf set, with keys missing, null, unknown or of another type.
//! `QUORATE_CASES` sets on how many objects a property is tried for each pair of versions,
//! `QUORATE_SEED` on which.
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
#[path = "support/generate.rs"]
mod generate;
#[path = "conversion/meaning.rs"]
mod meaning;
#[path = "support/schemas.rs"]
mod schemas;

use generate::{Care, Objects, runner};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use quorate::api::convert::{PRESERVED_FIELDS_ANNOTATION, convert};
use quorate::api::kinds::{self, Kind};
use schemas::schema;
use serde_json::{Value, json};

fn kind(name: &str) -> &'static Kind {
    kinds::by_name(name).unwrap()
}

/// The objects of one version, from the schema in its definition.
fn objects(kind: &Kind, version: &str, care: Care) -> Objects {
    Objects {
        api_version: format!("{}/{version}", kind.group),
        kind: kind.name.to_owned(),
        schema: schema(kind.name, version),
        care,
        annotation: PRESERVED_FIELDS_ANNOTATION.to_owned(),
    }
}

fn to(kind: &Kind, version: &str, object: &Value) -> Value {
    convert(object.clone(), &format!("{}/{version}", kind.group)).unwrap()
}

/// Both versions of a pair, each as the one to begin with. Full objects are large, and few do.
fn each_way(
    kind: &'static Kind,
    pair: [&'static str; 2],
    holds: impl Fn(&'static str, &'static str, &Value) -> Result<(), TestCaseError>,
) {
    let [one, other] = pair;
    for (from, to) in [(one, other), (other, one)] {
        for (care, percent) in [(Care::Full, 4), (Care::Valid, 23), (Care::Disturbed, 23)] {
            let mut runner = runner(percent);
            let holds = |object: Value| holds(from, to, &object);
            if let Err(why) = runner.run(&objects(kind, from, care), holds) {
                panic!("{} {from} -> {to}, {care:?}: {why}", kind.name);
            }
        }
    }
}

fn same(left: &Value, right: &Value) -> Result<(), TestCaseError> {
    prop_assert_eq!(left, right);
    Ok(())
}

/// The object without annotations if it has none: to the apiserver, `{}` and `null` are no others
/// than none, and conversion leaves an empty map neither behind nor alone.
fn tidied(object: &Value) -> Value {
    let mut object = object.clone();
    let empty = |it: &Value| it.is_null() || it.as_object().is_some_and(serde_json::Map::is_empty);
    if object["metadata"].get("annotations").is_some_and(empty) {
        object["metadata"].as_object_mut().unwrap().remove("annotations");
    }
    object
}

/// The object without what is kept, or claims to be.
fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(annotations) =
        object["metadata"].get_mut("annotations").and_then(Value::as_object_mut)
    {
        annotations.remove(PRESERVED_FIELDS_ANNOTATION);
    }
    tidied(&object)
}

/// The metadata of others is as it was, in another version and back, and nothing of ours is left.
fn came_back(object: &Value, turned: &Value, back: &Value) -> Result<(), TestCaseError> {
    same(&bare(object)["metadata"], &bare(turned)["metadata"])?;
    same(&bare(object), &tidied(back))
}

/// The spec and the status, which is what conversion is about.
fn parts(object: &Value) -> Value {
    json!({ "spec": object.get("spec"), "status": object.get("status") })
}

fn comes_back(name: &str, pair: [&'static str; 2]) {
    let kind = kind(name);
    each_way(kind, pair, |from, there, object| {
        let turned = to(kind, there, object);
        came_back(object, &turned, &to(kind, from, &turned))
    });
}

#[test]
fn a_cluster_comes_back_from_v1alpha1_and_v1_as_it_was() {
    comes_back("EtcdCluster", ["v1alpha1", "v1"]);
}

#[test]
fn a_cluster_comes_back_from_v1beta1_and_v1_as_it_was() {
    comes_back("EtcdCluster", ["v1beta1", "v1"]);
}

#[test]
fn a_cluster_comes_back_from_v1alpha1_and_v1beta1_as_it_was() {
    comes_back("EtcdCluster", ["v1alpha1", "v1beta1"]);
}

#[test]
fn an_app_comes_back_from_v1alpha1_and_v1_as_it_was() {
    comes_back("ExampleApp", ["v1alpha1", "v1"]);
}

#[test]
fn an_app_comes_back_from_v1beta1_and_v1_as_it_was() {
    comes_back("ExampleApp", ["v1beta1", "v1"]);
}

#[test]
fn an_app_comes_back_from_v1alpha1_and_v1beta1_as_it_was() {
    comes_back("ExampleApp", ["v1alpha1", "v1beta1"]);
}

/// The whole chain there and back, and every way round gives the same as the straight one.
fn every_way_round_is_the_same(name: &str) {
    let kind = kind(name);
    each_way(kind, ["v1alpha1", "v1"], |from, there, object| {
        let through = to(kind, "v1beta1", object);
        let (round, straight) = (to(kind, there, &through), to(kind, there, object));
        same(&tidied(&round), &tidied(&straight))?;
        came_back(object, &round, &to(kind, from, &to(kind, "v1beta1", &round)))
    });
}

#[test]
fn every_way_round_is_the_same_for_a_cluster() {
    every_way_round_is_the_same("EtcdCluster");
}

#[test]
fn every_way_round_is_the_same_for_an_app() {
    every_way_round_is_the_same("ExampleApp");
}

/// Every value that says something: a null leaves it to the defaults.
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
fn whatever_arrives_is_converted_or_named_and_never_ends_the_process() {
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
    let there = "etcd.appdelivery.cncf.io/v1";
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
        let turned = convert(object.clone(), there).unwrap();
        assert_eq!(turned["apiVersion"], there);
        assert!(turned["metadata"].is_object());
        assert_eq!(parts(&turned), parts(&object));
    }
}
