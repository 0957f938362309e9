//! The objects of one cluster, as Kubernetes has them.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::{Resource, ResourceExt};

use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::etcd_member::{EtcdMember, Intent, MemberPhase};
use crate::api::names;
use crate::etcd_cluster::state::MemberName;

/// All objects of a cluster except its Secrets.
#[derive(Clone, Debug)]
pub(crate) struct ClusterObjects {
    pub(crate) cluster: EtcdCluster,
    pub(crate) members: Vec<EtcdMember>,
    pub(crate) pods: Vec<Pod>,
    pub(crate) pvcs: Vec<PersistentVolumeClaim>,
    pub(crate) services: Vec<Service>,
    pub(crate) pdbs: Vec<PodDisruptionBudget>,
    /// Members and pods of a previous cluster with this name that still exist.
    pub(crate) previous_members: Vec<MemberName>,
}

impl ClusterObjects {
    /// The EtcdMember of a member.
    pub(crate) fn member(&self, name: &MemberName) -> Option<&EtcdMember> {
        named(&self.members, name)
    }

    /// The pod of a member.
    pub(crate) fn pod(&self, name: &MemberName) -> Option<&Pod> {
        named(&self.pods, name)
    }

    /// The PVC of a member.
    pub(crate) fn pvc(&self, name: &MemberName) -> Option<&PersistentVolumeClaim> {
        named(&self.pvcs, name)
    }

    /// Removes the objects of a previous cluster with this name, except PVCs, which `is_ours`
    /// distinguishes.
    pub(crate) fn without_previous_cluster(mut self) -> Self {
        let uid = self.cluster.metadata.uid.clone();
        let mut removed = remove_others(&mut self.members, uid.as_ref());
        removed.extend(remove_others(&mut self.pods, uid.as_ref()));
        remove_others(&mut self.services, uid.as_ref());
        remove_others(&mut self.pdbs, uid.as_ref());
        removed.sort();
        removed.dedup();
        self.previous_members = removed;
        self
    }

    /// Whether a PVC belongs to this cluster, not to a previous one with the same name.
    pub(crate) fn is_ours(&self, pvc: &PersistentVolumeClaim) -> bool {
        pvc.labels().get(names::CLUSTER_UID_LABEL) == self.cluster.metadata.uid.as_ref()
    }

    /// All EtcdMembers, oldest first.
    pub(crate) fn oldest_first(&self) -> Vec<&EtcdMember> {
        let mut members: Vec<&EtcdMember> = self.members.iter().collect();
        members.sort_by_key(|member| {
            (member.creation_timestamp().map(|time| time.0), member.name_any())
        });
        members
    }
}

/// The name of the member that an object is named after.
pub(crate) fn name_of<K: Resource>(object: &K) -> MemberName {
    MemberName(object.name_any())
}

/// Whether a member is not marked for removal.
pub(crate) fn is_remaining(member: &EtcdMember) -> bool {
    member.spec.intent.known() != Some(&Intent::Leave)
}

/// Whether the status records that a quorum no longer lists the member.
pub(crate) fn is_removed(member: &EtcdMember) -> bool {
    let phase = member.status.as_ref().and_then(|status| status.phase.known());
    phase == Some(&MemberPhase::Removed)
}

/// The value of an etcd flag of a pod; the name is without dashes.
pub(crate) fn flag<'a>(pod: &'a Pod, name: &str) -> Option<&'a str> {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut args = containers.flat_map(|container| container.args.iter().flatten());
    args.find_map(|arg| arg.strip_prefix("--")?.strip_prefix(name)?.strip_prefix('='))
}

/// Removes the objects with another cluster uid, and returns their names.
fn remove_others<K: Resource>(objects: &mut Vec<K>, uid: Option<&String>) -> Vec<MemberName> {
    let is_other = |object: &K| object.labels().get(names::CLUSTER_UID_LABEL) != uid;
    let names = objects.iter().filter(|object| is_other(object)).map(name_of).collect();
    objects.retain(|object| !is_other(object));
    names
}

fn named<'a, K: Resource>(objects: &'a [K], name: &MemberName) -> Option<&'a K> {
    objects.iter().find(|object| object.meta().name.as_deref() == Some(name.0.as_str()))
}
