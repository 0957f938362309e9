//! What all objects of a cluster have in common: names, labels, owners, and where members are.
//! Comes in: a blueprint. Goes out: metadata and URLs. May touch: `api`, Kubernetes' own types; pure.
//! Under `Disconnect` nothing has the EtcdCluster as its owner, so that everything runs on without it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;

use super::Blueprint;
use crate::api::etcd_cluster::checked::Certificates;
use crate::api::etcd_cluster::v1::{DeletionPolicy, EtcdCluster};
use crate::api::etcd_member::EtcdMember;
use crate::api::names;
use crate::etcd_cluster::doors::{Open, Scheme};
use crate::etcd_cluster::seen::Name;

/// What etcd is called in labels.
const ETCD: &str = "etcd";

impl Blueprint<'_> {
    /// The labels of everything of the cluster.
    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        owned(&[
            (names::NAME_LABEL, ETCD),
            (names::INSTANCE_LABEL, self.name),
            (names::COMPONENT_LABEL, "member"),
            (names::PART_OF_LABEL, self.name),
            (names::MANAGED_BY_LABEL, names::OPERATOR),
            (names::CLUSTER_LABEL, self.name),
            // Another cluster of this name may have been here, and its things may not be gone yet.
            (names::CLUSTER_UID_LABEL, self.uid),
            // What dashboards and scripts for etcd have been looking for since the first operator.
            ("app", ETCD),
            ("etcd_cluster", self.name),
        ])
    }

    /// The labels of everything of a member.
    pub(crate) fn member_labels(&self, member: &Name) -> BTreeMap<String, String> {
        let mut labels = self.labels();
        labels.insert(names::MEMBER_LABEL.to_owned(), member.to_string());
        labels
    }

    /// Who owns what the cluster has; nobody if it shall run on.
    pub(crate) fn owner(&self) -> Option<OwnerReference> {
        let owned = match self.spec.deletion {
            DeletionPolicy::Retain
            | DeletionPolicy::Delete
            | DeletionPolicy::SnapshotThenDelete => true,
            DeletionPolicy::Disconnect => false,
        };
        owned.then(|| reference::<EtcdCluster>(self.name, self.uid))
    }

    /// The metadata of something of the cluster.
    pub(crate) fn metadata(&self, name: impl Into<String>) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.into()),
            namespace: Some(self.namespace.to_owned()),
            labels: Some(self.labels()),
            owner_references: self.owner().map(|owner| vec![owner]),
            ..ObjectMeta::default()
        }
    }

    /// The metadata of something of a member, which goes with its EtcdMember.
    pub(crate) fn member_metadata(
        &self,
        name: impl Into<String>,
        member: &Name,
        member_uid: &str,
    ) -> ObjectMeta {
        ObjectMeta {
            labels: Some(self.member_labels(member)),
            owner_references: Some(vec![reference::<EtcdMember>(&member.0, member_uid)]),
            ..self.metadata(name)
        }
    }

    /// Where the other members reach one now.
    pub(crate) fn peer_url(&self, member: &Name) -> String {
        self.peer_url_by(self.peer_scheme(member), member)
    }

    /// Where the other members reach one that they call so.
    pub(crate) fn peer_url_by(&self, scheme: Scheme, member: &Name) -> String {
        self.url(scheme, member, names::ETCD_PEER_PORT)
    }

    /// How the other members call one.
    pub(crate) fn peer_scheme(&self, member: &Name) -> Scheme {
        let of = |doors: &super::Doors| doors.peers.get(member).copied().unwrap_or(doors.newcomer);
        self.doors.map_or_else(|| scheme(&self.spec.peer_tls), of)
    }

    /// Where clients are told that they reach one.
    pub(crate) fn client_url(&self, member: &Name) -> String {
        self.client_url_by(self.told(), member)
    }

    /// Where clients reach one that they call so.
    pub(super) fn client_url_by(&self, scheme: Scheme, member: &Name) -> String {
        self.url(scheme, member, names::ETCD_CLIENT_PORT)
    }

    /// How clients are told to call.
    pub(crate) fn told(&self) -> Scheme {
        self.doors.map_or_else(|| scheme(&self.spec.client_tls), |it| it.told)
    }

    /// Whom members take as clients.
    pub(crate) fn clients(&self) -> Open {
        self.doors.map_or_else(|| Open::Only(scheme(&self.spec.client_tls)), |it| it.clients)
    }

    fn url(&self, scheme: Scheme, member: &Name, port: u16) -> String {
        let host = names::member_host(&member.0, self.namespace);
        format!("{}://{host}:{port}", scheme.word())
    }
}

/// How a side is called.
pub(crate) const fn scheme(side: &Certificates) -> Scheme {
    match side {
        Certificates::Disabled => Scheme::Http,
        Certificates::Managed | Certificates::Issuer { .. } | Certificates::Secret(_) => {
            Scheme::Https
        }
    }
}

fn reference<K: Resource<DynamicType = ()>>(name: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        controller: Some(true),
        // Nobody waits for it, and it would need one more right where that is guarded.
        block_owner_deletion: None,
    }
}

/// A map of owned text from a list of pairs.
pub(crate) fn owned(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}
