//! EtcdRestore v1: in-place restore of an EtcdCluster. It destroys the current data, so it reports
//! its plan and waits for approval.
//! Every doc comment of a field is printed by `kubectl explain`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod validated;
pub(crate) mod validation;

use kube::CustomResource;
use serde_json::{Value, json};

use crate::api::cel::{has_path, immutable, name_rule, rule};
use crate::api::condition::Condition;
use crate::api::destination::BackupSource;
use crate::api::field::MAX_SAFE_INTEGER;
use crate::api::macros::{object, string_enum};
use crate::api::names;
use crate::api::pod::LocalRef;
use crate::api::strings::{Message, ObjectName};

object! {
    /// Cluster to restore and source of the data. Only `approve` can be changed later.
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
        doc = "In-place restore of an EtcdCluster from a backup or from a surviving member, with approval of its plan. Not supported in this release: objects of this kind are rejected.",
        printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterRef.name", description = "EtcdCluster that is restored."),
        printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase", description = "Phase of the operation."),
        printcolumn(name = "Approved", type_ = "boolean", json_path = ".spec.approve", description = "Whether the restore is approved."),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "Time since creation."),
    )]
    #[schemars(extend("required" = ["clusterRef"], "x-kubernetes-validations" = [{
        "rule": "has(self.from) != has(self.recoverQuorum)",
        "message": "must have exactly one of from and recoverQuorum",
    }]))]
    pub struct EtcdRestoreSpec {
        /// EtcdCluster to restore. Its current data is lost.
        cluster_ref: LocalRef,
        /// Backup to restore.
        from: BackupSource,
        /// Recovers a cluster without quorum from the data of one surviving member. Writes that
        /// were committed and not yet replicated to that member are lost.
        recover_quorum: RecoverQuorum,
        /// Approves the plan in `status.plan`. It cannot be unset. Default: false.
        approve: bool,
    }
}

object! {
    /// Recovery of a cluster without quorum.
    pub struct RecoverQuorum {
        /// Member whose data is kept. Default: the member with the newest data.
        survivor: ObjectName,
    }
}

string_enum! {
    /// Phase of a restore.
    pub enum RestorePhase {
        /// The plan is being computed.
        Planning = "Planning",
        /// The plan is in the status and needs `approve`.
        WaitingForApproval = "WaitingForApproval",
        /// The plan is being executed.
        Running = "Running",
        /// The cluster is restored.
        Succeeded = "Succeeded",
        /// The restore failed.
        Failed = "Failed",
    }
}

object! {
    /// Observed state of the restore.
    pub struct EtcdRestoreStatus {
        /// Phase: `Planning`, `WaitingForApproval`, `Running`, `Succeeded` or `Failed`.
        phase: RestorePhase,
        /// Steps of the restore and the data that is lost by them.
        #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
        plan: Vec<Message>,
        /// Number of bytes restored.
        #[schemars(range(min = 0, max = MAX_SAFE_INTEGER))]
        bytes_done: i64,
        /// Total number of bytes.
        #[schemars(range(min = 0, max = MAX_SAFE_INTEGER))]
        bytes_total: i64,
        /// Highest revision seen before the restore.
        #[schemars(range(min = 0, max = MAX_SAFE_INTEGER))]
        revision_before: i64,
        /// Revision after the restore. It is higher than the one before, so that watchers never
        /// observe a lower revision.
        #[schemars(range(min = 0, max = MAX_SAFE_INTEGER))]
        revision_after: i64,
        /// Conditions of the object.
        #[schemars(length(max = 24), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
        conditions: Vec<Condition>,
    }
}

/// Rules over the whole object: the plan that was approved must be the plan that is executed.
pub(crate) fn immutable_except_approval() -> Value {
    let approved =
        |root: &str| format!("({} && {root}.spec.approve)", has_path(root, "spec.approve"));
    json!([
        name_rule(names::MAX_CLUSTER_NAME_LENGTH, "its Pod is named after it"),
        immutable("spec.clusterRef", "create another EtcdRestore instead"),
        immutable("spec.from", "create another EtcdRestore instead"),
        immutable("spec.recoverQuorum", "create another EtcdRestore instead"),
        rule(
            format!("!{} || {}", approved("oldSelf"), approved("self")),
            "`spec.approve` may not be unset: the restore may have started",
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::cel::violations;

    fn violations_of(old: Option<&Value>, new: &Value) -> Vec<String> {
        let whole = |spec: &Value| json!({"metadata": {"name": "r"}, "spec": spec});
        violations("EtcdRestore", "v1", old.map(whole).as_ref(), &whole(new))
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
    fn exactly_one_of_from_and_recover_quorum_is_required() {
        let quorum = json!({"clusterRef": {"name": "a"}, "recoverQuorum": {}});
        assert!(violations_of(None, &quorum).is_empty());
        assert!(violations_of(None, &from("b", None)).is_empty());
        assert_eq!(violations_of(None, &json!({"clusterRef": {"name": "a"}})).len(), 1);
        let mut both = quorum;
        both["from"] = json!({"backupRef": {"name": "b"}});
        assert_eq!(violations_of(None, &both).len(), 1);
    }

    #[test]
    fn only_approve_can_be_set_later_and_not_unset() {
        assert!(violations_of(Some(&from("b", None)), &from("b", Some(true))).is_empty());
        assert!(violations_of(Some(&from("b", Some(false))), &from("b", None)).is_empty());
        assert!(violations_of(Some(&from("b", Some(true))), &from("b", Some(true))).is_empty());
        for back in [None, Some(false)] {
            assert_eq!(violations_of(Some(&from("b", Some(true))), &from("b", back)).len(), 1);
        }
        assert_eq!(violations_of(Some(&from("b", None)), &from("c", Some(true))).len(), 1);
        let quorum = json!({"clusterRef": {"name": "a"}, "recoverQuorum": {}});
        assert_eq!(violations_of(Some(&from("b", None)), &quorum).len(), 2);
    }
}
