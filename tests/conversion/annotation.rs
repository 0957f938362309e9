//! The preserved-fields annotation: fields of the object always win over it, and it has space for
//! all preserved fields.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use quorate::api::convert::{MAX_BYTES, PRESERVED_FIELDS_ANNOTATION};
use serde_json::{Value, json};

use super::arbitrary_objects::{self, Fill, claimed, remove, runner};
use super::{kind, leaves, normalized, objects, parts, same, to, without_annotation};

/// With the annotation of another object, or a forged one, the fields of the object are unchanged.
fn fields_win_over_annotation(name: &str) {
    let kind = kind(name);
    for spoke in ["v1beta1", "v1alpha1"] {
        for (from, other) in [(spoke, "v1"), ("v1", spoke)] {
            let pairs = (objects(kind, from, Fill::Disturbed), objects(kind, other, Fill::Full));
            let pairs = (pairs, any::<u8>());
            let mut runner = runner(25);
            let result = runner.run(&pairs, |((mut object, source), forge)| {
                let plain = parts(&to(kind, from, &to(kind, other, &object)));
                let mut annotation = to(kind, from, &source)["metadata"]["annotations"]
                    [PRESERVED_FIELDS_ANNOTATION]
                    .clone();
                if forge.is_multiple_of(4) {
                    annotation = forged(other, &source, forge);
                }
                if annotation.is_null() {
                    return Ok(());
                }
                object["metadata"]["annotations"][PRESERVED_FIELDS_ANNOTATION] = annotation;
                let converted = to(kind, other, &object);
                same(
                    &without_annotation(&object)["metadata"],
                    &without_annotation(&converted)["metadata"],
                )?;
                same(&parts(&object), &plain)?;
                same(&parts(&object), &parts(&to(kind, from, &converted)))?;
                // Also without the fields preserved on the way: the converted object has the fields
                // of the original, or no fewer than it would have without the annotation.
                let back = parts(&to(kind, from, &without_annotation(&converted)));
                let plain = to(kind, other, &without_annotation(&object));
                let baseline = parts(&to(kind, from, &without_annotation(&plain)));
                no_worse(&parts(&object), &back, &baseline)
            });
            if let Err(error) = result {
                panic!("{} {from} -> {other}: {error}", kind.name);
            }
        }
    }
}

/// Asserts that every leaf is that of the original, or that of the baseline without the annotation.
fn no_worse(original: &Value, actual: &Value, baseline: &Value) -> Result<(), TestCaseError> {
    let mut all = Vec::new();
    for value in [original, actual, baseline] {
        leaves(value, "", &mut all);
    }
    for leaf in all {
        let (original, actual, baseline) =
            (original.pointer(&leaf), actual.pointer(&leaf), baseline.pointer(&leaf));
        prop_assert!(
            actual == original || actual == baseline,
            "{} was {:?} and became {:?}",
            leaf,
            original,
            actual
        );
    }
    Ok(())
}

/// An annotation that claims the whole spec of another object as preserved fields, and more.
fn forged(version: &str, source: &Value, how: u8) -> Value {
    let mut section = claimed(source, how);
    section.insert("/metadata/name".to_owned(), json!(["other"]));
    section.insert("/spec".to_owned(), json!([{}]));
    section.insert("nonsense".to_owned(), json!(7));
    json!(json!({ version: section, "v9": 5 }).to_string())
}

#[test]
fn fields_of_a_cluster_win_over_a_foreign_or_forged_annotation() {
    fields_win_over_annotation("EtcdCluster");
}

#[test]
fn fields_of_an_app_win_over_a_foreign_or_forged_annotation() {
    fields_win_over_annotation("ExampleApp");
}

