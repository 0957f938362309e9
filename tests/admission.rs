//! Property tests of admission on objects generated from the schemas: an update through an older
//! version changes the fields of that version and nothing else, whatever its annotation contains.
//! `QUORATE_CASES` and `QUORATE_SEED` are those of the property tests of conversion.
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

#[path = "support/arbitrary_objects.rs"]
mod arbitrary_objects;
#[path = "support/schemas.rs"]
mod schemas;

use std::cell::Cell;

use arbitrary_objects::{Fill, Objects, claimed, runner};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use quorate::api::convert::{PRESERVED_FIELDS_ANNOTATION, convert};
use quorate::api::kinds::{self, Kind, Version};
use quorate::webhook::handler::{Outcome, ReviewType, handle};
use quorate::webhook::spoke_update::SpokeUpdate;
use schemas::schema;
use serde_json::{Value, json};

/// Share of the cases of the conversion properties, in percent: each case costs dozens of
/// conversions.
const PERCENT: u64 = 1;

/// The annotation as a segment of a JSON pointer.
const ANNOTATION_SEGMENT: &str = "quorate.appdelivery.cncf.io~1preserved-fields";

const SPOKES: [(&str, &str); 4] = [
    ("EtcdCluster", "v1beta1"),
    ("EtcdCluster", "v1alpha1"),
    ("ExampleApp", "v1beta1"),
    ("ExampleApp", "v1alpha1"),
];

