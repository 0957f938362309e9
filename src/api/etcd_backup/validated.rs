//! EtcdBackup as controllers read it after validation.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use serde_json::Value;

use super::EtcdBackupSpec;
use crate::api::destination::validated::ObjectStore;
use crate::api::extract::{is_true, optional_number, required_ref_name};
use crate::api::field::Field;
use crate::api::kinds::{self, Kind};
use crate::api::validated::{FromObject, ReadError};

/// A requested backup.
#[derive(Clone, Debug, PartialEq)]
pub struct EtcdBackup {
    /// Name of the EtcdCluster.
    pub cluster: String,
    /// Destination; the one of the cluster if unset.
    pub store: Option<ObjectStore>,
    /// Whether the backup is verified by restoring it.
    pub verify: bool,
    /// Time after which the backup is deleted; never if unset.
    pub remove_after: Option<Duration>,
}

impl FromObject for EtcdBackup {
    fn kind() -> &'static Kind {
        &kinds::ETCD_BACKUP
    }

    fn read(object: &Value) -> Result<Self, ReadError> {
        let spec: EtcdBackupSpec = Field::from_json(object.get("spec")).or_default();
        let EtcdBackupSpec { cluster_ref, destination, verify, ttl_seconds } = spec;
        let seconds = optional_number(&ttl_seconds, "spec.ttlSeconds")?;
        Ok(Self {
            cluster: required_ref_name(&cluster_ref, "spec.clusterRef")?,
            store: ObjectStore::read(destination, "spec.destination")?,
            verify: is_true(&verify),
            remove_after: seconds.map(Duration::from_secs),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::validated::tests::{
        assert_defaults_keep_meaning, assert_reads_as, assert_rejected,
    };
    use serde_json::json;

    fn bare() -> EtcdBackup {
        EtcdBackup { cluster: "main".to_owned(), store: None, verify: false, remove_after: None }
    }

    #[test]
    fn only_the_cluster_is_required() {
        assert_reads_as(&json!({"clusterRef": {"name": "main"}}), &bare());
    }

    #[test]
    fn null_is_the_same_as_unset() {
        let spec = json!({
            "clusterRef": {"name": "main"}, "destination": null, "verify": null, "ttlSeconds": null,
        });
        assert_reads_as(&spec, &bare());
    }

    #[test]
    fn every_field_is_read() {
        let spec = json!({
            "clusterRef": {"name": "main"},
            "destination": {"volume": {"claimRef": {"name": "backups"}, "prefix": "main"}},
            "verify": true,
            "ttlSeconds": 604_800,
        });
        let (claim, prefix) = ("backups".to_owned(), Some("main".to_owned()));
        let whole = EtcdBackup {
            store: Some(ObjectStore::Volume { claim, prefix }),
            verify: true,
            remove_after: Some(Duration::from_hours(7 * 24)),
            ..bare()
        };
        assert_reads_as(&spec, &whole);
        assert_defaults_keep_meaning::<EtcdBackup>(&spec);
    }

    #[test]
    fn errors_name_exactly_the_invalid_fields() {
        let with = |key: &str, value: Value| {
            let mut spec = json!({"clusterRef": {"name": "main"}});
            spec[key] = value;
            spec
        };
        assert_rejected::<EtcdBackup>(&json!({"verify": true}), &["spec.clusterRef"]);
        assert_rejected::<EtcdBackup>(&with("clusterRef", json!({})), &["spec.clusterRef.name"]);
        assert_rejected::<EtcdBackup>(&with("ttlSeconds", json!(-1)), &["spec.ttlSeconds"]);
        assert_rejected::<EtcdBackup>(&with("verify", json!("yes")), &["spec.verify"]);
        // An empty destination is an error and not the destination of the cluster.
        assert_rejected::<EtcdBackup>(&with("destination", json!({})), &["spec.destination"]);
        let nameless = json!({"s3": {"bucket": null}});
        assert_rejected::<EtcdBackup>(
            &with("destination", nameless),
            &["spec.destination.s3.bucket"],
        );
    }
}
