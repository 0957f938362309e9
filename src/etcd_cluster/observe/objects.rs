//! The objects of one cluster, as Kubernetes has them.
//! Comes in: nothing. Goes out: `ClusterObjects`, and where to find what in it. May touch: `api`, Kubernetes' own
//! types; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::{Resource, ResourceExt};

use crate::api::etcd_cluster::v1::EtcdCluster;
use crate::api::etcd_member::{EtcdMember, Intent, MemberPhase};
use crate::api::names;
use crate::etcd_cluster::state::MemberName;

/// Everything that belongs to a cluster, but for its Secrets.
#[derive(Clone, Debug)]
pub(crate) struct ClusterObjects {
    pub(crate) cluster: EtcdCluster,
    pub(crate) members: Vec<EtcdMember>,
    pub(crate) pods: Vec<Pod>,
    pub(crate) pvcs: Vec<PersistentVolumeClaim>,
    pub(crate) services: Vec<Service>,
    pub(crate) pdbs: Vec<PodDisruptionBudget>,
    /// Members and pods of another cluster that had this one's name, and are not gone yet.
    pub(crate) previous_cluster_objects: Vec<MemberName>,
}

impl ClusterObjects {
    /// A member's EtcdMember.
    pub(crate) fn member(&self, name: &MemberName) -> Option<&EtcdMember> {
        named(&self.members, name)
    }

    /// A member's pod.
    pub(crate) fn pod(&self, name: &MemberName) -> Option<&Pod> {
        named(&self.pods, name)
    }

    /// A member's volume.
    pub(crate) fn pvc(&self, name: &MemberName) -> Option<&PersistentVolumeClaim> {
        named(&self.pvcs, name)
    }

    /// Takes out what was made for another cluster that had this one's name, but for volumes, which are told apart
    /// where they matter.
    pub(crate) fn without_predecessors(mut self) -> Self {
        let uid = self.cluster.metadata.uid.clone();
        let mut others = others(&mut self.members, uid.as_ref());
        others.extend(self::others(&mut self.pods, uid.as_ref()));
        self::others(&mut self.services, uid.as_ref());
        self::others(&mut self.pdbs, uid.as_ref());
        others.sort();
        others.dedup();
        self.previous_cluster_objects = others;
        self
    }

    /// Whether a volume was made for this very cluster, and not for another that had its name.
    pub(crate) fn is_ours(&self, claim: &PersistentVolumeClaim) -> bool {
        claim.labels().get(names::CLUSTER_UID_LABEL) == self.cluster.metadata.uid.as_ref()
    }

    /// Every EtcdMember, in the order in which they were made.
    pub(crate) fn oldest_first(&self) -> Vec<&EtcdMember> {
        let mut members: Vec<&EtcdMember> = self.members.iter().collect();
        members.sort_by_key(|it| (it.creation_timestamp().map(|at| at.0), it.name_any()));
        members
    }
}

/// The name of the member that an object is called after.
pub(crate) fn name_of<K: Resource>(object: &K) -> MemberName {
    MemberName(object.name_any())
}

/// Whether a member shall stay.
pub(crate) fn is_remaining(member: &EtcdMember) -> bool {
    member.spec.intent.known() != Some(&Intent::Leave)
}

/// Whether it was told of a member that a quorum did not list it any more.
pub(crate) fn is_removed(member: &EtcdMember) -> bool {
    let phase = member.status.as_ref().and_then(|it| it.phase.known());
    phase == Some(&MemberPhase::Removed)
}

/// What a pod tells etcd by a flag, which is named without its dashes.
pub(crate) fn flag<'a>(pod: &'a Pod, name: &str) -> Option<&'a str> {
    let containers = pod.spec.iter().flat_map(|it| &it.containers);
    let mut all = containers.flat_map(|it| it.args.iter().flatten());
    all.find_map(|it| it.strip_prefix("--")?.strip_prefix(name)?.strip_prefix('='))
}

/// Takes out what has another uid, and answers with the names.
fn others<K: Resource>(objects: &mut Vec<K>, uid: Option<&String>) -> Vec<MemberName> {
    let is_other = |it: &K| it.labels().get(names::CLUSTER_UID_LABEL) != uid;
    let names = objects.iter().filter(|it| is_other(it)).map(name_of).collect();
    objects.retain(|it| !is_other(it));
    names
}

fn named<'a, K: Resource>(objects: &'a [K], name: &MemberName) -> Option<&'a K> {
    objects.iter().find(|it| it.meta().name.as_deref() == Some(name.0.as_str()))
}
