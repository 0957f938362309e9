//! EtcdRestore as controllers read it after validation.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::Value;

use super::{EtcdRestoreSpec, RecoverQuorum};
use crate::api::destination::validated::RestoreSource;
use crate::api::extract::{is_true, required_ref_name, string};
use crate::api::field::Field;
use crate::api::kinds::{self, Kind};
use crate::api::validated::{FromObject, ReadError};

/// A restore that needs approval.
#[derive(Clone, Debug, PartialEq)]
pub struct EtcdRestore {
    /// Name of the EtcdCluster. Its current data is lost.
    pub cluster: String,
    /// Source of the data.
    pub from: RestoreFrom,
    /// Whether the plan is approved.
    pub approved: bool,
}

/// Source of the data of a restore.
#[derive(Clone, Debug, PartialEq)]
pub enum RestoreFrom {
    /// A backup.
    From(RestoreSource),
    /// Data of one surviving member, without quorum.
    RecoverQuorum {
        /// Name of the member; the one with the newest data if unset.
        survivor: Option<String>,
    },
}

impl FromObject for EtcdRestore {
    fn kind() -> &'static Kind {
        &kinds::ETCD_RESTORE
    }

    fn read(object: &Value) -> Result<Self, ReadError> {
        let spec: EtcdRestoreSpec = Field::from_json(object.get("spec")).or_default();
        let EtcdRestoreSpec { cluster_ref, from, recover_quorum, approve } = spec;
        let from = match recover_quorum.into_known() {
            Some(RecoverQuorum { survivor }) => {
                RestoreFrom::RecoverQuorum { survivor: string(&survivor) }
            }
            None => RestoreFrom::From(RestoreSource::read(from, "spec.from")?),
        };
        Ok(Self {
            cluster: required_ref_name(&cluster_ref, "spec.clusterRef")?,
            from,
            approved: is_true(&approve),
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

    fn with(key: &str, value: Value) -> Value {
        let mut spec = json!({"clusterRef": {"name": "main"}});
        spec[key] = value;
        spec
    }

    fn restore(from: RestoreFrom) -> EtcdRestore {
        EtcdRestore { cluster: "main".to_owned(), from, approved: false }
    }

    #[test]
    fn only_cluster_and_backup_are_required_and_nothing_is_approved() {
        let spec = with("from", json!({"backupRef": {"name": "old"}}));
        assert_reads_as(
            &spec,
            &restore(RestoreFrom::From(RestoreSource::Backup("old".to_owned()))),
        );
        assert_defaults_keep_meaning::<EtcdRestore>(&spec);
    }

    #[test]
    fn quorum_recovery_uses_the_newest_or_the_named_member() {
        let survivor = None;
        assert_reads_as(
            &with("recoverQuorum", json!({})),
            &restore(RestoreFrom::RecoverQuorum { survivor }),
        );
        let spec = with("recoverQuorum", json!({"survivor": "main-x7k2p"}));
        let survivor = Some("main-x7k2p".to_owned());
        assert_reads_as(&spec, &restore(RestoreFrom::RecoverQuorum { survivor }));
        assert_defaults_keep_meaning::<EtcdRestore>(&spec);
    }

    #[test]
    fn location_is_read_with_its_access() {
        let mut spec = with(
            "from",
            json!({"location": "s3://backups/main.db", "access": {
                "endpoint": "https://s3.example.com", "region": "eu-1", "pathStyle": true,
                "credentialsSecretRef": {"name": "keys"}, "caSecretRef": {"name": "ca"},
            }}),
        );
        spec["approve"] = json!(true);
        let source = RestoreSource::Location {
            location: "s3://backups/main.db".to_owned(),
            endpoint: Some("https://s3.example.com".to_owned()),
            region: Some("eu-1".to_owned()),
            path_style: true,
            credentials: Some("keys".to_owned()),
            ca: Some("ca".to_owned()),
        };
        assert_reads_as(
            &spec,
            &EtcdRestore { approved: true, ..restore(RestoreFrom::From(source)) },
        );
    }

    #[test]
    fn errors_name_exactly_the_invalid_fields() {
        assert_rejected::<EtcdRestore>(&json!({"recoverQuorum": {}}), &["spec.clusterRef"]);
        assert_rejected::<EtcdRestore>(&with("approve", json!(true)), &["spec.from"]);
        assert_rejected::<EtcdRestore>(&with("from", json!({})), &["spec.from"]);
        let mut both = with("from", json!({"backupRef": {"name": "old"}}));
        both["recoverQuorum"] = json!({});
        assert_rejected::<EtcdRestore>(&both, &["spec.from"]);
        let mut odd = with("recoverQuorum", json!({}));
        odd["approve"] = json!("yes");
        assert_rejected::<EtcdRestore>(&odd, &["spec.approve"]);
    }
}
