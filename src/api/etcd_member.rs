//! EtcdMember v1: one member of an EtcdCluster. The intent for a member is recorded here before
//! anything changes in etcd, so that an operator restart between the two steps loses nothing.
//! Every doc comment of a field is printed by `kubectl explain`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod validated;
pub(crate) mod validation;

use kube::CustomResource;
use serde_json::{Value, json};

use crate::api::cel::name_rule;
use crate::api::condition::Condition;
use crate::api::etcd_cluster::v1::Storage;
use crate::api::etcd_cluster::v1::status::MemberRole;
use crate::api::macros::{object, string_enum};
use crate::api::names;
use crate::api::strings::{ClusterName, HexId, MemberUrl, ObjectName, ReportedVersion, Time};

object! {
    /// Desired state of the member. Written by the operator.
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
        doc = "Member of an etcd cluster, with its pod and its PersistentVolumeClaim. Managed by the operator; change the EtcdCluster instead.",
        printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterName", description = "EtcdCluster of the member."),
        printcolumn(name = "Role", type_ = "string", json_path = ".status.role", description = "Role in the cluster: Leader, Voter, Learner or Unknown."),
        printcolumn(name = "Healthy", type_ = "string", json_path = ".status.conditions[?(@.type==\"Healthy\")].status", description = "Status of the Healthy condition."),
        printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase", description = "Phase of the member's lifecycle."),
        printcolumn(name = "Version", type_ = "string", json_path = ".status.version", description = "etcd version that the member runs."),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "Time since creation."),
    )]
    #[schemars(extend("required" = ["clusterName", "name", "peerURL", "intent"]))]
    pub struct EtcdMemberSpec {
        /// Name of the EtcdCluster. Immutable.
        #[schemars(extend("x-kubernetes-validations" = [{
            "rule": "self == oldSelf",
            "message": "may not be changed: a member stays in its cluster",
        }]))]
        cluster_name: ClusterName,
        /// Name of the member in etcd. Immutable.
        #[schemars(extend("x-kubernetes-validations" = [{
            "rule": "self == oldSelf",
            "message": "may not be changed: it is the name of the member in etcd",
        }]))]
        name: ObjectName,
        /// URL for peer traffic from the other members.
        peer_url as "peerURL": MemberUrl,
        /// URL for client traffic.
        client_url as "clientURL": MemberUrl,
        /// Storage of the member's data.
        storage: Storage,
        /// `Bootstrap` for an initial member, `Join` for a member that is added to an existing
        /// cluster, `Leave` for a member that is removed. It may only be changed to `Leave`.
        #[schemars(extend("x-kubernetes-validations" = [{
            "rule": "self == oldSelf || self == 'Leave'",
            "message": "may only be changed to 'Leave' and not back: create a new member instead",
        }]))]
        intent: Intent,
        /// Whether etcd may have run in a pod of this member. Set before the first pod may start
        /// etcd, and never unset: from then on the member starts with its data or not at all.
        #[schemars(extend("x-kubernetes-validations" = [{
            "rule": "self || !oldSelf",
            "message": "may not be unset: etcd may have run in a pod of this member",
        }]))]
        started: bool,
    }
}

string_enum! {
    /// Purpose of a member.
    pub enum Intent {
        /// Initial member: bootstraps the cluster together with the other initial members.
        Bootstrap = "Bootstrap",
        /// Added to an existing cluster.
        Join = "Join",
        /// Removed from the cluster.
        Leave = "Leave",
    }
}

string_enum! {
    /// Phase of a member's lifecycle.
    pub enum MemberPhase {
        /// The pod does not exist or is held by its scheduling gate.
        Pending = "Pending",
        /// The pod exists and etcd is not reachable yet.
        Starting = "Starting",
        /// The member is a learner and catches up.
        Learner = "Learner",
        /// The member is a voter.
        Running = "Running",
        /// The member is being removed.
        Removing = "Removing",
        /// The member is no longer in etcd's member list.
        Removed = "Removed",
    }
}

object! {
    /// Observed state of the member.
    pub struct EtcdMemberStatus {
        /// etcd member ID.
        member_id as "memberID": HexId,
        /// etcd cluster ID that the member reports.
        cluster_id as "clusterID": HexId,
        /// Role of the member: `Leader`, `Voter`, `Learner` or `Unknown`.
        role: MemberRole,
        /// Phase of the lifecycle: `Pending`, `Starting`, `Learner`, `Running`, `Removing` or
        /// `Removed`.
        phase: MemberPhase,
        /// etcd version that the member runs.
        version: ReportedVersion,
        /// Name of the pod.
        pod: ObjectName,
        /// Name of the PersistentVolumeClaim.
        volume: ObjectName,
        /// Time of the last change of `phase`.
        phase_transition_time: Time,
        /// Conditions of the member.
        #[schemars(length(max = 24), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
        conditions: Vec<Condition>,
    }
}

/// Rules over the whole object: the name must be valid for a pod and its host name.
pub(crate) fn object_rules() -> Value {
    json!([name_rule(names::MAX_MEMBER_NAME_LENGTH, "its Pod and its volume are named after it")])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::cel::violations;

    fn member(intent: &str, cluster: &str) -> Value {
        json!({"metadata": {"name": "example-1"}, "spec": {
            "clusterName": cluster, "name": "example-1", "peerURL": "https://a", "intent": intent,
        }})
    }

    #[test]
    fn intent_may_only_change_to_leave() {
        let to = |old: &str, new: &str| {
            violations("EtcdMember", "v1", Some(&member(old, "a")), &member(new, "a"))
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
    fn cluster_name_is_immutable() {
        let (old, new) = (member("Join", "a"), member("Join", "b"));
        let violations = violations("EtcdMember", "v1", Some(&old), &new);
        assert_eq!(violations, ["may not be changed: a member stays in its cluster"]);
    }

    #[test]
    fn name_with_a_dot_is_rejected() {
        let mut new = member("Join", "a");
        new["metadata"]["name"] = json!("a.b");
        assert_eq!(violations("EtcdMember", "v1", None, &new).len(), 1);
    }
}
