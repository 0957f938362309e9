//! EtcdRestore v1: brings an EtcdCluster back, in place and under its name. It destroys what is
//! there, so it states its plan and waits for a person's word.
//! Comes in: nothing. Goes out: the types of `spec` and `status`, and the rules of the definition.
//! May touch: the vocabulary of `api`. Every doc comment here is what `kubectl explain` prints.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub(crate) mod check;
pub mod checked;

use kube::CustomResource;
use serde_json::{Value, json};

use crate::api::cel::{given, name_within, rule, stays};
use crate::api::condition::Condition;
use crate::api::destination::Origin;
use crate::api::field::WIDEST;
use crate::api::names;
use crate::api::pod::LocalRef;
use crate::api::shape::{choice, shape};
use crate::api::texts::{ObjectName, Sentence};

shape! {
    /// What to bring back. Only `approve` can be changed later.
    #[derive(CustomResource)]
    #[kube(
        group = "etcd.appdelivery.cncf.io",
        version = "v1",
        kind = "EtcdRestore",
        plural = "etcdrestores",
        namespaced,
        status = "EtcdRestoreStatus",
        shortname = "etcdrst",
        category = "quorate",
        doc = "Brings an etcd cluster back from a backup, or from a member that survived. It says what it will do, and waits for approval.",
        printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterRef.name", description = "The cluster that is brought back."),
        printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase", description = "How far it is."),
        printcolumn(name = "Approved", type_ = "boolean", json_path = ".spec.approve", description = "Whether it may begin."),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "When it was made."),
    )]
    #[schemars(extend("required" = ["clusterRef"], "x-kubernetes-validations" = [{
        "rule": "has(self.from) != has(self.recoverQuorum)",
        "message": "must have exactly one of from and recoverQuorum",
    }]))]
    pub struct EtcdRestoreSpec {
        /// The EtcdCluster to bring back. Its present data is lost.
        cluster_ref: LocalRef,
        /// The backup to bring back.
        from: Origin,
        /// Goes on with the data of a member that survived, when too few are left to agree. What the others had agreed on
        /// and the survivor had not heard of is lost.
        recover_quorum: RecoverQuorum,
        /// Whether the plan in the status may be carried out. It cannot be taken back.
        approve: bool,
    }
}

shape! {
    /// How a cluster that lost its quorum goes on.
    pub struct RecoverQuorum {
        /// The member whose data is kept; the one with the newest data if it is left out.
        survivor: ObjectName,
    }
}

choice! {
    /// How far a restore is.
    pub enum RestorePhase {
        /// It finds out what there is to do.
        Planning = "Planning",
        /// The plan is in the status, and waits for `approve`.
        WaitingForApproval = "WaitingForApproval",
        /// The plan is being carried out.
        Running = "Running",
        /// The cluster is back.
        Succeeded = "Succeeded",
        /// The cluster is not back.
        Failed = "Failed",
    }
}

shape! {
    /// How the restore is doing.
    pub struct EtcdRestoreStatus {
        /// How far it is: `Planning`, `WaitingForApproval`, `Running`, `Succeeded` or `Failed`.
        phase: RestorePhase,
        /// What will be done, and what will be lost by it, in sentences.
        #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
        plan: Vec<Sentence>,
        /// How many bytes are brought back.
        #[schemars(range(min = 0, max = WIDEST))]
        bytes_done: i64,
        /// How many bytes there are.
        #[schemars(range(min = 0, max = WIDEST))]
        bytes_total: i64,
        /// The highest revision that was seen before.
        #[schemars(range(min = 0, max = WIDEST))]
        revision_before: i64,
        /// The revision from which the cluster goes on. It is beyond the one before, so that no watcher sees time run backwards.
        #[schemars(range(min = 0, max = WIDEST))]
        revision_after: i64,
        /// What is the case.
        #[schemars(length(max = 24), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
        conditions: Vec<Condition>,
    }
}

/// A plan that was approved must be the plan that is carried out.
pub(crate) fn stays_but_for_approval() -> Value {
    let approved = |it: &str| format!("({} && {it}.spec.approve)", given(it, "spec.approve"));
    json!([
        name_within(names::MOST_NAME, "its Pod is named after it"),
        stays("spec.clusterRef", "make another EtcdRestore instead"),
        stays("spec.from", "make another EtcdRestore instead"),
        stays("spec.recoverQuorum", "make another EtcdRestore instead"),
        rule(
            format!("!{} || {}", approved("oldSelf"), approved("self")),
            "`spec.approve` may not be taken back: what was approved may have begun",
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::cel::objections;

    fn judged(old: Option<&Value>, new: &Value) -> Vec<String> {
        let whole = |spec: &Value| json!({"metadata": {"name": "r"}, "spec": spec});
        objections("EtcdRestore", "v1", old.map(whole).as_ref(), &whole(new))
    }

    fn from(backup: &str, approve: Option<bool>) -> Value {
        let mut spec = json!({
            "clusterRef": {"name": "a"}, "from": {"backupRef": {"name": backup}},
        });
        if let Some(approve) = approve {
            spec["approve"] = json!(approve);
        }
        spec
    }

    #[test]
    fn there_is_exactly_one_thing_to_bring_back() {
        let quorum = json!({"clusterRef": {"name": "a"}, "recoverQuorum": {}});
        assert!(judged(None, &quorum).is_empty());
        assert!(judged(None, &from("b", None)).is_empty());
        assert_eq!(judged(None, &json!({"clusterRef": {"name": "a"}})).len(), 1);
        let mut both = quorum;
        both["from"] = json!({"backupRef": {"name": "b"}});
        assert_eq!(judged(None, &both).len(), 1);
    }

    #[test]
    fn only_approval_can_be_given_later_and_it_stays() {
        assert!(judged(Some(&from("b", None)), &from("b", Some(true))).is_empty());
        assert!(judged(Some(&from("b", Some(false))), &from("b", None)).is_empty());
        assert!(judged(Some(&from("b", Some(true))), &from("b", Some(true))).is_empty());
        for back in [None, Some(false)] {
            assert_eq!(judged(Some(&from("b", Some(true))), &from("b", back)).len(), 1);
        }
        assert_eq!(judged(Some(&from("b", None)), &from("c", Some(true))).len(), 1);
        let quorum = json!({"clusterRef": {"name": "a"}, "recoverQuorum": {}});
        assert_eq!(judged(Some(&from("b", None)), &quorum).len(), 2);
    }
}
