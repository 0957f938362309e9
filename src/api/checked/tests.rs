//! What every kind's reading is tried with, and what reading promises for all of them.

use std::fmt::Debug;

use serde_json::json;

use super::*;
use crate::api::check::release::Abilities;
use crate::api::etcd_cluster::checked::EtcdCluster;

fn facts(can: Abilities) -> Facts<'static> {
    Facts { now: "2026-01-31T12:00:00Z".parse().unwrap(), can, written_in: "v1" }
}

fn object<T: Readable>(spec: &Value) -> Value {
    let api_version = T::kind().api_version(T::kind().hub());
    json!({
        "apiVersion": api_version, "kind": T::kind().name, "metadata": {"name": "main"},
        "spec": spec,
    })
}

fn read<T: Readable>(object: &Value) -> Result<Checked<T>, Verdict> {
    Checked::read(object, &facts(Abilities::EVERYTHING))
}

/// The value that a spec becomes.
pub(crate) fn value<T: Readable + Debug + Clone>(spec: &Value) -> T {
    T::clone(&read(&object::<T>(spec)).unwrap())
}

/// A spec becomes this value.
pub(crate) fn becomes<T: Readable + Debug + Clone + PartialEq>(spec: &Value, expected: &T) {
    assert_eq!(value::<T>(spec), *expected, "{spec}");
}

/// A spec is refused, with exactly these paths.
pub(crate) fn refused<T: Readable + Debug>(spec: &Value, paths: &[&str]) {
    let verdict = read::<T>(&object::<T>(spec)).unwrap_err();
    let said: Vec<&str> = verdict.violations.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(said, paths, "{spec}: {:?}", verdict.violations);
}

/// What the webhook writes into a spec changes nothing about what it means.
pub(crate) fn means_the_same_when_filled<T: Readable + Debug + PartialEq>(spec: &Value) {
    let object = object::<T>(spec);
    let filled = T::kind().filled(&object, None);
    assert_eq!(read::<T>(&object).unwrap(), read::<T>(&filled).unwrap(), "{spec}");
}

#[test]
fn an_object_that_slipped_past_the_webhook_is_met_with_the_same_sentences() {
    let object = object::<EtcdCluster>(&json!({"version": "3.6", "replicas": 9}));
    let facts = facts(Abilities::EVERYTHING);
    let by_webhook = check(EtcdCluster::kind(), None, &object, &facts);
    assert_eq!(by_webhook.violations.len(), 2);
    assert_eq!(Checked::<EtcdCluster>::read(&object, &facts).unwrap_err(), by_webhook);
}

#[test]
fn what_no_controller_does_yet_is_not_read_either() {
    let object = object::<EtcdCluster>(&json!({
        "version": "3.6.16", "restore": {"from": {"backupRef": {"name": "old"}}},
    }));
    assert!(Checked::<EtcdCluster>::read(&object, &facts(Abilities::EVERYTHING)).is_ok());
    let verdict = Checked::<EtcdCluster>::read(&object, &facts(Abilities::only(&[]))).unwrap_err();
    assert_eq!(verdict.violations.first().unwrap().path, "spec.restore");
}

#[test]
fn every_size_that_the_schema_takes_can_be_counted() {
    for size in ["999999Ti", "999999.999Ti", "999999999999999", "999999.9T", "999999k"] {
        let object =
            object::<EtcdCluster>(&json!({"version": "3.6.16", "storage": {"size": size}}));
        assert!(read::<EtcdCluster>(&object).is_ok(), "{size}");
    }
    for size in ["1Pi", "9999999Ti", "1000000000000000"] {
        let object =
            object::<EtcdCluster>(&json!({"version": "3.6.16", "storage": {"size": size}}));
        assert!(read::<EtcdCluster>(&object).is_err(), "{size}");
    }
}

#[test]
fn an_object_without_a_spec_is_refused() {
    let object = json!({"metadata": {"name": "main"}});
    assert_eq!(read::<EtcdCluster>(&object).unwrap_err().violations.len(), 1);
}
