//! ExampleApp v1alpha1: the example of the CNCF Operator White Paper, its fields and no others.
//! Comes in: nothing. Goes out: the types of this version.
//! May touch: the vocabulary of `api`. Every doc comment here is what `kubectl explain` prints.
//! There is no scale subresource here: the paper has no field for the number of replicas.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use kube::CustomResource;

use crate::api::example_app::place::StorageType;
use crate::api::example_app::rules;
use crate::api::example_app::v1::Features;
use crate::api::shape::shape;
use crate::api::texts::{AppVersion, Host, ObjectName, Phrase, ReportedVersion, StoreName, Url};

shape! {
    /// What the application should be.
    #[derive(CustomResource)]
    #[kube(
        group = "example-app.appdelivery.cncf.io",
        version = "v1alpha1",
        kind = "ExampleApp",
        plural = "exampleapps",
        namespaced,
        status = "ExampleAppStatus",
        doc = "An example application: a web application that keeps its data in etcd, with its cluster, its users' way in and its backups.",
        printcolumn(name = "Version", type_ = "string", json_path = ".status.currentVersion", description = "The release in use."),
        printcolumn(name = "URL", type_ = "string", json_path = ".status.url", description = "Where it is for people."),
        printcolumn(name = "Last Backup", type_ = "string", json_path = ".status.backup.lastBackupTime", description = "When the last backup was finished."),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "When it was made."),
    )]
    #[schemars(extend("required" = ["appVersion"]))]
    pub struct ExampleAppSpec {
        /// The release, such as `0.0.1`.
        app_version: AppVersion,
        /// Features by their names, in lower camel case: `true` turns one on, `false` turns it off.
        #[schemars(extend("maxProperties" = 32))]
        features: Features,
        /// Backups.
        backup: Backup,
    }
}

shape! {
    /// Backups.
    #[schemars(extend("x-kubernetes-validations" = rules::place()))]
    pub struct Backup {
        /// Whether backups are made.
        enabled: bool,
        /// The type of the store: `s3`, `gcs`, `azure` or `volume`.
        storage_type: StorageType,
        /// For `s3`: the server, reached by https; Amazon's own if it is left out. For `azure`: the storage account.
        host: Host,
        /// The bucket, the container, or the PersistentVolumeClaim.
        bucket_name: StoreName,
    }
}

shape! {
    /// What the application is.
    pub struct ExampleAppStatus {
        /// The release in use.
        current_version: ReportedVersion,
        /// Where the application is for people.
        url: Url,
        /// The Secret with the user's name and password.
        auth_secret_name: ObjectName,
        /// How backups are doing.
        backup: BackupStatus,
    }
}

shape! {
    /// How backups are doing.
    pub struct BackupStatus {
        /// When the last good backup was finished.
        last_backup_time: Phrase,
    }
}
