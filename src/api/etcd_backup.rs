//! EtcdBackup v1: one backup of an EtcdCluster, its progress and its location.
//! Every doc comment of a field is printed by `kubectl explain`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod validated;
pub(crate) mod validation;

use kube::CustomResource;
use serde_json::{Value, json};

use crate::api::cel::{has_path, name_rule, rule};
use crate::api::condition::Condition;
use crate::api::destination::Destination;
use crate::api::field::MAX_SAFE_INTEGER;
use crate::api::macros::{object, string_enum};
use crate::api::names;
use crate::api::pod::LocalRef;
use crate::api::strings::{Location, Message, ReportedVersion, Sha256, Time};

object! {
    /// Cluster to back up and destination. Immutable once the backup has started.
    #[derive(CustomResource)]
    #[kube(
        group = "etcd.appdelivery.cncf.io",
        version = "v1",
        kind = "EtcdBackup",
        plural = "etcdbackups",
        namespaced,
        status = "EtcdBackupStatus",
        shortname = "etcdbak",
        category = "quorate",
        doc = "Backup of an EtcdCluster. Not supported in this release: objects of this kind are rejected.",
        printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterRef.name", description = "EtcdCluster that is backed up."),
        printcolumn(name = "Status", type_ = "string", json_path = ".status.phase", description = "Phase of the operation."),
        printcolumn(name = "Bytes", type_ = "integer", json_path = ".status.bytesTotal", description = "Size of the backup in bytes."),
        printcolumn(name = "Revision", type_ = "integer", json_path = ".status.revision", description = "etcd revision of the backup."),
        printcolumn(name = "Verified", type_ = "date", json_path = ".status.verificationTime", description = "Time of the successful verification."),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "Time since creation."),
        printcolumn(name = "Location", type_ = "string", priority = 1, json_path = ".status.location", description = "URL of the backup."),
        printcolumn(name = "Error", type_ = "string", priority = 1, json_path = ".status.lastError", description = "Error of the last attempt."),
    )]
    #[schemars(extend("required" = ["clusterRef"]))]
    pub struct EtcdBackupSpec {
        /// EtcdCluster to back up.
        cluster_ref: LocalRef,
        /// Destination of the backup. Default: `spec.backup.destination` of the cluster.
        destination: Destination,
        /// Verifies the backup by restoring it into a temporary etcd. Default: false.
        verify: bool,
        /// Seconds after which this object and the backup are deleted. Default: never.
        #[schemars(range(min = 60, max = 315_360_000))]
        ttl_seconds: i64,
    }
}

string_enum! {
    /// Phase of a backup.
    pub enum BackupPhase {
        /// Not started yet.
        Pending = "Pending",
        /// The snapshot is being written.
        Running = "Running",
        /// The snapshot is stored and is being verified.
        Verifying = "Verifying",
        /// The backup is complete.
        Succeeded = "Succeeded",
        /// The backup failed.
        Failed = "Failed",
    }
}

object! {
    /// Observed state of the backup.
    pub struct EtcdBackupStatus {
        /// Phase: `Pending`, `Running`, `Verifying`, `Succeeded` or `Failed`.
        phase: BackupPhase,
        /// Start time. The spec is immutable from then on.
        start_time: Time,
        /// Completion time, successful or not.
        completion_time: Time,
        /// URL of the backup.
        location: Location,
        /// etcd revision of the backup.
        #[schemars(range(min = 0, max = MAX_SAFE_INTEGER))]
        revision: i64,
        /// etcd version that the backup was taken from.
        etcd_version: ReportedVersion,
        /// Number of bytes written.
        #[schemars(range(min = 0, max = MAX_SAFE_INTEGER))]
        bytes_done: i64,
        /// Total number of bytes.
        #[schemars(range(min = 0, max = MAX_SAFE_INTEGER))]
        bytes_total: i64,
        /// SHA-256 digest of the snapshot file.
        sha256: Sha256,
        /// Time of the successful verification.
        verification_time: Time,
        /// Error of the last attempt; absent if it succeeded.
        last_error: Message,
        /// Conditions of the object.
        #[schemars(length(max = 24), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
        conditions: Vec<Condition>,
    }
}

/// Rules over the whole object: the spec is immutable once the backup has started.
pub(crate) fn immutable_once_started() -> Value {
    json!([
        name_rule(names::MAX_CLUSTER_NAME_LENGTH, "its Pod is named after it"),
        rule(
            format!("!({}) || self.spec == oldSelf.spec", has_path("oldSelf", "status.startTime")),
            "`spec` may not be changed once the backup has started: create another EtcdBackup instead",
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::cel::violations;

    #[test]
    fn spec_is_immutable_once_the_backup_has_started() {
        let backup = |cluster: &str, status: Value| {
            let spec = json!({"clusterRef": {"name": cluster}});
            json!({"metadata": {"name": "b"}, "spec": spec, "status": status})
        };
        let started = json!({"phase": "Running", "startTime": "2026-01-02T03:04:05Z"});
        let violations = |status: &Value, new: &str| {
            let (old, new) = (backup("a", status.clone()), backup(new, status.clone()));
            violations("EtcdBackup", "v1", Some(&old), &new)
        };
        assert!(violations(&json!({"phase": "Pending"}), "b").is_empty());
        assert!(violations(&started, "a").is_empty());
        assert_eq!(violations(&started, "b").len(), 1);
    }
}
