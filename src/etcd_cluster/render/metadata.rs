//! What all objects of a cluster share: names, labels, owner references, and the URLs of members.
//! Under `Disconnect` no object is owned by the EtcdCluster, so that members keep running without
//! it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;

use super::Blueprint;
use crate::api::etcd_cluster::v1::{DeletionPolicy, EtcdCluster};
use crate::api::etcd_cluster::validated::Certificates;
use crate::api::etcd_member::EtcdMember;
use crate::api::names;
use crate::etcd_cluster::state::MemberName;
use crate::etcd_cluster::transport::{ClientListeners, Scheme};

/// The application name in labels.
const ETCD: &str = "etcd";

impl Blueprint<'_> {
    /// The labels of every object of the cluster.
    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        string_map(&[
            (names::NAME_LABEL, ETCD),
            (names::INSTANCE_LABEL, self.name),
            (names::COMPONENT_LABEL, "member"),
            (names::PART_OF_LABEL, self.name),
            (names::MANAGED_BY_LABEL, names::OPERATOR),
            (names::CLUSTER_LABEL, self.name),
            // Objects of a previous cluster with this name may still exist.
            (names::CLUSTER_UID_LABEL, self.uid),
            // Dashboards and scripts for etcd select by these since the first operator.
            ("app", ETCD),
            ("etcd_cluster", self.name),
        ])
    }

    /// The labels of every object of a member.
    pub(crate) fn member_labels(&self, member: &MemberName) -> BTreeMap<String, String> {
        let mut labels = self.labels();
        labels.insert(names::MEMBER_LABEL.to_owned(), member.to_string());
        labels
    }

    /// The owner of the cluster's objects; none under `Disconnect`.
    pub(crate) fn owner(&self) -> Option<OwnerReference> {
        let owned = match self.spec.deletion {
            DeletionPolicy::Retain
            | DeletionPolicy::Delete
            | DeletionPolicy::SnapshotThenDelete => true,
            DeletionPolicy::Disconnect => false,
        };
        owned.then(|| reference::<EtcdCluster>(self.name, self.uid))
    }

    /// The metadata of an object of the cluster.
    pub(crate) fn metadata(&self, name: impl Into<String>) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.into()),
            namespace: Some(self.namespace.to_owned()),
            labels: Some(self.labels()),
            owner_references: self.owner().map(|owner| vec![owner]),
            ..ObjectMeta::default()
        }
    }

    /// The metadata of an object of a member, which is garbage collected with its EtcdMember.
    pub(crate) fn member_metadata(
        &self,
        name: impl Into<String>,
        member: &MemberName,
        member_uid: &str,
    ) -> ObjectMeta {
        ObjectMeta {
            labels: Some(self.member_labels(member)),
            owner_references: Some(vec![reference::<EtcdMember>(&member.0, member_uid)]),
            ..self.metadata(name)
        }
    }

    /// The current peer URL of a member.
    pub(crate) fn peer_url(&self, member: &MemberName) -> String {
        self.peer_url_with(self.peer_scheme(member), member)
    }

    /// The peer URL of a member with this scheme.
    pub(crate) fn peer_url_with(&self, scheme: Scheme, member: &MemberName) -> String {
        self.url(scheme, member, names::ETCD_PEER_PORT)
    }

    /// The current peer URL scheme of a member.
    pub(crate) fn peer_scheme(&self, member: &MemberName) -> Scheme {
        let current = |transport: &super::Transport| {
            transport.peer_schemes.get(member).copied().unwrap_or(transport.new_member_scheme)
        };
        self.transport.map_or_else(|| scheme(&self.spec.peer_tls), current)
    }

    /// The client URL of a member, as it is advertised.
    pub(crate) fn client_url(&self, member: &MemberName) -> String {
        self.client_url_with(self.advertised_scheme(), member)
    }

    /// The client URL of a member with this scheme.
    pub(super) fn client_url_with(&self, scheme: Scheme, member: &MemberName) -> String {
        self.url(scheme, member, names::ETCD_CLIENT_PORT)
    }

    /// The scheme that is advertised to clients.
    pub(crate) fn advertised_scheme(&self) -> Scheme {
        self.transport
            .map_or_else(|| scheme(&self.spec.client_tls), |transport| transport.advertised)
    }

    /// The schemes that members accept from clients.
    pub(crate) fn client_listeners(&self) -> ClientListeners {
        self.transport.map_or_else(
            || ClientListeners::Only(scheme(&self.spec.client_tls)),
            |transport| transport.client_listeners,
        )
    }

    fn url(&self, scheme: Scheme, member: &MemberName, port: u16) -> String {
        let host = names::member_host(&member.0, self.namespace);
        format!("{}://{host}:{port}", scheme.as_str())
    }
}

/// The scheme that a TLS setting of the spec means.
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
        // Nothing waits for it, and setting it needs one more permission on some clusters.
        block_owner_deletion: None,
    }
}

/// A map of owned strings from a list of pairs.
pub(crate) fn string_map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}