fn objects(kind: &Kind, version: &str, fill: Fill) -> Objects {
    Objects {
        api_version: format!("{}/{version}", kind.group),
        kind: kind.name.to_owned(),
        schema: schema(kind.name, version),
        annotation: PRESERVED_FIELDS_ANNOTATION.to_owned(),
        fill,
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

/// The review that the API server sends for an update in the version `through`.
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

/// The object with the patch of the mutating webhook; `None` if the update is denied.
fn mutated(kind: &Kind, through: &str, old: Option<&Value>, new: &Value) -> Option<Value> {
    let response = handle(ReviewType::Mutate, &review(kind, through, old, new), now());
    let review: Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!((response.status, review["response"]["uid"].as_str()), (200, Some("7")));
    let mut object = new.clone();
    match response.outcome {
        Outcome::Allowed => {}
        Outcome::Denied => return None,
        Outcome::Patched => {
            let patch = STANDARD.decode(review["response"]["patch"].as_str().unwrap()).unwrap();
            let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
            for path in patch.0.iter().map(|operation| operation.path().to_string()) {
                let inside = ["/spec", "/status"].iter().any(|part| path.starts_with(part));
                assert!(inside, "{path} is patched");
            }
            json_patch::patch(&mut object, &patch).unwrap();
        }
        Outcome::Converted | Outcome::Unconverted | Outcome::Unreadable | Outcome::Panicked => {
            panic!("{:?}: {review}", response.outcome)
        }
    }
    Some(object)
}

/// An annotation that claims the spec and status of another object as preserved fields.
fn forged(other: &Value, how: u8) -> Value {
    json!(json!({ "v1": claimed(other, how) }).to_string())
}

/// The object as a client sends it: the annotation kept, dropped or forged.
fn annotated(mut written: Value, other: &Value, how: u8) -> Value {
    match how % 3 {
        0 => {}
        1 => {
            arbitrary_objects::remove(
                &mut written,
                &format!("/metadata/annotations/{ANNOTATION_SEGMENT}"),
            );
        }
        _ => {
            written["metadata"]["annotations"][PRESERVED_FIELDS_ANNOTATION] = forged(other, how);
        }
    }
    written
}

/// Updates of fields that every version of a kind has: path in the spoke, path in the hub, value.
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
fn update_through_a_spoke_changes_its_fields_and_nothing_else() {
    for (name, through) in SPOKES {
        let kind = kinds::by_name(name).unwrap();
        let (allowed, all) = (Cell::new(0_u32), Cell::new(0_u32));
        let olds = (
            objects(kind, "v1", Fill::Valid),
            objects(kind, "v1", Fill::Full),
            any::<u8>(),
            any::<u8>(),
        );
        let result = runner(PERCENT).run(&olds, |(old, other, how, what)| {
            all.set(all.get() + 1);
            let mut written = to(kind, through, &old);
            let mut expected = old.clone();
            for (in_spoke, in_hub, value) in edits(name, through, what) {
                set(&mut written, in_spoke, value.clone());
                set(&mut expected, in_hub, value);
            }
            let new = to(kind, "v1", &annotated(written, &other, how));
            let Some(mutated) = mutated(kind, through, Some(&old), &new) else { return Ok(()) };
            allowed.set(allowed.get() + 1);
            if expected["spec"] != old["spec"] {
                expected = kind.with_defaults(&expected, Some(&old));
            }
            same(&parts(&expected), &parts(&mutated))
        });
        if let Err(error) = result {
            panic!("{name} through {through}: {error}");
        }
        let (allowed, all) = (allowed.get(), all.get());
        assert!(allowed * 2 > all, "{name} through {through}: {allowed} of {all} were allowed");
    }
}

/// Tests a property on replacements through a spoke: all of its fields are new, and the annotation
/// is not trusted.
fn for_replacements(
    holds: impl Fn(&'static Kind, &'static str, &Replacement) -> Result<(), TestCaseError>,
) {
    for (name, through) in SPOKES {
        let kind = kinds::by_name(name).unwrap();
        let parts = (
            objects(kind, "v1", Fill::Valid),
            objects(kind, through, Fill::Valid),
            objects(kind, "v1", Fill::Full),
            any::<u8>(),
        );
        let result = runner(PERCENT).run(&parts, |(old, written, other, how)| {
            let written = annotated(written, &other, how);
            let new = to(kind, "v1", &written);
            holds(kind, through, &Replacement { old, written, new })
        });
        if let Err(error) = result {
            panic!("{name} through {through}: {error}");
        }
    }
}

struct Replacement {
    old: Value,
    /// The requested object in the spoke version.
    written: Value,
    /// The requested object converted to v1.
    new: Value,
}

#[test]
fn fields_written_through_a_spoke_are_stored() {
    for_replacements(|kind, through, Replacement { old, written, new }| {
        let update = SpokeUpdate::for_version(version(kind, through), kind, old).unwrap();
        let merged = update.with_hub_only_fields(new).unwrap();
        prop_assert_eq!(merged.get("status"), old.get("status"));
        prop_assert_eq!(&merged["metadata"], &new["metadata"]);
        same(&written["spec"], &to(kind, through, &merged)["spec"])
    });
}

/// The hub-only fields of a spoke, as documented.
fn hub_only_fields(kind: &str, through: &str) -> &'static [&'static str] {
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
fn hub_only_fields_are_unchanged_by_an_update_through_a_spoke() {
    for_replacements(|kind, through, Replacement { old, written: _, new }| {
        let update = SpokeUpdate::for_version(version(kind, through), kind, old).unwrap();
        let merged = update.with_hub_only_fields(new).unwrap();
        for key in hub_only_fields(kind.name, through) {
            prop_assert_eq!(merged["spec"].get(key), old["spec"].get(key), "{}", key);
        }
        Ok(())
    });
}

/// Pointers of all leaves except nulls.
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

/// Asserts that every leaf of the spec comes from one of the sources, at the same path.
fn is_known(object: &Value, sources: &[&Value]) -> Result<(), TestCaseError> {
    let mut found = Vec::new();
    leaves(&object["spec"], "/spec", &mut found);
    for leaf in found {
        let value = object.pointer(&leaf);
        let known = sources.iter().any(|source| source.pointer(&leaf) == value);
        prop_assert!(known, "{} is {:?} without a source", leaf, value);
    }
    Ok(())
}

#[test]
fn annotation_of_a_request_is_ignored() {
    for_replacements(|kind, through, Replacement { old, written, new }| {
        let update = SpokeUpdate::for_version(version(kind, through), kind, old).unwrap();
        let merged = update.with_hub_only_fields(new).unwrap();
        let effective = update.with_hub_only_fields_and_defaults(&merged).unwrap();
        let mut bare = written.clone();
        arbitrary_objects::remove(
            &mut bare,
            &format!("/metadata/annotations/{ANNOTATION_SEGMENT}"),
        );
        let converted = to(kind, "v1", &bare);
        is_known(&merged, &[&converted, old])?;
        let defaults =
            [&converted, old, &merged].map(|object| kind.with_defaults(object, Some(old)));
        let [one, two, three] = &defaults;
        is_known(&effective, &[&converted, old, one, two, three])
    });
}

/// Asserts that a second mutation changes nothing, that the result survives conversion through any
/// version, and that the validating webhook allows it.
fn is_stable(
    kind: &'static Kind,
    through: &str,
    old: Option<&Value>,
    new: &Value,
) -> Result<bool, TestCaseError> {
    let Some(once) = mutated(kind, through, old, new) else { return Ok(false) };
    let Some(twice) = mutated(kind, through, old, &once) else {
        return Err(TestCaseError::fail("the mutated object is denied"));
    };
    same(&parts(&once), &parts(&twice))?;
    for version in ["v1beta1", "v1alpha1"] {
        same(&parts(&once), &parts(&to(kind, "v1", &to(kind, version, &once))))?;
    }
    let validated = handle(ReviewType::Validate, &review(kind, through, old, &once), now());
    prop_assert_eq!(
        validated.outcome,
        Outcome::Allowed,
        "{}",
        String::from_utf8_lossy(&validated.body)
    );
    Ok(true)
}

#[test]
fn mutation_of_a_replaced_object_is_stable() {
    let allowed = Cell::new(0_u32);
    for_replacements(|kind, through, Replacement { old, written: _, new }| {
        let update = SpokeUpdate::for_version(version(kind, through), kind, old).unwrap();
        let once = update
            .with_hub_only_fields_and_defaults(&update.with_hub_only_fields(new).unwrap())
            .unwrap();
        let twice = update
            .with_hub_only_fields_and_defaults(&update.with_hub_only_fields(&once).unwrap())
            .unwrap();
        same(&parts(&once), &parts(&twice))?;
        allowed.set(allowed.get() + u32::from(is_stable(kind, through, Some(old), new)?));
        Ok(())
    });
    assert!(allowed.get() > 0, "all were denied");
}

#[test]
fn mutation_of_a_new_object_is_stable() {
    let allowed = Cell::new(0_u32);
    for_replacements(|kind, through, Replacement { old, written: _, new }| {
        allowed.set(allowed.get() + u32::from(is_stable(kind, through, None, new)?));
        allowed.set(allowed.get() + u32::from(is_stable(kind, "v1", None, old)?));
        Ok(())
    });
    assert!(allowed.get() > 0, "all were denied");
}
