//! What admission promises, tried on objects that are made from the schemas: an edit through an
//! older version changes what that version can say, and nothing else, whatever its annotation says.
//! `QUORATE_CASES` and `QUORATE_SEED` are those of the conversion's properties.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    dead_code,
    reason = "a test fails by panicking, and shares its support with others"
)]

#[path = "support/generate.rs"]
mod generate;
#[path = "support/schemas.rs"]
mod schemas;

use std::cell::Cell;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use generate::{Care, Objects, claimed, runner};
use jiff::Timestamp;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use quorate::api::convert::{PRESERVED_FIELDS_ANNOTATION, convert};
use quorate::api::kinds::{self, Kind, Version};
use quorate::webhook::handler::{Outcome, ReviewType, handle};
use quorate::webhook::spoke_update::SpokeUpdate;
use schemas::schema;
use serde_json::{Value, json};

/// How many of a hundred cases of the conversion's properties are tried here: each costs dozens of
/// conversions.
const SHARE: u64 = 1;

/// The annotation as a step of a JSON pointer.
const KEPT: &str = "quorate.appdelivery.cncf.io~1kept";

const OLDER: [(&str, &str); 4] = [
    ("EtcdCluster", "v1beta1"),
    ("EtcdCluster", "v1alpha1"),
    ("ExampleApp", "v1beta1"),
    ("ExampleApp", "v1alpha1"),
];

fn objects(kind: &Kind, version: &str, care: Care) -> Objects {
    Objects {
        api_version: format!("{}/{version}", kind.group),
        kind: kind.name.to_owned(),
        schema: schema(kind.name, version),
        annotation: PRESERVED_FIELDS_ANNOTATION.to_owned(),
        care,
    }
}

fn version(kind: &'static Kind, name: &str) -> &'static Version {
    kind.version_of(&format!("{}/{name}", kind.group)).unwrap()
}

fn to(kind: &Kind, version: &str, object: &Value) -> Value {
    convert(object.clone(), &format!("{}/{version}", kind.group)).unwrap()
}

fn parts(object: &Value) -> Value {
    json!({ "spec": object.get("spec"), "status": object.get("status") })
}

/// The review that the apiserver sends about an update that was written in `through`.
fn review(kind: &Kind, through: &str, old: Option<&Value>, new: &Value) -> Vec<u8> {
    let name = |version: &str| json!({"group": kind.group, "version": version, "kind": kind.name});
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "7", "kind": name("v1"), "requestKind": name(through),
            "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
            "name": "a", "namespace": "default", "object": new, "oldObject": old,
        },
    });
    serde_json::to_vec(&review).unwrap()
}

fn now() -> Timestamp {
    "2026-11-16T06:00:00Z".parse().unwrap()
}

/// What became of an update: the object with its patch, or nothing if it was refused.
fn mutated(kind: &Kind, through: &str, old: Option<&Value>, new: &Value) -> Option<Value> {
    let reply = handle(ReviewType::Mutate, &review(kind, through, old, new), now());
    let said: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!((reply.status, said["response"]["uid"].as_str()), (200, Some("7")));
    let mut object = new.clone();
    match reply.outcome {
        Outcome::Allowed => {}
        Outcome::Denied => return None,
        Outcome::Patched => {
            let patch = STANDARD.decode(said["response"]["patch"].as_str().unwrap()).unwrap();
            let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
            for place in patch.0.iter().map(|step| step.path().to_string()) {
                let inside = ["/spec", "/status"].iter().any(|part| place.starts_with(part));
                assert!(inside, "{place} is patched");
            }
            json_patch::patch(&mut object, &patch).unwrap();
        }
        Outcome::Converted | Outcome::Unconverted | Outcome::Unreadable | Outcome::Panicked => {
            panic!("{:?}: {said}", reply.outcome)
        }
    }
    Some(object)
}

/// An annotation that claims the stranger's spec and status are what was kept.
fn forged(stranger: &Value, how: u8) -> Value {
    json!(json!({ "v1": claimed(stranger, how) }).to_string())
}

/// What the user's tool made of the annotation: kept it, lost it, or wrote its own.
fn annotated(mut written: Value, stranger: &Value, how: u8) -> Value {
    match how % 3 {
        0 => {}
        1 => {
            generate::remove(&mut written, &format!("/metadata/annotations/{KEPT}"));
        }
        _ => {
            written["metadata"]["annotations"][PRESERVED_FIELDS_ANNOTATION] = forged(stranger, how);
        }
    }
    written
}

