//! ExampleApp v1, what the operator reports.
//! Comes in: nothing. Goes out: the types of `status`.
//! May touch: the vocabulary of `api`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::api::condition::Condition;
use crate::api::etcd_cluster::v1::status::Progress;
use crate::api::field::WIDEST;
use crate::api::pod::LocalRef;
use crate::api::shape::shape;
use crate::api::texts::{Location, ObjectName, ReportedVersion, Selector, Sentence, Time, Url};

shape! {
    /// What the application is.
    pub struct ExampleAppStatus {
        /// The generation of the spec that this status is about.
        #[schemars(range(min = 0, max = WIDEST))]
        observed_generation: i64,
        /// The release in use, and never the one that is being brought in.
        current_version: ReportedVersion,
        /// The release that is being brought in.
        target_version: ReportedVersion,
        /// Where the application is for people.
        url: Url,
        /// The Secret with the user's name and password.
        auth_secret_name: ObjectName,
        /// The Secret with which the application reaches its data.
        binding: LocalRef,
        /// How backups are doing.
        backup: BackupStatus,
        /// How many replicas there are.
        #[schemars(range(min = 0, max = 1000))]
        replicas: i32,
        /// How many of them answer.
        #[schemars(range(min = 0, max = 1000))]
        ready_replicas: i32,
        /// The labels by which the replicas' pods are found.
        selector: Selector,
        /// How far a long piece of work has come.
        progress: Progress,
        /// What is the case.
        #[schemars(length(max = 24), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
        conditions: Vec<Condition>,
    }
}

shape! {
    /// How backups are doing.
    pub struct BackupStatus {
        /// When the last good backup was finished.
        last_backup_time: Time,
        /// Where it is.
        location: Location,
        /// The release of the application that it was made of.
        version: ReportedVersion,
        /// Why the last attempt failed; absent if it did not.
        last_error: Sentence,
    }
}
