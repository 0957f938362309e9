//! The annotation: what is written wins over it, whoever wrote it, and it holds what must be kept.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use quorate::api::convert::{MAX_BYTES, PRESERVED_FIELDS_ANNOTATION};
use serde_json::{Value, json};

use super::generate::{self, Care, claimed, remove, runner};
use super::{bare, kind, leaves, objects, parts, same, tidied, to};

/// What was kept of one object, or forged, and laid onto another: what that one says stays said.
fn what_is_written_wins(name: &str) {
    let kind = kind(name);
    for spoke in ["v1beta1", "v1alpha1"] {
        for (from, other) in [(spoke, "v1"), ("v1", spoke)] {
            let strangers =
                (objects(kind, from, Care::Disturbed), objects(kind, other, Care::Full));
            let strangers = (strangers, any::<u8>());
            let mut runner = runner(25);
            let tried = runner.run(&strangers, |((mut object, stranger), forge)| {
                let plain = parts(&to(kind, from, &to(kind, other, &object)));
                let mut kept = to(kind, from, &stranger)["metadata"]["annotations"]
                    [PRESERVED_FIELDS_ANNOTATION]
                    .clone();
                if forge.is_multiple_of(4) {
                    kept = forged(other, &stranger, forge);
                }
                if kept.is_null() {
                    return Ok(());
                }
                object["metadata"]["annotations"][PRESERVED_FIELDS_ANNOTATION] = kept;
                let there = to(kind, other, &object);
                same(&bare(&object)["metadata"], &bare(&there)["metadata"])?;
                same(&parts(&object), &plain)?;
                same(&parts(&object), &parts(&to(kind, from, &there)))?;
                // And without what was put aside on the way: the object that arrived says itself
                // what was written, or no less of it than it would say without the annotation.
                let heard = parts(&to(kind, from, &bare(&there)));
                let unmoved = parts(&to(kind, from, &bare(&to(kind, other, &bare(&object)))));
                no_worse(&parts(&object), &heard, &unmoved)
            });
            if let Err(why) = tried {
                panic!("{} {from} -> {other}: {why}", kind.name);
            }
        }
    }
}

/// Every leaf that is heard is as it was said, or as it would be without the annotation.
fn no_worse(said: &Value, heard: &Value, unmoved: &Value) -> Result<(), TestCaseError> {
    let mut all = Vec::new();
    for value in [said, heard, unmoved] {
        leaves(value, "", &mut all);
    }
    for leaf in all {
        let (said, heard, unmoved) =
            (said.pointer(&leaf), heard.pointer(&leaf), unmoved.pointer(&leaf));
        prop_assert!(
            heard == said || heard == unmoved,
            "{} was {:?} and became {:?}",
            leaf,
            said,
            heard
        );
    }
    Ok(())
}

/// An annotation that says the stranger's whole spec is what was kept, and more.
fn forged(version: &str, stranger: &Value, how: u8) -> Value {
    let mut section = claimed(stranger, how);
    section.insert("/metadata/name".to_owned(), json!(["other"]));
    section.insert("/spec".to_owned(), json!([{}]));
    section.insert("nonsense".to_owned(), json!(7));
    json!(json!({ version: section, "v9": 5 }).to_string())
}

#[test]
fn what_is_written_wins_over_what_was_kept_or_forged_for_a_cluster() {
    what_is_written_wins("EtcdCluster");
}

#[test]
fn what_is_written_wins_over_what_was_kept_or_forged_for_an_app() {
    what_is_written_wins("ExampleApp");
}

/// What claims to be kept of the version that an object is in has no effect, now or later.
fn an_object_speaks_for_itself(name: &str) {
    let kind = kind(name);
    for (from, other) in [("v1", "v1beta1"), ("v1", "v1alpha1"), ("v1alpha1", "v1")] {
        let pair = (objects(kind, from, Care::Valid), objects(kind, from, Care::Full), any::<u8>());
        let tried = runner(10).run(&pair, |(mut object, stranger, how)| {
            let plain = tidied(&to(kind, other, &object));
            object["metadata"]["annotations"][PRESERVED_FIELDS_ANNOTATION] =
                forged(from, &stranger, how | 1);
            same(&plain, &tidied(&to(kind, other, &object)))?;
            same(&parts(&object), &parts(&to(kind, from, &to(kind, other, &object))))?;
            // Nor if there is no status to say it with.
            object.as_object_mut().unwrap().remove("status");
            let back = to(kind, from, &to(kind, other, &object));
            prop_assert!(back.get("status").is_none());
            prop_assert!(
                back["metadata"]["annotations"].get(PRESERVED_FIELDS_ANNOTATION).is_none()
            );
            Ok(())
        });
        if let Err(why) = tried {
            panic!("{} {from} -> {other}: {why}", kind.name);
        }
    }
}

#[test]
fn a_cluster_speaks_for_itself() {
    an_object_speaks_for_itself("EtcdCluster");
}

#[test]
fn an_app_speaks_for_itself() {
    an_object_speaks_for_itself("ExampleApp");
}

/// A block that is removed through an older version is gone, with what only v1 could say of it.
#[test]
fn what_is_removed_through_an_older_version_leaves_no_torso() {
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
        assert!(remove(&mut beta, &format!("/spec/{key}")), "{key} is not there");
    }
    let back = to(kind("EtcdCluster"), "v1", &beta);
    assert_eq!(back["spec"], json!({"version": "3.6.16"}));

    let app = json!({
        "apiVersion": "example-app.appdelivery.cncf.io/v1", "kind": "ExampleApp",
        "metadata": {"name": "a"}, "spec": {"version": "0.0.1", "backup": backup},
    });
    let mut paper = to(kind("ExampleApp"), "v1alpha1", &app);
    assert!(remove(&mut paper, "/spec/backup"));
    assert_eq!(to(kind("ExampleApp"), "v1", &paper)["spec"], json!({"version": "0.0.1"}));
}

/// What a valid object loses fits the annotation, however long its values are. If its status has
/// letters that take more room than plain ones, the status gives way, and never the spec.
#[test]
fn what_a_valid_object_loses_fits() {
    for name in ["EtcdCluster", "ExampleApp"] {
        let kind = kind(name);
        for (letter, plain) in [("x", true), ("\"", false), ("字", false)] {
            let longest = generate::longest(&objects(kind, "v1", Care::Full), letter);
            for there in ["v1beta1", "v1alpha1"] {
                let turned = to(kind, there, &longest);
                let kept = turned["metadata"]["annotations"][PRESERVED_FIELDS_ANNOTATION]
                    .as_str()
                    .unwrap();
                assert!(kept.len() <= MAX_BYTES, "{name} {there}: {} bytes", kept.len());
                let entries = kept.matches("\"/s").count();
                assert!(entries < 64, "{name} {there}: {entries} entries are kept");
                let back = to(kind, "v1", &turned);
                assert_eq!(back["spec"], longest["spec"], "{name} lost something in {there}");
                if plain {
                    assert_eq!(back, longest, "{name} lost something in {there}");
                }
            }
        }
    }
}
