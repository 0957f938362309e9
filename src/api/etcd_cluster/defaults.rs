//! What an EtcdCluster means where it says nothing.
//! Comes in: a spec in v1, and the one before it. Goes out: the spec with its silence filled in.
//! May touch: the types of this kind. Idempotent, and never changes what the user gave. The webhook
//! writes these into the object; a controller that reads an object without them means the same.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::v1::{
    DeletionPolicy, EtcdClusterSpec, Medium, Repair, Storage, Tls, TlsSide, TlsSource,
};
use crate::api::field::Field;
use crate::api::pod::Image;

/// The official image of etcd.
pub const REPOSITORY: &str = "gcr.io/etcd-development/etcd";
/// Enough to survive the loss of one member while another is being changed.
const REPLICAS: i32 = 3;
const DISK: &str = "10Gi";
const MEMORY: &str = "1Gi";
const RECREATE_ATTEMPTS: i32 = 3;
const REPLACE_AFTER_SECONDS: i32 = 600;

/// Fills in what is not said. On an update that leaves the volumes out, they stay what they were: a
/// default must never shrink a volume, nor ask for another place for the data.
pub fn defaults(spec: &mut EtcdClusterSpec, old: Option<&EtcdClusterSpec>) {
    spec.replicas.fill(REPLICAS);
    if let Some(Image { repository, pull_policy: _, pull_secrets: _ }) = spec.image.block() {
        repository.fill(REPOSITORY.into());
    }
    if let Some(storage) = spec.storage.block() {
        storage_defaults(storage, old.and_then(|old| old.storage.known()));
    }
    if let Some(Tls { client, peer }) = spec.tls.block() {
        for side in [client, peer] {
            if let Some(TlsSide { source, issuer_ref: _, secret_ref: _ }) = side.block() {
                source.fill(TlsSource::Managed);
            }
        }
    }
    if let Some(Repair { recreate_attempts, replace_after_seconds }) = spec.repair.block() {
        recreate_attempts.fill(RECREATE_ATTEMPTS);
        replace_after_seconds.fill(REPLACE_AFTER_SECONDS);
    }
    spec.deletion_policy.fill(DeletionPolicy::Retain);
}

fn storage_defaults(storage: &mut Storage, old: Option<&Storage>) {
    let Storage { size, class_name: _, medium } = storage;
    let had = |old: Option<&Storage>| old.and_then(|old| old.medium.known().copied());
    medium.fill(had(old).unwrap_or(Medium::Disk));
    let fresh = if *medium == Field::Known(Medium::Memory) { MEMORY } else { DISK };
    let had = old.and_then(|old| old.size.known().cloned());
    size.fill(had.unwrap_or_else(|| fresh.into()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::field::Wire;
    use serde_json::json;

    fn filled(given: &serde_json::Value, old: Option<&serde_json::Value>) -> serde_json::Value {
        let mut spec = EtcdClusterSpec::read(given).unwrap();
        let old = old.map(|old| EtcdClusterSpec::read(old).unwrap());
        defaults(&mut spec, old.as_ref());
        serde_json::to_value(spec).unwrap()
    }

    #[test]
    fn a_version_is_enough_for_a_whole_cluster() {
        let whole = json!({
            "version": "3.6.16",
            "replicas": 3,
            "image": {"repository": REPOSITORY},
            "storage": {"size": "10Gi", "medium": "Disk"},
            "tls": {"client": {"source": "Managed"}, "peer": {"source": "Managed"}},
            "repair": {"recreateAttempts": 3, "replaceAfterSeconds": 600},
            "deletionPolicy": "Retain",
        });
        assert_eq!(filled(&json!({"version": "3.6.16"}), None), whole);
    }

    #[test]
    fn a_size_that_is_left_out_of_an_update_stays_what_it_was() {
        let old = json!({"storage": {"size": "50Gi"}});
        let new = filled(&json!({}), Some(&old));
        assert_eq!(new["storage"]["size"], "50Gi");
    }

    #[test]
    fn a_cluster_in_memory_stays_there_when_an_update_says_nothing_of_it() {
        let old = json!({"storage": {"size": "2Gi", "medium": "Memory"}});
        for silent in [json!({}), json!({"storage": {}})] {
            let storage = &filled(&silent, Some(&old))["storage"];
            assert_eq!(*storage, json!({"size": "2Gi", "medium": "Memory"}), "{silent}");
        }
    }

    #[test]
    fn what_does_not_fit_is_left_for_the_schema_to_name() {
        let odd = json!({"replicas": "three", "storage": 5, "tls": {"client": "on"}});
        let filled = filled(&odd, None);
        assert_eq!(filled["replicas"], odd["replicas"]);
        assert_eq!(filled["storage"], odd["storage"]);
        assert_eq!(filled["tls"]["client"], odd["tls"]["client"]);
    }
}
