//! ExampleApp v1beta1: the step between, flat where v1 has blocks.
//! Comes in: nothing. Goes out: the types of this version.
//! May touch: the vocabulary of `api`. Every doc comment here is what `kubectl explain` prints.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use kube::CustomResource;

use crate::api::condition::Condition;
use crate::api::example_app::place::StorageType;
use crate::api::example_app::rules;
use crate::api::field::WIDEST;
use crate::api::shape::shape;
use crate::api::texts::{
    AppVersion, FeatureName, Host, KeyPrefix, ObjectName, ReportedVersion, Schedule, Selector,
    StoreName, Time, Url,
};

shape! {
    /// What the application should be.
    #[derive(CustomResource)]
    #[kube(
        group = "example-app.appdelivery.cncf.io",
        version = "v1beta1",
        kind = "ExampleApp",
        plural = "exampleapps",
        namespaced,
        status = "ExampleAppStatus",
        doc = "An example application: a web application that keeps its data in etcd, with its cluster, its users' way in and its backups.",
        scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas", label_selector_path = ".status.selector"),
        printcolumn(name = "Version", type_ = "string", json_path = ".status.currentVersion", description = "The release in use."),
        printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas", description = "How many replicas answer."),
        printcolumn(name = "URL", type_ = "string", json_path = ".status.url", description = "Where it is for people."),
        printcolumn(name = "Last Backup", type_ = "date", json_path = ".status.lastBackupTime", description = "When the last backup was finished."),
        printcolumn(name = "Status", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason", description = "In one word, whether all is well."),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "When it was made."),
    )]
    #[schemars(extend("required" = ["version"], "x-kubernetes-validations" = rules::v1beta1()))]
    pub struct ExampleAppSpec {
        /// The release, such as `0.0.1`.
        version: AppVersion,
        /// How many replicas there should be. 0 lets the application sleep.
        #[schemars(range(min = 0, max = 100))]
        replicas: i32,
        /// The names of the features that are turned on, in lower camel case.
        #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "set"))]
        features: Vec<FeatureName>,
        /// When a backup is made, such as `0 3 * * *`, in UTC.
        schedule: Schedule,
        /// Where backups go.
        destination: Destination,
        /// The name of an EtcdCluster that there is, to keep the data in; the application gets one of its own if it is left
        /// out. It cannot be added or removed later.
        etcd_cluster: ObjectName,
        /// Whether the operator leaves the application alone.
        paused: bool,
    }
}

shape! {
    /// Where backups go.
    #[schemars(extend("x-kubernetes-validations" = rules::place_with_prefix()))]
    pub struct Destination {
        /// The type of the store: `s3`, `gcs`, `azure` or `volume`.
        storage_type: StorageType,
        /// For `s3`: the server, reached by https; Amazon's own if it is left out. For `azure`: the storage account.
        host: Host,
        /// The bucket, the container, or the PersistentVolumeClaim.
        bucket_name: StoreName,
        /// What the keys of the objects begin with.
        prefix: KeyPrefix,
    }
}

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
        /// When the last good backup was finished.
        last_backup_time: Time,
        /// How many replicas there are.
        #[schemars(range(min = 0, max = 1000))]
        replicas: i32,
        /// How many of them answer.
        #[schemars(range(min = 0, max = 1000))]
        ready_replicas: i32,
        /// The labels by which the replicas' pods are found.
        selector: Selector,
        /// What is the case.
        #[schemars(length(max = 24), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
        conditions: Vec<Condition>,
    }
}
