//! Defaults of EtcdCluster. They are idempotent and never change a value that the user set.
//! The webhook writes them into the object; a controller that reads an object without them applies
//! the same ones.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::v1::{
    DeletionPolicy, EtcdClusterSpec, Medium, Repair, Storage, Tls, TlsSide, TlsSource,
};
use crate::api::field::Field;
use crate::api::pod::Image;

/// Repository of the official etcd image.
pub const REPOSITORY: &str = "gcr.io/etcd-development/etcd";
/// Keeps quorum while one member is lost or being updated.
const REPLICAS: i32 = 3;
const DISK_SIZE: &str = "10Gi";
const MEMORY_SIZE: &str = "1Gi";
const RECREATE_ATTEMPTS: i32 = 3;
const REPLACE_AFTER_SECONDS: i32 = 600;

/// Applies defaults to unset fields. On an update without storage fields the previous values are
/// kept: a default must never shrink a volume or change the medium of the data.
pub fn apply_defaults(spec: &mut EtcdClusterSpec, old: Option<&EtcdClusterSpec>) {
    spec.replicas.set_default(REPLICAS);
    if let Some(Image { repository, pull_policy: _, pull_secrets: _ }) = spec.image.get_or_default()
    {
        repository.set_default(REPOSITORY.into());
    }
    if let Some(storage) = spec.storage.get_or_default() {
        storage_defaults(storage, old.and_then(|old| old.storage.known()));
    }
    if let Some(Tls { client, peer }) = spec.tls.get_or_default() {
        for side in [client, peer] {
            if let Some(TlsSide { source, issuer_ref: _, secret_ref: _ }) = side.get_or_default() {
                source.set_default(TlsSource::Managed);
            }
        }
    }
    if let Some(Repair { recreate_attempts, replace_after_seconds }) = spec.repair.get_or_default()
    {
        recreate_attempts.set_default(RECREATE_ATTEMPTS);
        replace_after_seconds.set_default(REPLACE_AFTER_SECONDS);
    }
    spec.deletion_policy.set_default(DeletionPolicy::Retain);
}

fn storage_defaults(storage: &mut Storage, old: Option<&Storage>) {
    let Storage { size, class_name: _, medium } = storage;
    let previous = |old: Option<&Storage>| old.and_then(|old| old.medium.known().copied());
    medium.set_default(previous(old).unwrap_or(Medium::Disk));
    let initial = if *medium == Field::Known(Medium::Memory) { MEMORY_SIZE } else { DISK_SIZE };
    let previous = old.and_then(|old| old.size.known().cloned());
    size.set_default(previous.unwrap_or_else(|| initial.into()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::field::FromJson;
    use serde_json::json;

    fn with_defaults(
        given: &serde_json::Value,
        old: Option<&serde_json::Value>,
    ) -> serde_json::Value {
        let mut spec = EtcdClusterSpec::read(given).unwrap();
        let old = old.map(|old| EtcdClusterSpec::read(old).unwrap());
        apply_defaults(&mut spec, old.as_ref());
        serde_json::to_value(spec).unwrap()
    }

    #[test]
    fn only_the_version_is_required() {
        let expected = json!({
            "version": "3.6.16",
            "replicas": 3,
            "image": {"repository": REPOSITORY},
            "storage": {"size": "10Gi", "medium": "Disk"},
            "tls": {"client": {"source": "Managed"}, "peer": {"source": "Managed"}},
            "repair": {"recreateAttempts": 3, "replaceAfterSeconds": 600},
            "deletionPolicy": "Retain",
        });
        assert_eq!(with_defaults(&json!({"version": "3.6.16"}), None), expected);
    }

    #[test]
    fn size_unset_in_an_update_keeps_the_previous_value() {
        let old = json!({"storage": {"size": "50Gi"}});
        let new = with_defaults(&json!({}), Some(&old));
        assert_eq!(new["storage"]["size"], "50Gi");
    }

    #[test]
    fn medium_unset_in_an_update_keeps_the_previous_value() {
        let old = json!({"storage": {"size": "2Gi", "medium": "Memory"}});
        for unset in [json!({}), json!({"storage": {}})] {
            let storage = &with_defaults(&unset, Some(&old))["storage"];
            assert_eq!(*storage, json!({"size": "2Gi", "medium": "Memory"}), "{unset}");
        }
    }

    #[test]
    fn invalid_values_are_left_for_the_schema_to_report() {
        let odd = json!({"replicas": "three", "storage": 5, "tls": {"client": "on"}});
        let defaulted = with_defaults(&odd, None);
        assert_eq!(defaulted["replicas"], odd["replicas"]);
        assert_eq!(defaulted["storage"], odd["storage"]);
        assert_eq!(defaulted["tls"]["client"], odd["tls"]["client"]);
    }
}
