//! EtcdBackup v1: one backup of an EtcdCluster, its progress, and the place where it is.
//! Comes in: nothing. Goes out: the types of `spec` and `status`, and the rules of the definition.
//! May touch: the vocabulary of `api`. Every doc comment here is what `kubectl explain` prints.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub(crate) mod check;
pub mod checked;

use kube::CustomResource;
use serde_json::{Value, json};

use crate::api::cel::{given, name_within, rule};
use crate::api::condition::Condition;
use crate::api::destination::Destination;
use crate::api::field::WIDEST;
use crate::api::names;
use crate::api::pod::LocalRef;
use crate::api::shape::{choice, shape};
use crate::api::texts::{Location, ReportedVersion, Sentence, Sha256, Time};

shape! {
    /// What to back up, and where to. It cannot be changed once the backup has begun.
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
        doc = "One backup of an etcd cluster. Make one to have a backup made now; a schedule makes them by itself.",
        printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterRef.name", description = "The cluster that is backed up."),
        printcolumn(name = "Status", type_ = "string", json_path = ".status.phase", description = "How far it is."),
        printcolumn(name = "Bytes", type_ = "integer", json_path = ".status.bytesTotal", description = "How large it is."),
        printcolumn(name = "Revision", type_ = "integer", json_path = ".status.revision", description = "The revision it holds."),
        printcolumn(name = "Verified", type_ = "date", json_path = ".status.verifiedAt", description = "When it was proven that it can be restored."),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "When it was made."),
        printcolumn(name = "Location", type_ = "string", priority = 1, json_path = ".status.location", description = "Where it is."),
        printcolumn(name = "Error", type_ = "string", priority = 1, json_path = ".status.lastError", description = "Why the last attempt failed."),
    )]
    #[schemars(extend("required" = ["clusterRef"]))]
    pub struct EtcdBackupSpec {
        /// The EtcdCluster to back up.
        cluster_ref: LocalRef,
        /// Where the backup goes; the cluster's own `backup.destination` if it is left out.
        destination: Destination,
        /// Whether the backup is restored into a throw-away etcd to prove that it can be.
        verify: bool,
        /// After how many seconds this object and the backup are removed; never if it is left out.
        #[schemars(range(min = 60, max = 315_360_000))]
        ttl_seconds: i64,
    }
}

choice! {
    /// How far a backup is.
    pub enum BackupPhase {
        /// It waits for its turn.
        Pending = "Pending",
        /// It is being written.
        Running = "Running",
        /// It is there, and is being proven.
        Verifying = "Verifying",
        /// It is there.
        Succeeded = "Succeeded",
        /// There is no backup.
        Failed = "Failed",
    }
}

shape! {
    /// How the backup is doing.
    pub struct EtcdBackupStatus {
        /// How far it is: `Pending`, `Running`, `Verifying`, `Succeeded` or `Failed`.
        phase: BackupPhase,
        /// When it began. From then on, the spec cannot be changed.
        started_at: Time,
        /// When it was finished, well or not.
        finished_at: Time,
        /// Where it is.
        location: Location,
        /// The revision of the data that it holds.
        #[schemars(range(min = 0, max = WIDEST))]
        revision: i64,
        /// The etcd release it was made of.
        etcd_version: ReportedVersion,
        /// How many bytes are written.
        #[schemars(range(min = 0, max = WIDEST))]
        bytes_done: i64,
        /// How many bytes there are.
        #[schemars(range(min = 0, max = WIDEST))]
        bytes_total: i64,
        /// The SHA-256 digest of its file.
        sha256: Sha256,
        /// When it was proven that it can be restored.
        verified_at: Time,
        /// Why the last attempt failed; absent if it did not.
        last_error: Sentence,
        /// What is the case.
        #[schemars(length(max = 24), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
        conditions: Vec<Condition>,
    }
}

/// What is being made, or was made, stays what it was asked for.
pub(crate) fn stays_once_started() -> Value {
    json!([
        name_within(names::MOST_NAME, "its Pod is named after it"),
        rule(
            format!("!({}) || self.spec == oldSelf.spec", given("oldSelf", "status.startedAt")),
            "`spec` may not be changed once the backup has begun: make another EtcdBackup instead",
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::cel::objections;

    #[test]
    fn the_spec_may_be_changed_until_the_backup_has_begun() {
        let backup = |cluster: &str, status: Value| {
            let spec = json!({"clusterRef": {"name": cluster}});
            json!({"metadata": {"name": "b"}, "spec": spec, "status": status})
        };
        let begun = json!({"phase": "Running", "startedAt": "2026-01-02T03:04:05Z"});
        let judged = |status: &Value, new: &str| {
            let (old, new) = (backup("a", status.clone()), backup(new, status.clone()));
            objections("EtcdBackup", "v1", Some(&old), &new)
        };
        assert!(judged(&json!({"phase": "Pending"}), "b").is_empty());
        assert!(judged(&begun, "a").is_empty());
        assert_eq!(judged(&begun, "b").len(), 1);
    }
}
