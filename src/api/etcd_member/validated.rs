//! EtcdMember as controllers read it after validation.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::Value;

use super::{EtcdMemberSpec, Intent};
use crate::api::etcd_cluster::validated::{Storage, storage as validated_storage};
use crate::api::extract::{is_true, required_string, string};
use crate::api::field::Field;
use crate::api::kinds::{self, Kind};
use crate::api::validated::{FromObject, ReadError};

/// A member and its intent.
#[derive(Clone, Debug, PartialEq)]
pub struct EtcdMember {
    /// Name of the EtcdCluster.
    pub cluster: String,
    /// Name in etcd.
    pub name: String,
    /// Peer URL.
    pub peer_url: String,
    /// Client URL, if recorded.
    pub client_url: Option<String>,
    /// Storage; the one of the cluster if unset. No default is applied here, because its size could
    /// differ from that of the cluster.
    pub storage: Option<Storage>,
    /// Purpose of the member.
    pub intent: Intent,
    /// Whether etcd may have run in a pod of this member.
    pub started: bool,
}

impl FromObject for EtcdMember {
    fn kind() -> &'static Kind {
        &kinds::ETCD_MEMBER
    }

    fn read(object: &Value) -> Result<Self, ReadError> {
        let spec: EtcdMemberSpec = Field::from_json(object.get("spec")).or_default();
        let EtcdMemberSpec { cluster_name, name, peer_url, client_url, storage, intent, started } =
            spec;
        let no_intent = ReadError { path: "spec.intent", expected: "a valid intent" };
        Ok(Self {
            cluster: required_string(&cluster_name, "spec.clusterName")?,
            name: required_string(&name, "spec.name")?,
            peer_url: required_string(&peer_url, "spec.peerURL")?,
            client_url: string(&client_url),
            storage: storage.into_known().map(validated_storage).transpose()?,
            intent: intent.into_known().ok_or(no_intent)?,
            started: is_true(&started),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::etcd_cluster::v1::Medium;
    use crate::api::validated::tests::{
        assert_defaults_keep_meaning, assert_reads_as, assert_rejected,
    };
    use serde_json::json;

    fn spec() -> Value {
        json!({
            "clusterName": "main", "name": "main-x7k2p", "peerURL": "https://here:2380",
            "intent": "Join",
        })
    }

    fn with(key: &str, value: Value) -> Value {
        let mut spec = spec();
        spec[key] = value;
        spec
    }

    fn bare() -> EtcdMember {
        EtcdMember {
            cluster: "main".to_owned(),
            name: "main-x7k2p".to_owned(),
            peer_url: "https://here:2380".to_owned(),
            client_url: None,
            storage: None,
            intent: Intent::Join,
            started: false,
        }
    }

    #[test]
    fn required_fields_are_sufficient() {
        assert_reads_as(&spec(), &bare());
        assert_reads_as(&with("storage", Value::Null), &bare());
        assert_defaults_keep_meaning::<EtcdMember>(&spec());
    }

    #[test]
    fn every_field_is_read() {
        let mut spec = with("storage", json!({"size": "1Gi", "className": "fast"}));
        spec["clientURL"] = json!("https://here:2379");
        let (class, medium) = (Some("fast".to_owned()), Medium::Disk);
        let whole = EtcdMember {
            client_url: Some("https://here:2379".to_owned()),
            storage: Some(Storage { bytes: 1 << 30, class, medium }),
            ..bare()
        };
        assert_reads_as(&spec, &whole);
        assert_defaults_keep_meaning::<EtcdMember>(&spec);
    }

    #[test]
    fn errors_name_exactly_the_invalid_fields() {
        assert_rejected::<EtcdMember>(&with("intent", json!("Stay")), &["spec.intent"]);
        assert_rejected::<EtcdMember>(&with("intent", Value::Null), &["spec.intent"]);
        assert_rejected::<EtcdMember>(&with("peerURL", json!("here")), &["spec.peerURL"]);
        assert_rejected::<EtcdMember>(&with("clusterName", json!("Main")), &["spec.clusterName"]);
    }

    #[test]
    fn storage_without_a_size_is_rejected() {
        // Validation allows it because only the operator writes members.
        assert_rejected::<EtcdMember>(
            &with("storage", json!({"medium": "Disk"})),
            &["spec.storage.size"],
        );
    }
}
