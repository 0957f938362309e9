//! ExampleApp v1beta1: deprecated spoke version, flat where v1 has nested objects.
//! Every doc comment of a field is printed by `kubectl explain`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use kube::CustomResource;

use crate::api::condition::Condition;
use crate::api::example_app::backup_store::StorageType;
use crate::api::example_app::cel_rules;
use crate::api::field::MAX_SAFE_INTEGER;
use crate::api::macros::object;
use crate::api::strings::{
    AppVersion, FeatureName, Host, KeyPrefix, ObjectName, ReportedVersion, Schedule, Selector,
    StoreName, Time, Url,
};

object! {
    /// Desired state of the application.
    #[derive(CustomResource)]
    #[kube(
        group = "example-app.appdelivery.cncf.io",
        version = "v1beta1",
        kind = "ExampleApp",
        plural = "exampleapps",
        namespaced,
        deprecated = "example-app.appdelivery.cncf.io/v1beta1 ExampleApp is deprecated; use example-app.appdelivery.cncf.io/v1 ExampleApp",
        status = "ExampleAppStatus",
        doc = "Example web application that stores its data in etcd, with its EtcdCluster and Ingress. Not reconciled in this release: objects of this kind are only stored.",
        scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas", label_selector_path = ".status.selector"),
        printcolumn(name = "Version", type_ = "string", json_path = ".status.currentVersion", description = "Version in use."),
        printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas", description = "Number of ready replicas."),
        printcolumn(name = "URL", type_ = "string", json_path = ".status.url", description = "URL of the application."),
        printcolumn(name = "Status", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason", description = "Reason of the Ready condition."),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "Time since creation."),
    )]
    #[schemars(extend("required" = ["version"], "x-kubernetes-validations" = cel_rules::v1beta1()))]
    pub struct ExampleAppSpec {
        /// Version of the application, such as `0.0.1`.
        version: AppVersion,
        /// Number of replicas. 0 hibernates the application. Default: 2.
        #[schemars(range(min = 0, max = 100))]
        replicas: i32,
        /// Names of the enabled features, in lower camel case.
        #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "set"))]
        features: Vec<FeatureName>,
        /// Cron schedule of backups in UTC, such as `0 3 * * *`. Not supported in this release.
        /// Default: `0 3 * * *` if a destination is set.
        schedule: Schedule,
        /// Object store or volume for backups. Not supported in this release.
        destination: Destination,
        /// Name of an existing EtcdCluster for the data. Immutable. Default: a dedicated one is
        /// created.
        etcd_cluster: ObjectName,
        /// Pauses reconciliation; status is still updated. Default: false.
        paused: bool,
    }
}

object! {
    /// Object store or volume for backups.
    #[schemars(extend("x-kubernetes-validations" = cel_rules::backup_store_with_prefix()))]
    pub struct Destination {
        /// Type of the store: `s3`, `gcs`, `azure` or `volume`.
        storage_type: StorageType,
        /// For `azure`: the storage account. For `s3`: host of the server, reached by https.
        /// Default: Amazon S3.
        host: Host,
        /// Name of the bucket, the container or the PersistentVolumeClaim.
        bucket_name: StoreName,
        /// Prefix of the object keys.
        prefix: KeyPrefix,
    }
}

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
        /// Completion time of the last successful backup.
        last_backup_time: Time,
        /// Number of replicas.
        #[schemars(range(min = 0, max = 1000))]
        replicas: i32,
        /// Number of ready replicas.
        #[schemars(range(min = 0, max = 1000))]
        ready_replicas: i32,
        /// Label selector of the pods, for the scale subresource.
        selector: Selector,
        /// Conditions of the object.
        #[schemars(length(max = 24), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
        conditions: Vec<Condition>,
    }
}
