//! Helpers for the tests of every kind, and the guarantees of reading for all of them.

use std::fmt::Debug;

use serde_json::json;

use super::*;
use crate::api::etcd_cluster::validated::EtcdCluster;
use crate::api::validation::features::FeatureSet;

fn context(features: FeatureSet) -> ValidationContext<'static> {
    ValidationContext {
        now: "2026-01-31T12:00:00Z".parse().unwrap(),
        features,
        request_version: "v1",
    }
}

fn object<T: FromObject>(spec: &Value) -> Value {
    let api_version = T::kind().api_version(T::kind().hub());
    json!({
        "apiVersion": api_version, "kind": T::kind().name, "metadata": {"name": "main"},
        "spec": spec,
    })
}

fn read<T: FromObject>(object: &Value) -> Result<Validated<T>, ValidationResult> {
    Validated::read(object, &context(FeatureSet::ALL))
}

/// The value of a spec.
pub(crate) fn value<T: FromObject + Debug + Clone>(spec: &Value) -> T {
    T::clone(&read(&object::<T>(spec)).unwrap())
}

/// Asserts the value of a spec.
pub(crate) fn assert_reads_as<T: FromObject + Debug + Clone + PartialEq>(
    spec: &Value,
    expected: &T,
) {
    assert_eq!(value::<T>(spec), *expected, "{spec}");
}

/// Asserts that a spec is rejected with errors for exactly these paths.
pub(crate) fn assert_rejected<T: FromObject + Debug>(spec: &Value, paths: &[&str]) {
    let result = read::<T>(&object::<T>(spec)).unwrap_err();
    let actual: Vec<&str> =
        result.violations.iter().map(|violation| violation.path.as_str()).collect();
    assert_eq!(actual, paths, "{spec}: {:?}", result.violations);
}

/// Asserts that defaults do not change the value of a spec.
pub(crate) fn assert_defaults_keep_meaning<T: FromObject + Debug + PartialEq>(spec: &Value) {
    let object = object::<T>(spec);
    let with_defaults = T::kind().with_defaults(&object, None);
    assert_eq!(read::<T>(&object).unwrap(), read::<T>(&with_defaults).unwrap(), "{spec}");
}

#[test]
fn object_that_bypassed_the_webhook_gets_the_same_messages() {
    let object = object::<EtcdCluster>(&json!({"version": "3.6", "replicas": 9}));
    let context = context(FeatureSet::ALL);
    let by_webhook = validate(EtcdCluster::kind(), None, &object, &context);
    assert_eq!(by_webhook.violations.len(), 2);
    assert_eq!(Validated::<EtcdCluster>::read(&object, &context).unwrap_err(), by_webhook);
}

#[test]
fn unsupported_feature_is_rejected() {
    let object = object::<EtcdCluster>(&json!({
        "version": "3.6.16", "restore": {"from": {"backupRef": {"name": "old"}}},
    }));
    assert!(Validated::<EtcdCluster>::read(&object, &context(FeatureSet::ALL)).is_ok());
    let result =
        Validated::<EtcdCluster>::read(&object, &context(FeatureSet::only(&[]))).unwrap_err();
    assert_eq!(result.violations.first().unwrap().path, "spec.restore");
}

#[test]
fn every_size_that_the_schema_accepts_is_read() {
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
fn object_without_a_spec_is_rejected() {
    let object = json!({"metadata": {"name": "main"}});
    assert_eq!(read::<EtcdCluster>(&object).unwrap_err().violations.len(), 1);
}
