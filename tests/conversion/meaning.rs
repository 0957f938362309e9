//! Semantics: nothing is invented, the hub can express everything, and defaults are the same in
//! every version.

use proptest::prelude::*;
use quorate::api::convert::PRESERVED_FIELDS_ANNOTATION;
use serde_json::{Value, json};

use super::arbitrary_objects::{Fill, paths, remove, runner};
use super::{kind, leaves, objects, parts, same, to};

/// An object with fewer fields converts to an object with fewer fields.
fn nothing_is_invented(name: &str) {
    let kind = kind(name);
    for (fill, percent) in [(Fill::Full, 2), (Fill::Valid, 23)] {
        for [from, other] in
            [["v1alpha1", "v1"], ["v1beta1", "v1"], ["v1", "v1beta1"], ["v1", "v1alpha1"]]
        {
            let result = runner(percent).run(
                &(objects(kind, from, fill), any::<u64>()),
                |(object, choice)| {
                    let mut less = object.clone();
                    let mut keys = Vec::new();
                    paths(&object, "", &mut keys);
                    for (index, key) in keys.iter().enumerate() {
                        if choice.rotate_left(index as u32 * 7) % 3 == 0 {
                            remove(&mut less, key);
                        }
                    }
                    let fields = |object: &Value| {
                        let mut found = Vec::new();
                        paths(&parts(object), "", &mut found);
                        found
                    };
                    let (whole, part) =
                        (fields(&to(kind, other, &object)), fields(&to(kind, other, &less)));
                    let invented: Vec<_> =
                        part.iter().filter(|path| !whole.contains(path)).collect();
                    prop_assert!(invented.is_empty(), "{:?} was invented", invented);
                    Ok(())
                },
            );
            if let Err(error) = result {
                panic!("{} {from} -> {other}: {error}", kind.name);
            }
        }
    }
}

#[test]
fn empty_object_converts_to_an_empty_object() {
    for kind in [kind("EtcdCluster"), kind("ExampleApp")] {
        for from in kind.versions() {
            for other in kind.versions() {
                let empty = json!({
                    "apiVersion": kind.api_version(from), "kind": kind.name, "metadata": {},
                    "spec": {}, "status": {},
                });
                let converted = to(kind, other.name, &empty);
                assert_eq!(converted["spec"], json!({}), "{} {}", kind.name, other.name);
                assert_eq!(converted["status"], json!({}), "{} {}", kind.name, other.name);
                assert_eq!(converted["metadata"], json!({}), "{} {}", kind.name, other.name);
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

/// The hub can express every valid spec of an older version without preserved fields, except for
/// the order of a set.
fn hub_expresses_everything(name: &str, exceptions: &[&str]) {
    let kind = kind(name);
    for spoke in ["v1beta1", "v1alpha1"] {
        let result = runner(10).run(&objects(kind, spoke, Fill::Full), |object| {
            // The rules of other store types reject a host, or require another form.
            for store in ["destination", "backup"].map(|field| &object["spec"][field]) {
                prop_assume!(store["storageType"].is_null() || store["storageType"] == "s3");
                prop_assume!(store.get("host").is_none() || store["storageType"] == "s3");
                prop_assume!(store.as_object().is_none_or(|store| !store.is_empty()));
            }
            let hub = to(kind, "v1", &object);
            let preserved = hub["metadata"]["annotations"][PRESERVED_FIELDS_ANNOTATION]
                .as_str()
                .unwrap_or("{}");
            let preserved: Value = serde_json::from_str(preserved).unwrap();
            for pointer in
                preserved[spoke].as_object().into_iter().flat_map(|section| section.keys())
            {
                let expected =
                    pointer.starts_with("/status") || exceptions.contains(&pointer.as_str());
                prop_assert!(expected, "{} of {} is not in v1", pointer, spoke);
            }
            Ok(())
        });
        if let Err(error) = result {
            panic!("{name} {spoke}: {error}");
        }
    }
}

#[test]
fn v1_expresses_every_older_cluster_spec() {
    hub_expresses_everything("EtcdCluster", &[]);
}

#[test]
fn v1_expresses_every_older_app_spec() {
    hub_expresses_everything("ExampleApp", &["/spec/features"]);
}

/// The Rust types read every object that the API server accepts without an invalid field, and write
/// it unchanged.
#[test]
fn types_match_the_schema() {
    fn all<K: std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned>(
        name: &str,
        version: &str,
    ) {
        let objects = objects(kind(name), version, Fill::Valid);
        let result = runner(11).run(&objects, |mut object| {
            // Metadata has a type of Kubernetes, which does not round-trip.
            object["metadata"] = json!({ "name": "a" });
            let read: K = serde_json::from_value(object.clone()).unwrap();
            let debugged = format!("{read:?}");
            prop_assert!(!debugged.contains("Invalid("), "{}", debugged);
            same(&object, &serde_json::to_value(&read).unwrap())
        });
        if let Err(error) = result {
            panic!("{name} {version}: {error}");
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

/// Defaults are the same before and after conversion, are idempotent, and change no set field.
fn defaults_survive_conversion(name: &str) {
    let kind = kind(name);
    for fill in [Fill::Valid, Fill::Disturbed] {
        for spoke in ["v1beta1", "v1alpha1"] {
            let result = runner(25).run(&objects(kind, spoke, fill), |object| {
                let hub = to(kind, "v1", &object);
                let defaulted = kind.with_defaults(&hub, None);
                same(&defaulted, &kind.with_defaults(&defaulted, None))?;
                let round_trip = to(kind, "v1", &to(kind, spoke, &defaulted));
                same(&parts(&defaulted), &parts(&round_trip))?;
                let late = kind.with_defaults(&to(kind, "v1", &to(kind, spoke, &hub)), None);
                same(&defaulted, &late)?;
                let mut set = Vec::new();
                leaves(&parts(&hub), "", &mut set);
                for path in set {
                    prop_assert_eq!(
                        hub.pointer(&path),
                        defaulted.pointer(&path),
                        "{} was changed",
                        path
                    );
                }
                Ok(())
            });
            if let Err(error) = result {
                panic!("{} {spoke}, {fill:?}: {error}", kind.name);
            }
        }
    }
}

#[test]
fn defaults_of_a_cluster_survive_conversion() {
    defaults_survive_conversion("EtcdCluster");
}

#[test]
fn defaults_of_an_app_survive_conversion() {
    defaults_survive_conversion("ExampleApp");
}
