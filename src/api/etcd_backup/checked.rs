//! An EtcdBackup as controllers see it.
//! Comes in: an object that has passed the checks. Goes out: [`EtcdBackup`].
//! May touch: the types of this kind.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use serde_json::Value;

use super::EtcdBackupSpec;
use crate::api::checked::{Readable, Unread};
use crate::api::destination::checked::Store;
use crate::api::field::Field;
use crate::api::kinds::{self, Kind};
use crate::api::plain::{is_true, maybe_number, some_name};

/// A backup that somebody, or a schedule, asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct EtcdBackup {
    /// The cluster to back up.
    pub cluster: String,
    /// Where to; where the cluster's own backups go if nothing was said.
    pub store: Option<Store>,
    /// Whether it is proven that it can be restored.
    pub verify: bool,
    /// After how long it is removed; never if nothing was said.
    pub remove_after: Option<Duration>,
}

impl Readable for EtcdBackup {
    fn kind() -> &'static Kind {
        &kinds::ETCD_BACKUP
    }

    fn read(object: &Value) -> Result<Self, Unread> {
        let spec: EtcdBackupSpec = Field::of(object.get("spec")).or_empty();
        let EtcdBackupSpec { cluster_ref, destination, verify, ttl_seconds } = spec;
        let seconds = maybe_number(&ttl_seconds, "spec.ttlSeconds")?;
        Ok(Self {
            cluster: some_name(&cluster_ref, "spec.clusterRef")?,
            store: Store::read(destination, "spec.destination")?,
            verify: is_true(&verify),
            remove_after: seconds.map(Duration::from_secs),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::checked::tests::{becomes, means_the_same_when_filled, refused};
    use serde_json::json;

    fn bare() -> EtcdBackup {
        EtcdBackup { cluster: "main".to_owned(), store: None, verify: false, remove_after: None }
    }

    #[test]
    fn a_cluster_is_enough_for_a_backup() {
        becomes(&json!({"clusterRef": {"name": "main"}}), &bare());
    }

    #[test]
    fn null_is_as_good_as_left_out() {
        let spec = json!({
            "clusterRef": {"name": "main"}, "destination": null, "verify": null, "ttlSeconds": null,
        });
        becomes(&spec, &bare());
    }

    #[test]
    fn everything_that_is_said_is_there() {
        let spec = json!({
            "clusterRef": {"name": "main"},
            "destination": {"volume": {"claimRef": {"name": "backups"}, "prefix": "main"}},
            "verify": true,
            "ttlSeconds": 604_800,
        });
        let (claim, prefix) = ("backups".to_owned(), Some("main".to_owned()));
        let whole = EtcdBackup {
            store: Some(Store::Volume { claim, prefix }),
            verify: true,
            remove_after: Some(Duration::from_hours(7 * 24)),
            ..bare()
        };
        becomes(&spec, &whole);
        means_the_same_when_filled::<EtcdBackup>(&spec);
    }

    #[test]
    fn what_is_wrong_is_named_and_nothing_else() {
        let with = |key: &str, value: Value| {
            let mut spec = json!({"clusterRef": {"name": "main"}});
            spec[key] = value;
            spec
        };
        refused::<EtcdBackup>(&json!({"verify": true}), &["spec.clusterRef"]);
        refused::<EtcdBackup>(&with("clusterRef", json!({})), &["spec.clusterRef.name"]);
        refused::<EtcdBackup>(&with("ttlSeconds", json!(-1)), &["spec.ttlSeconds"]);
        refused::<EtcdBackup>(&with("verify", json!("yes")), &["spec.verify"]);
        // It does not go where the cluster's own backups go, as it would without a word.
        refused::<EtcdBackup>(&with("destination", json!({})), &["spec.destination"]);
        let nameless = json!({"s3": {"bucket": null}});
        refused::<EtcdBackup>(&with("destination", nameless), &["spec.destination.s3.bucket"]);
    }
}
