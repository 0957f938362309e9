//! Meaning: nothing is invented, the hub has words for everything, and a default means the same in
//! every version.

use proptest::prelude::*;
use quorate::api::convert::PRESERVED_FIELDS_ANNOTATION;
use serde_json::{Value, json};

use super::generate::{Care, paths, remove, runner};
use super::{kind, leaves, objects, parts, same, to};

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
        for from in kind.versions() {
            for there in kind.versions() {
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
            let kept = hub["metadata"]["annotations"][PRESERVED_FIELDS_ANNOTATION]
                .as_str()
                .unwrap_or("{}");
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

/// What the apiserver takes, the Rust types read without a misfit, and write as it was.
#[test]
fn what_fits_the_schema_fits_the_types() {
    fn all<K: std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned>(
        name: &str,
        version: &str,
    ) {
        let objects = objects(kind(name), version, Care::Valid);
        let tried = runner(11).run(&objects, |mut object| {
            // The metadata is a type of Kubernetes', which reads and writes it as it likes.
            object["metadata"] = json!({ "name": "a" });
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
                let filled = kind.with_defaults(&hub, None);
                same(&filled, &kind.with_defaults(&filled, None))?;
                same(&parts(&filled), &parts(&to(kind, "v1", &to(kind, spoke, &filled))))?;
                let late = kind.with_defaults(&to(kind, "v1", &to(kind, spoke, &hub)), None);
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

#[test]
fn defaults_go_with_conversion_for_a_cluster() {
    defaults_go_with_conversion("EtcdCluster");
}

#[test]
fn defaults_go_with_conversion_for_an_app() {
    defaults_go_with_conversion("ExampleApp");
}
