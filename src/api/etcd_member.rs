//! EtcdMember v1: one member of an EtcdCluster. What is to become of it is written down here before
//! anything is done in etcd, so that a restart of the operator in between loses no intention.
//! Comes in: nothing. Goes out: the types of `spec` and `status`, and the rules of the definition.
//! May touch: the vocabulary of `api`. Every doc comment here is what `kubectl explain` prints.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub(crate) mod check;
pub mod checked;

use kube::CustomResource;
use serde_json::{Value, json};

use crate::api::cel::name_within;
use crate::api::condition::Condition;
use crate::api::etcd_cluster::v1::Storage;
use crate::api::etcd_cluster::v1::status::MemberRole;
use crate::api::names;
use crate::api::shape::{choice, shape};
use crate::api::texts::{ClusterName, HexId, MemberUrl, ObjectName, ReportedVersion, Time};

shape! {
    /// What the member should be. The operator writes this.
    #[derive(CustomResource)]
    #[kube(
        group = "etcd.appdelivery.cncf.io",
        version = "v1",
        kind = "EtcdMember",
        plural = "etcdmembers",
        namespaced,
        status = "EtcdMemberStatus",
        shortname = "etcdmem",
        category = "quorate",
        doc = "One member of an etcd cluster, with its pod and its volume. The operator makes these; change the EtcdCluster instead.",
        printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterName", description = "The cluster it belongs to."),
        printcolumn(name = "Role", type_ = "string", json_path = ".status.role", description = "What it is to the others."),
        printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase", description = "Where it is in its life."),
        printcolumn(name = "Version", type_ = "string", json_path = ".status.version", description = "The etcd release it runs."),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "When it was made."),
    )]
    #[schemars(extend("required" = ["clusterName", "name", "peerURL", "intent"]))]
    pub struct EtcdMemberSpec {
        /// The EtcdCluster it belongs to. It cannot be changed later.
        #[schemars(extend("x-kubernetes-validations" = [{
            "rule": "self == oldSelf",
            "message": "may not be changed: a member stays in its cluster",
        }]))]
        cluster_name: ClusterName,
        /// Its name in etcd. It cannot be changed later.
        #[schemars(extend("x-kubernetes-validations" = [{
            "rule": "self == oldSelf",
            "message": "may not be changed: the other members know it by this name",
        }]))]
        name: ObjectName,
        /// The URL on which the other members reach it.
        peer_url as "peerURL": MemberUrl,
        /// The URL on which clients reach it.
        client_url as "clientURL": MemberUrl,
        /// What it keeps its data on.
        storage: Storage,
        /// What it is there for: `Bootstrap` to found the cluster, `Join` to join one that there is, `Leave` to be removed
        /// from it. It may only become `Leave`, and then it stays so.
        #[schemars(extend("x-kubernetes-validations" = [{
            "rule": "self == oldSelf || self == 'Leave'",
            "message": "may only become 'Leave', and then it stays so: make a new member instead",
        }]))]
        intent: Intent,
        /// Whether etcd may have run in a pod of it. It is set before the first one may, and stays so: from then on the member
        /// comes back with its data, or not at all.
        #[schemars(extend("x-kubernetes-validations" = [{
            "rule": "self || !oldSelf",
            "message": "may not be taken back: the member may have promised something to the others",
        }]))]
        started: bool,
    }
}

choice! {
    /// What a member is there for.
    pub enum Intent {
        /// It founds the cluster, with the others that do.
        Bootstrap = "Bootstrap",
        /// It joins a cluster that there is.
        Join = "Join",
        /// It is removed from the cluster.
        Leave = "Leave",
    }
}

choice! {
    /// Where a member is in its life.
    pub enum MemberPhase {
        /// Nothing of it runs yet.
        Pending = "Pending",
        /// Its pod is there and etcd does not answer yet.
        Starting = "Starting",
        /// It catches up and does not vote yet.
        Learner = "Learner",
        /// It votes.
        Voter = "Voter",
        /// It is being removed.
        Leaving = "Leaving",
        /// The cluster does not know it any more.
        Gone = "Gone",
    }
}

shape! {
    /// What the member is.
    pub struct EtcdMemberStatus {
        /// Its ID in etcd.
        member_id as "memberID": HexId,
        /// The ID of the cluster that it is in.
        cluster_id as "clusterID": HexId,
        /// What it is to the others: `Leader`, `Voter`, `Learner` or `Unknown`.
        role: MemberRole,
        /// Where it is in its life: `Pending`, `Starting`, `Learner`, `Voter`, `Leaving` or `Gone`.
        phase: MemberPhase,
        /// The etcd release it runs.
        version: ReportedVersion,
        /// Its pod.
        pod: ObjectName,
        /// Its PersistentVolumeClaim.
        volume: ObjectName,
        /// Since when it is in this phase.
        since: Time,
        /// What is the case.
        #[schemars(length(max = 24), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
        conditions: Vec<Condition>,
    }
}

/// The name must be one that a pod and its host can have.
pub(crate) fn name_fits() -> Value {
    json!([name_within(names::MOST_MEMBER_NAME, "its Pod and its volume are named after it")])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::cel::objections;

    fn member(intent: &str, cluster: &str) -> Value {
        json!({"metadata": {"name": "example-1"}, "spec": {
            "clusterName": cluster, "name": "example-1", "peerURL": "https://a", "intent": intent,
        }})
    }

    #[test]
    fn a_member_may_leave_and_do_nothing_else() {
        let to = |old: &str, new: &str| {
            objections("EtcdMember", "v1", Some(&member(old, "a")), &member(new, "a"))
        };
        for intent in Intent::ALL {
            assert!(to(intent.as_str(), intent.as_str()).is_empty());
            assert!(to(intent.as_str(), "Leave").is_empty());
        }
        for (old, new) in [("Leave", "Join"), ("Bootstrap", "Join"), ("Join", "Bootstrap")] {
            assert_eq!(to(old, new).len(), 1, "{old} became {new}");
        }
    }

    #[test]
    fn a_member_stays_in_its_cluster() {
        let (old, new) = (member("Join", "a"), member("Join", "b"));
        let said = objections("EtcdMember", "v1", Some(&old), &new);
        assert_eq!(said, ["may not be changed: a member stays in its cluster"]);
    }

    #[test]
    fn a_name_with_a_dot_is_refused() {
        let mut new = member("Join", "a");
        new["metadata"]["name"] = json!("a.b");
        assert_eq!(objections("EtcdMember", "v1", None, &new).len(), 1);
    }
}
