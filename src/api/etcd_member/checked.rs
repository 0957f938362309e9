//! An EtcdMember as controllers see it.
//! Comes in: an object that has passed the checks. Goes out: [`EtcdMember`].
//! May touch: the types of this kind, and what a cluster says about storage.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::Value;

use super::{EtcdMemberSpec, Intent};
use crate::api::checked::{Readable, Unread};
use crate::api::etcd_cluster::checked::{Storage, kept_on};
use crate::api::field::Field;
use crate::api::kinds::{self, Kind};
use crate::api::plain::{is_true, some_text, text};

/// One member, and what is to become of it.
#[derive(Clone, Debug, PartialEq)]
pub struct EtcdMember {
    /// The cluster it belongs to.
    pub cluster: String,
    /// Its name in etcd.
    pub name: String,
    /// Where the other members reach it.
    pub peer_url: String,
    /// Where clients reach it, if it was written down.
    pub client_url: Option<String>,
    /// What it keeps its data on; what its cluster says if nothing was written down. Nothing is made
    /// up here, because a made-up size could be another than that of the cluster.
    pub storage: Option<Storage>,
    /// What it is there for.
    pub intent: Intent,
    /// Whether etcd may have run in a pod of it.
    pub started: bool,
}

impl Readable for EtcdMember {
    fn kind() -> &'static Kind {
        &kinds::ETCD_MEMBER
    }

    fn read(object: &Value) -> Result<Self, Unread> {
        let spec: EtcdMemberSpec = Field::of(object.get("spec")).or_empty();
        let EtcdMemberSpec { cluster_name, name, peer_url, client_url, storage, intent, started } =
            spec;
        let no_intent = Unread { path: "spec.intent", wanted: "what it is there for" };
        Ok(Self {
            cluster: some_text(&cluster_name, "spec.clusterName")?,
            name: some_text(&name, "spec.name")?,
            peer_url: some_text(&peer_url, "spec.peerURL")?,
            client_url: text(&client_url),
            storage: storage.into_known().map(kept_on).transpose()?,
            intent: intent.into_known().ok_or(no_intent)?,
            started: is_true(&started),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::checked::tests::{becomes, means_the_same_when_filled, refused};
    use crate::api::etcd_cluster::v1::Medium;
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
    fn what_must_be_written_down_is_enough() {
        becomes(&spec(), &bare());
        becomes(&with("storage", Value::Null), &bare());
        means_the_same_when_filled::<EtcdMember>(&spec());
    }

    #[test]
    fn everything_that_is_said_is_there() {
        let mut spec = with("storage", json!({"size": "1Gi", "className": "fast"}));
        spec["clientURL"] = json!("https://here:2379");
        let (class, medium) = (Some("fast".to_owned()), Medium::Disk);
        let whole = EtcdMember {
            client_url: Some("https://here:2379".to_owned()),
            storage: Some(Storage { bytes: 1 << 30, class, medium }),
            ..bare()
        };
        becomes(&spec, &whole);
        means_the_same_when_filled::<EtcdMember>(&spec);
    }

    #[test]
    fn what_is_wrong_is_named_and_nothing_else() {
        refused::<EtcdMember>(&with("intent", json!("Stay")), &["spec.intent"]);
        refused::<EtcdMember>(&with("intent", Value::Null), &["spec.intent"]);
        refused::<EtcdMember>(&with("peerURL", json!("here")), &["spec.peerURL"]);
        refused::<EtcdMember>(&with("clusterName", json!("Main")), &["spec.clusterName"]);
    }

    #[test]
    fn storage_without_a_size_is_not_guessed() {
        // The checks let it pass, because a member is the operator's to write.
        refused::<EtcdMember>(&with("storage", json!({"medium": "Disk"})), &["spec.storage.size"]);
    }
}
