//! An EtcdRestore as controllers see it.
//! Comes in: an object that has passed the checks. Goes out: [`EtcdRestore`].
//! May touch: the types of this kind.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::Value;

use super::{EtcdRestoreSpec, RecoverQuorum};
use crate::api::checked::{Readable, Unread};
use crate::api::destination::checked::Source;
use crate::api::field::Field;
use crate::api::kinds::{self, Kind};
use crate::api::plain::{is_true, some_name, text};

/// A cluster to bring back, once somebody agrees.
#[derive(Clone, Debug, PartialEq)]
pub struct EtcdRestore {
    /// The cluster. Its present data is lost.
    pub cluster: String,
    /// What with.
    pub what: What,
    /// Whether the plan may be carried out.
    pub approved: bool,
}

/// What a cluster is brought back with.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A backup.
    From(Source),
    /// The data of a member that survived, when too few are left to agree.
    RecoverQuorum {
        /// The member; the one with the newest data if nothing was said.
        survivor: Option<String>,
    },
}

impl Readable for EtcdRestore {
    fn kind() -> &'static Kind {
        &kinds::ETCD_RESTORE
    }

    fn read(object: &Value) -> Result<Self, Unread> {
        let spec: EtcdRestoreSpec = Field::of(object.get("spec")).or_empty();
        let EtcdRestoreSpec { cluster_ref, from, recover_quorum, approve } = spec;
        let what = match recover_quorum.into_known() {
            Some(RecoverQuorum { survivor }) => What::RecoverQuorum { survivor: text(&survivor) },
            None => What::From(Source::read(from, "spec.from")?),
        };
        Ok(Self {
            cluster: some_name(&cluster_ref, "spec.clusterRef")?,
            what,
            approved: is_true(&approve),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::checked::tests::{becomes, means_the_same_when_filled, refused};
    use serde_json::json;

    fn with(key: &str, value: Value) -> Value {
        let mut spec = json!({"clusterRef": {"name": "main"}});
        spec[key] = value;
        spec
    }

    fn restore(what: What) -> EtcdRestore {
        EtcdRestore { cluster: "main".to_owned(), what, approved: false }
    }

    #[test]
    fn a_cluster_and_a_backup_are_enough_and_nothing_is_approved() {
        let spec = with("from", json!({"backupRef": {"name": "old"}}));
        becomes(&spec, &restore(What::From(Source::Backup("old".to_owned()))));
        means_the_same_when_filled::<EtcdRestore>(&spec);
    }

    #[test]
    fn a_cluster_that_lost_its_quorum_goes_on_with_the_newest_data_or_with_who_was_named() {
        let survivor = None;
        becomes(&with("recoverQuorum", json!({})), &restore(What::RecoverQuorum { survivor }));
        let spec = with("recoverQuorum", json!({"survivor": "main-x7k2p"}));
        let survivor = Some("main-x7k2p".to_owned());
        becomes(&spec, &restore(What::RecoverQuorum { survivor }));
        means_the_same_when_filled::<EtcdRestore>(&spec);
    }

    #[test]
    fn a_place_in_a_store_comes_with_the_way_to_it() {
        let mut spec = with(
            "from",
            json!({"location": "s3://backups/main.db", "access": {
                "endpoint": "https://s3.example.com", "region": "eu-1", "pathStyle": true,
                "credentialsSecretRef": {"name": "keys"}, "caSecretRef": {"name": "ca"},
            }}),
        );
        spec["approve"] = json!(true);
        let source = Source::Location {
            location: "s3://backups/main.db".to_owned(),
            endpoint: Some("https://s3.example.com".to_owned()),
            region: Some("eu-1".to_owned()),
            path_style: true,
            credentials: Some("keys".to_owned()),
            authority: Some("ca".to_owned()),
        };
        becomes(&spec, &EtcdRestore { approved: true, ..restore(What::From(source)) });
    }

    #[test]
    fn what_is_wrong_is_named_and_nothing_else() {
        refused::<EtcdRestore>(&json!({"recoverQuorum": {}}), &["spec.clusterRef"]);
        refused::<EtcdRestore>(&with("approve", json!(true)), &["spec.from"]);
        refused::<EtcdRestore>(&with("from", json!({})), &["spec.from"]);
        let mut both = with("from", json!({"backupRef": {"name": "old"}}));
        both["recoverQuorum"] = json!({});
        refused::<EtcdRestore>(&both, &["spec.from"]);
        let mut odd = with("recoverQuorum", json!({}));
        odd["approve"] = json!("yes");
        refused::<EtcdRestore>(&odd, &["spec.approve"]);
    }
}