/// Fields that every version of a kind has under some name.
fn edits(kind: &str, version: &str, how: u8) -> Vec<(&'static str, &'static str, Value)> {
    let (size, paused) = (json!(how % 7 + 1), json!(how.is_multiple_of(2)));
    match (kind, version) {
        ("EtcdCluster", _) => {
            vec![("/spec/size", "/spec/replicas", size), ("/spec/paused", "/spec/paused", paused)]
        }
        ("ExampleApp", "v1beta1") => vec![("/spec/paused", "/spec/paused", paused)],
        (_, _) => vec![("/spec/appVersion", "/spec/version", json!("0.0.2"))],
    }
}

fn set(object: &mut Value, pointer: &str, value: Value) {
    let key = pointer.rsplit('/').next().unwrap().to_owned();
    object["spec"][key] = value;
}

fn same(left: &Value, right: &Value) -> Result<(), TestCaseError> {
    prop_assert_eq!(left, right);
    Ok(())
}

#[test]
fn an_edit_through_an_older_version_changes_what_it_says_and_nothing_else() {
    for (name, through) in OLDER {
        let kind = kinds::by_name(name).unwrap();
        let (allowed, all) = (Cell::new(0_u32), Cell::new(0_u32));
        let olds = (
            objects(kind, "v1", Care::Valid),
            objects(kind, "v1", Care::Full),
            any::<u8>(),
            any::<u8>(),
        );
        let tried = runner(SHARE).run(&olds, |(old, stranger, how, what)| {
            all.set(all.get() + 1);
            let mut written = to(kind, through, &old);
            let mut expected = old.clone();
            for (there, here, value) in edits(name, through, what) {
                set(&mut written, there, value.clone());
                set(&mut expected, here, value);
            }
            let new = to(kind, "v1", &annotated(written, &stranger, how));
            let Some(mutated) = mutated(kind, through, Some(&old), &new) else { return Ok(()) };
            allowed.set(allowed.get() + 1);
            if expected["spec"] != old["spec"] {
                expected = kind.with_defaults(&expected, Some(&old));
            }
            same(&parts(&expected), &parts(&mutated))
        });
        if let Err(why) = tried {
            panic!("{name} through {through}: {why}");
        }
        let (allowed, all) = (allowed.get(), all.get());
        assert!(allowed * 2 > all, "{name} through {through}: {allowed} of {all} were allowed");
    }
}

/// Replaces through an older version: everything that it can say is new, and the annotation is not
/// to be trusted. Each is tried until somebody is told what it is that failed.
fn replaced(holds: impl Fn(&'static Kind, &'static str, &Replaced) -> Result<(), TestCaseError>) {
    for (name, through) in OLDER {
        let kind = kinds::by_name(name).unwrap();
        let parts = (
            objects(kind, "v1", Care::Valid),
            objects(kind, through, Care::Valid),
            objects(kind, "v1", Care::Full),
            any::<u8>(),
        );
        let tried = runner(SHARE).run(&parts, |(old, written, stranger, how)| {
            let written = annotated(written, &stranger, how);
            let new = to(kind, "v1", &written);
            holds(kind, through, &Replaced { old, written, new })
        });
        if let Err(why) = tried {
            panic!("{name} through {through}: {why}");
        }
    }
}

struct Replaced {
    old: Value,
    /// What the user wrote, in the older version.
    written: Value,
    /// What the apiserver makes of it, in v1.
    new: Value,
}

#[test]
fn what_is_written_through_an_older_version_is_what_it_says_afterwards() {
    replaced(|kind, through, Replaced { old, written, new }| {
        let edit = SpokeUpdate::for_version(version(kind, through), kind, old).unwrap();
        let carried = edit.with_hub_only_fields(new).unwrap();
        prop_assert_eq!(carried.get("status"), old.get("status"));
        prop_assert_eq!(&carried["metadata"], &new["metadata"]);
        same(&written["spec"], &to(kind, through, &carried)["spec"])
    });
}

/// The fields of v1 that an older version has nothing for, as the page about versions says.
fn no_word_for(kind: &str, through: &str) -> &'static [&'static str] {
    match (kind, through) {
        ("EtcdCluster", "v1beta1") => {
            &["auth", "upgrade", "repair", "defragment", "restore", "deletionPolicy"]
        }
        ("EtcdCluster", _) => &[
            "options",
            "tls",
            "auth",
            "upgrade",
            "repair",
            "defragment",
            "backup",
            "restore",
            "deletionPolicy",
        ],
        (_, "v1beta1") => &[
            "image",
            "autoscaling",
            "exposure",
            "restore",
            "upgrade",
            "resources",
            "deletionPolicy",
        ],
        (_, _) => &[
            "image",
            "replicas",
            "autoscaling",
            "data",
            "exposure",
            "restore",
            "upgrade",
            "resources",
            "paused",
            "deletionPolicy",
        ],
    }
}

