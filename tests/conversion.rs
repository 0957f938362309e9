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

#[path = "support/generate.rs"]
mod generate;

use generate::{Care, Objects, paths, remove, runner};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use quorate::api::convert::{ANNOTATION, MOST_BYTES, convert};
use quorate::api::crd;
use quorate::api::kinds::{self, Kind};
use serde_json::{Value, json};

fn kind(name: &str) -> &'static Kind {
    kinds::named(name).unwrap()
}

/// The objects of one version, from the schema in its definition.
fn objects(kind: &Kind, version: &str, care: Care) -> Objects {
    let definition = crd::all().into_iter().find(|crd| crd.spec.names.kind == kind.name).unwrap();
    let definition = serde_json::to_value(definition).unwrap();
    let versions = definition["spec"]["versions"].as_array().unwrap();
    let found = versions.iter().find(|candidate| candidate["name"] == version).unwrap();
    Objects {
        api_version: format!("{}/{version}", kind.group),
        kind: kind.name.to_owned(),
        schema: found["schema"]["openAPIV3Schema"].clone(),
        care,
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

/// The spec and the status, which is what conversion is about.
fn parts(object: &Value) -> Value {
    json!({ "spec": object.get("spec"), "status": object.get("status") })
}

fn comes_back(name: &str, pair: [&'static str; 2]) {
    let kind = kind(name);
    each_way(kind, pair, |from, there, object| {
        let turned = to(kind, there, object);
        prop_assert_eq!(&turned["metadata"]["uid"], &object["metadata"]["uid"]);
        same(object, &to(kind, from, &turned))
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
        same(&to(kind, there, &through), &to(kind, there, object))?;
        let back = to(kind, from, &to(kind, "v1beta1", &to(kind, there, &through)));
        same(object, &back)
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
                let mut kept =
                    to(kind, from, &stranger)["metadata"]["annotations"][ANNOTATION].clone();
                if forge.is_multiple_of(4) {
                    kept = forged(other, &stranger, forge);
                }
                if kept.is_null() {
                    return Ok(());
                }
                object["metadata"]["annotations"][ANNOTATION] = kept;
                let there = to(kind, other, &object);
                for key in ["uid", "name"] {
                    prop_assert_eq!(&there["metadata"][key], &object["metadata"][key]);
                }
                prop_assert_eq!(&there["metadata"]["annotations"]["note"], "mine");
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

/// The object without what was kept.
fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
        annotations.remove(ANNOTATION);
    }
    object
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
    let mut section = serde_json::Map::new();
    let mut found = Vec::new();
    paths(stranger, "", &mut found);
    let inside = |path: &String| path.starts_with("/spec/") || path.starts_with("/status/");
    // A window of them: more than a few hundred entries are never ours, and read as none.
    let inside: Vec<String> = found.into_iter().filter(inside).collect();
    let skip = usize::from(how) * inside.len() / 256;
    for path in inside.into_iter().skip(skip).take(60) {
        let value = stranger.pointer(&path).cloned();
        section.insert(path, if how.is_multiple_of(8) { json!([]) } else { json!([value]) });
    }
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

/// An object that says less has an image that says less: nothing comes from nowhere.
fn nothing_is_invented(name: &str) {
    let kind = kind(name);
    for (care, percent) in [(Care::Full, 2), (Care::Valid, 23)] {
        for [from, there] in
            [["v1alpha1", "v1"], ["v1beta1", "v1"], ["v1", "v1beta1"], ["v1", "v1alpha1"]]
        {
            let tried = runner(percent).run(
                &(objects(kind, from, care), any::<u64>()),
                |(object, choice)| {
                    let mut less = object.clone();
                    let mut keys = Vec::new();
                    paths(&object, "", &mut keys);
                    for (index, key) in keys.iter().enumerate() {
                        if choice.rotate_left(index as u32 * 7) % 3 == 0 {
                            remove(&mut less, key);
                        }
                    }
                    let said = |object: &Value| {
                        let mut found = Vec::new();
                        paths(&parts(object), "", &mut found);
                        found
                    };
                    let (whole, part) =
                        (said(&to(kind, there, &object)), said(&to(kind, there, &less)));
                    let invented: Vec<_> =
                        part.iter().filter(|path| !whole.contains(path)).collect();
                    prop_assert!(invented.is_empty(), "{:?} from nowhere", invented);
                    Ok(())
                },
            );
            if let Err(why) = tried {
                panic!("{} {from} -> {there}: {why}", kind.name);
            }
        }
    }
}

#[test]
fn nothing_comes_from_nothing() {
    for kind in [kind("EtcdCluster"), kind("ExampleApp")] {
        for from in kind.versions {
            for there in kind.versions {
                let empty = json!({
                    "apiVersion": kind.api_version(from), "kind": kind.name, "metadata": {},
                    "spec": {}, "status": {},
                });
                let turned = to(kind, there.name, &empty);
                assert_eq!(turned["spec"], json!({}), "{} {}", kind.name, there.name);
                assert_eq!(turned["status"], json!({}), "{} {}", kind.name, there.name);
                assert_eq!(turned["metadata"], json!({}), "{} {}", kind.name, there.name);
            }
        }
    }
}

/// What claims to be kept of the version that an object is in has no effect, now or later.
fn an_object_speaks_for_itself(name: &str) {
    let kind = kind(name);
    for (from, other) in [("v1", "v1beta1"), ("v1", "v1alpha1"), ("v1alpha1", "v1")] {
        let pair = (objects(kind, from, Care::Valid), objects(kind, from, Care::Full), any::<u8>());
        let tried = runner(10).run(&pair, |(mut object, stranger, how)| {
            let plain = to(kind, other, &object);
            object["metadata"]["annotations"][ANNOTATION] = forged(from, &stranger, how | 1);
            same(&plain, &to(kind, other, &object))?;
            same(&parts(&object), &parts(&to(kind, from, &to(kind, other, &object))))?;
            // Nor if there is no status to say it with.
            object.as_object_mut().unwrap().remove("status");
            let back = to(kind, from, &to(kind, other, &object));
            prop_assert!(back.get("status").is_none());
            prop_assert!(back["metadata"]["annotations"].get(ANNOTATION).is_none());
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

#[test]
fn nothing_is_invented_for_a_cluster() {
    nothing_is_invented("EtcdCluster");
}

#[test]
fn nothing_is_invented_for_an_app() {
    nothing_is_invented("ExampleApp");
}

/// The hub has words for all that an older version can ask for: what a valid spec says is said in
/// v1, and not put aside. Only the order of a set has no words.
fn the_hub_says_it_all(name: &str, unsaid: &[&str]) {
    let kind = kind(name);
    for spoke in ["v1beta1", "v1alpha1"] {
        let tried = runner(10).run(&objects(kind, spoke, Care::Full), |object| {
            // The other types of stores refuse a host, or want it in another form: see its rules.
            for block in ["destination", "backup"].map(|block| &object["spec"][block]) {
                prop_assume!(block["storageType"].is_null() || block["storageType"] == "s3");
                prop_assume!(block.get("host").is_none() || block["storageType"] == "s3");
                prop_assume!(block.as_object().is_none_or(|block| !block.is_empty()));
            }
            let hub = to(kind, "v1", &object);
            let kept = hub["metadata"]["annotations"][ANNOTATION].as_str().unwrap_or("{}");
            let kept: Value = serde_json::from_str(kept).unwrap();
            for pointer in kept[spoke].as_object().into_iter().flat_map(|section| section.keys()) {
                let excused = pointer.starts_with("/status") || unsaid.contains(&pointer.as_str());
                prop_assert!(excused, "{} of {} is not said in v1", pointer, spoke);
            }
            Ok(())
        });
        if let Err(why) = tried {
            panic!("{name} {spoke}: {why}");
        }
    }
}

#[test]
fn v1_says_all_that_an_older_cluster_can_ask_for() {
    the_hub_says_it_all("EtcdCluster", &[]);
}

#[test]
fn v1_says_all_that_an_older_app_can_ask_for() {
    the_hub_says_it_all("ExampleApp", &["/spec/features"]);
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
                let kept = turned["metadata"]["annotations"][ANNOTATION].as_str().unwrap();
                assert!(kept.len() <= MOST_BYTES, "{name} {there}: {} bytes", kept.len());
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

/// What the apiserver takes, the Rust types read without a misfit, and write as it was.
#[test]
fn what_fits_the_schema_fits_the_types() {
    fn all<K: std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned>(
        name: &str,
        version: &str,
    ) {
        let objects = objects(kind(name), version, Care::Valid);
        let tried = runner(11).run(&objects, |object| {
            let read: K = serde_json::from_value(object.clone()).unwrap();
            let debugged = format!("{read:?}");
            prop_assert!(!debugged.contains("Misfit"), "{}", debugged);
            same(&object, &serde_json::to_value(&read).unwrap())
        });
        if let Err(why) = tried {
            panic!("{name} {version}: {why}");
        }
    }
    use quorate::api::{etcd_backup, etcd_cluster, etcd_member, etcd_restore, example_app};
    all::<etcd_cluster::v1::EtcdCluster>("EtcdCluster", "v1");
    all::<etcd_cluster::v1beta1::EtcdCluster>("EtcdCluster", "v1beta1");
    all::<etcd_cluster::v1alpha1::EtcdCluster>("EtcdCluster", "v1alpha1");
    all::<example_app::v1::ExampleApp>("ExampleApp", "v1");
    all::<example_app::v1beta1::ExampleApp>("ExampleApp", "v1beta1");
    all::<example_app::v1alpha1::ExampleApp>("ExampleApp", "v1alpha1");
    all::<etcd_member::EtcdMember>("EtcdMember", "v1");
    all::<etcd_backup::EtcdBackup>("EtcdBackup", "v1");
    all::<etcd_restore::EtcdRestore>("EtcdRestore", "v1");
}

/// Defaults are the same before and after a journey, are said once, and change nothing that was.
fn defaults_go_with_conversion(name: &str) {
    let kind = kind(name);
    for care in [Care::Valid, Care::Disturbed] {
        for spoke in ["v1beta1", "v1alpha1"] {
            let tried = runner(25).run(&objects(kind, spoke, care), |object| {
                let hub = to(kind, "v1", &object);
                let filled = kind.filled(&hub, None);
                same(&filled, &kind.filled(&filled, None))?;
                same(&parts(&filled), &parts(&to(kind, "v1", &to(kind, spoke, &filled))))?;
                let late = kind.filled(&to(kind, "v1", &to(kind, spoke, &hub)), None);
                same(&filled, &late)?;
                let mut said = Vec::new();
                leaves(&parts(&hub), "", &mut said);
                for path in said {
                    prop_assert_eq!(
                        hub.pointer(&path),
                        filled.pointer(&path),
                        "{} was changed",
                        path
                    );
                }
                Ok(())
            });
            if let Err(why) = tried {
                panic!("{} {spoke}, {care:?}: {why}", kind.name);
            }
        }
    }
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
fn defaults_go_with_conversion_for_a_cluster() {
    defaults_go_with_conversion("EtcdCluster");
}

#[test]
fn defaults_go_with_conversion_for_an_app() {
    defaults_go_with_conversion("ExampleApp");
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
        json!({"metadata": {"annotations": {ANNOTATION: "]["}}, "spec": {}}),
        json!({"metadata": {"annotations": {ANNOTATION: 7}}, "spec": {}}),
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
