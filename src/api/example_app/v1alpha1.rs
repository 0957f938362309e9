//! ExampleApp v1alpha1: deprecated spoke version with exactly the fields of the CNCF Operator White
//! Paper. There is no scale subresource: the paper has no field for the number of replicas.
//! Every doc comment of a field is printed by `kubectl explain`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use kube::CustomResource;

use crate::api::example_app::backup_store::StorageType;
use crate::api::example_app::cel_rules;
use crate::api::example_app::v1::Features;
use crate::api::macros::object;
use crate::api::strings::{
    AppVersion, Host, ObjectName, ReportedVersion, ShortString, StoreName, Url,
};

object! {
    /// Desired state of the application.
    #[derive(CustomResource)]
    #[kube(
        group = "example-app.appdelivery.cncf.io",
        version = "v1alpha1",
        kind = "ExampleApp",
        plural = "exampleapps",
        namespaced,
        deprecated = "example-app.appdelivery.cncf.io/v1alpha1 ExampleApp is deprecated; use example-app.appdelivery.cncf.io/v1 ExampleApp",
        status = "ExampleAppStatus",
        doc = "Example web application that stores its data in etcd, with its EtcdCluster and Ingress. Not reconciled in this release: objects of this kind are only stored.",
        printcolumn(name = "Version", type_ = "string", json_path = ".status.currentVersion", description = "Version in use."),
        printcolumn(name = "URL", type_ = "string", json_path = ".status.url", description = "URL of the application."),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "Time since creation."),
    )]
    #[schemars(extend("required" = ["appVersion"]))]
    pub struct ExampleAppSpec {
        /// Version of the application, such as `0.0.1`.
        app_version: AppVersion,
        /// Features by name, in lower camel case: `true` enables, `false` disables.
        #[schemars(extend("maxProperties" = 32))]
        features: Features,
        /// Backup settings. Not supported in this release.
        backup: Backup,
    }
}

object! {
    /// Backup settings.
    #[schemars(extend("x-kubernetes-validations" = cel_rules::backup_store()))]
    pub struct Backup {
        /// Enables backups. Default: false.
        enabled: bool,
        /// Type of the store: `s3`, `gcs`, `azure` or `volume`.
        storage_type: StorageType,
        /// For `azure`: the storage account. For `s3`: host of the server, reached by https.
        /// Default: Amazon S3.
        host: Host,
        /// Name of the bucket, the container or the PersistentVolumeClaim.
        bucket_name: StoreName,
    }
}

object! {
    /// Observed state of the application.
    pub struct ExampleAppStatus {
        /// Version in use.
        current_version: ReportedVersion,
        /// URL of the application.
        url: Url,
        /// Name of the Secret with user name and password.
        auth_secret_name: ObjectName,
        /// State of backups.
        backup: BackupStatus,
    }
}

object! {
    /// State of backups.
    pub struct BackupStatus {
        /// Completion time of the last successful backup.
        last_backup_time: ShortString,
    }
}
