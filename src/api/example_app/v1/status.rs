//! ExampleApp v1: the status that the operator reports.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::api::condition::Condition;
use crate::api::etcd_cluster::v1::status::Progress;
use crate::api::field::MAX_SAFE_INTEGER;
use crate::api::macros::object;
use crate::api::pod::LocalRef;
use crate::api::strings::{Location, Message, ObjectName, ReportedVersion, Selector, Time, Url};

object! {
    /// Observed state of the application.
    pub struct ExampleAppStatus {
        /// Generation of the spec that this status refers to.
        #[schemars(range(min = 0, max = MAX_SAFE_INTEGER))]
        observed_generation: i64,
        /// Version in use, never the one that is being rolled out.
        current_version: ReportedVersion,
        /// Version that is being rolled out.
        target_version: ReportedVersion,
        /// URL of the application.
        url: Url,
        /// Name of the Secret with user name and password.
        auth_secret_name: ObjectName,
        /// Secret that the application connects to etcd with.
        binding: LocalRef,
        /// State of backups.
        backup: BackupStatus,
        /// Number of replicas.
        #[schemars(range(min = 0, max = 1000))]
        replicas: i32,
        /// Number of ready replicas.
        #[schemars(range(min = 0, max = 1000))]
        ready_replicas: i32,
        /// Label selector of the pods, for the scale subresource.
        selector: Selector,
        /// Progress of a long-running operation.
        progress: Progress,
        /// Conditions of the object.
        #[schemars(length(max = 24), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
        conditions: Vec<Condition>,
    }
}

object! {
    /// State of backups.
    pub struct BackupStatus {
        /// Completion time of the last successful backup.
        last_backup_time: Time,
        /// URL of the last successful backup.
        location: Location,
        /// Version of the application that the backup was taken from.
        version: ReportedVersion,
        /// Error of the last attempt; absent if it succeeded.
        last_error: Message,
    }
}