/// Preserved fields for the version that the object is in have no effect, now or later.
fn annotation_for_own_version_is_ignored(name: &str) {
    let kind = kind(name);
    for (from, other) in [("v1", "v1beta1"), ("v1", "v1alpha1"), ("v1alpha1", "v1")] {
        let pair = (objects(kind, from, Fill::Valid), objects(kind, from, Fill::Full), any::<u8>());
        let result = runner(10).run(&pair, |(mut object, source, how)| {
            let plain = normalized(&to(kind, other, &object));
            object["metadata"]["annotations"][PRESERVED_FIELDS_ANNOTATION] =
                forged(from, &source, how | 1);
            same(&plain, &normalized(&to(kind, other, &object)))?;
            same(&parts(&object), &parts(&to(kind, from, &to(kind, other, &object))))?;
            // Nor if the object has no status.
            object.as_object_mut().unwrap().remove("status");
            let back = to(kind, from, &to(kind, other, &object));
            prop_assert!(back.get("status").is_none());
            prop_assert!(
                back["metadata"]["annotations"].get(PRESERVED_FIELDS_ANNOTATION).is_none()
            );
            Ok(())
        });
        if let Err(error) = result {
            panic!("{} {from} -> {other}: {error}", kind.name);
        }
    }
}

#[test]
fn annotation_for_the_own_version_of_a_cluster_is_ignored() {
    annotation_for_own_version_is_ignored("EtcdCluster");
}

#[test]
fn annotation_for_the_own_version_of_an_app_is_ignored() {
    annotation_for_own_version_is_ignored("ExampleApp");
}

/// An object that is removed through an older version is removed with its hub-only fields.
#[test]
fn object_removed_through_a_spoke_leaves_no_hub_only_fields() {
    let backup = json!({
        "schedule": "0 3 * * *", "timeZone": "Europe/Berlin", "retention": {"keepLast": 3},
        "destination": {"s3": {"bucket": "backups", "region": "eu", "endpoint": "https://s3.example.com"}},
    });
    let cluster = json!({
        "apiVersion": "etcd.appdelivery.cncf.io/v1", "kind": "EtcdCluster",
        "metadata": {"name": "a"}, "spec": {"version": "3.6.16", "backup": backup},
    });
    let mut beta = to(kind("EtcdCluster"), "v1beta1", &cluster);
    for key in ["backupSchedule", "backupDestination"] {
        assert!(remove(&mut beta, &format!("/spec/{key}")), "{key} does not exist");
    }
    let back = to(kind("EtcdCluster"), "v1", &beta);
    assert_eq!(back["spec"], json!({"version": "3.6.16"}));

    let app = json!({
        "apiVersion": "example-app.appdelivery.cncf.io/v1", "kind": "ExampleApp",
        "metadata": {"name": "a"}, "spec": {"version": "0.0.1", "backup": backup},
    });
    let mut alpha = to(kind("ExampleApp"), "v1alpha1", &app);
    assert!(remove(&mut alpha, "/spec/backup"));
    assert_eq!(to(kind("ExampleApp"), "v1", &alpha)["spec"], json!({"version": "0.0.1"}));
}

/// The preserved fields of any valid object fit the annotation, however long its values are. If its
/// status has characters that need more bytes, fields of the status are dropped, never of the spec.
#[test]
fn preserved_fields_of_a_valid_object_fit_the_annotation() {
    for name in ["EtcdCluster", "ExampleApp"] {
        let kind = kind(name);
        for (letter, plain) in [("x", true), ("\"", false), ("字", false)] {
            let longest = arbitrary_objects::longest(&objects(kind, "v1", Fill::Full), letter);
            for spoke in ["v1beta1", "v1alpha1"] {
                let converted = to(kind, spoke, &longest);
                let annotation = converted["metadata"]["annotations"][PRESERVED_FIELDS_ANNOTATION]
                    .as_str()
                    .unwrap();
                let length = annotation.len();
                assert!(length <= MAX_BYTES, "{name} {spoke}: {length} bytes");
                let entries = annotation.matches("\"/s").count();
                assert!(entries < 64, "{name} {spoke}: {entries} entries");
                let back = to(kind, "v1", &converted);
                assert_eq!(back["spec"], longest["spec"], "{name} lost a field in {spoke}");
                if plain {
                    assert_eq!(back, longest, "{name} lost a field in {spoke}");
                }
            }
        }
    }
}