#[test]
fn what_an_older_version_has_no_word_for_is_what_it_was() {
    replaced(|kind, through, Replaced { old, written: _, new }| {
        let edit = SpokeUpdate::for_version(version(kind, through), kind, old).unwrap();
        let carried = edit.with_hub_only_fields(new).unwrap();
        for key in no_word_for(kind.name, through) {
            prop_assert_eq!(carried["spec"].get(key), old["spec"].get(key), "{}", key);
        }
        Ok(())
    });
}

/// Every value that says something.
fn leaves(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                let key = key.replace('~', "~0").replace('/', "~1");
                leaves(value, &format!("{at}/{key}"), found);
            }
        }
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            found.push(at.to_owned());
        }
    }
}

/// Every leaf of the spec is said by one of those, in the same place.
fn is_known(object: &Value, said_by: &[&Value]) -> Result<(), TestCaseError> {
    let mut found = Vec::new();
    leaves(&object["spec"], "/spec", &mut found);
    for leaf in found {
        let said = object.pointer(&leaf);
        let known = said_by.iter().any(|it| it.pointer(&leaf) == said);
        prop_assert!(known, "{} is {:?}, and nobody said so", leaf, said);
    }
    Ok(())
}

#[test]
fn nothing_comes_from_the_annotation_of_a_request() {
    replaced(|kind, through, Replaced { old, written, new }| {
        let edit = SpokeUpdate::for_version(version(kind, through), kind, old).unwrap();
        let carried = edit.with_hub_only_fields(new).unwrap();
        let meant = edit.with_hub_only_fields_and_defaults(&carried).unwrap();
        let mut bare = written.clone();
        generate::remove(&mut bare, &format!("/metadata/annotations/{KEPT}"));
        let alone = to(kind, "v1", &bare);
        is_known(&carried, &[&alone, old])?;
        let defaults = [&alone, old, &carried].map(|object| kind.with_defaults(object, Some(old)));
        let [one, two, three] = &defaults;
        is_known(&meant, &[&alone, old, one, two, three])
    });
}

/// The same update again, with the patch in it, changes nothing more; what came of it is the same
/// after a way through any version, and the validator takes it.
fn settles(
    kind: &'static Kind,
    through: &str,
    old: Option<&Value>,
    new: &Value,
) -> Result<bool, TestCaseError> {
    let Some(once) = mutated(kind, through, old, new) else { return Ok(false) };
    let Some(twice) = mutated(kind, through, old, &once) else {
        return Err(TestCaseError::fail("what was mutated is refused"));
    };
    same(&parts(&once), &parts(&twice))?;
    for version in ["v1beta1", "v1alpha1"] {
        same(&parts(&once), &parts(&to(kind, "v1", &to(kind, version, &once))))?;
    }
    let judged = handle(ReviewType::Validate, &review(kind, through, old, &once), now());
    prop_assert_eq!(judged.outcome, Outcome::Allowed, "{}", String::from_utf8_lossy(&judged.body));
    Ok(true)
}

#[test]
fn a_replaced_object_settles() {
    let allowed = Cell::new(0_u32);
    replaced(|kind, through, Replaced { old, written: _, new }| {
        let edit = SpokeUpdate::for_version(version(kind, through), kind, old).unwrap();
        let once = edit
            .with_hub_only_fields_and_defaults(&edit.with_hub_only_fields(new).unwrap())
            .unwrap();
        let twice = edit
            .with_hub_only_fields_and_defaults(&edit.with_hub_only_fields(&once).unwrap())
            .unwrap();
        same(&parts(&once), &parts(&twice))?;
        allowed.set(allowed.get() + u32::from(settles(kind, through, Some(old), new)?));
        Ok(())
    });
    assert!(allowed.get() > 0, "all were refused");
}

#[test]
fn a_new_object_settles() {
    let allowed = Cell::new(0_u32);
    replaced(|kind, through, Replaced { old, written: _, new }| {
        allowed.set(allowed.get() + u32::from(settles(kind, through, None, new)?));
        allowed.set(allowed.get() + u32::from(settles(kind, "v1", None, old)?));
        Ok(())
    });
    assert!(allowed.get() > 0, "all were refused");
}
