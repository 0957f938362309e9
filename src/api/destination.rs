//! Backup destinations: S3, Google Cloud Storage, Azure Blob Storage, or a PersistentVolumeClaim;
//! shared by all kinds that have `destination`, `retention` or `from`.
//! Credentials are referenced by Secret name and never stored here.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod url;
pub mod validated;

use crate::api::macros::object;
use crate::api::pod::LocalRef;
use crate::api::strings::{Account, Bucket, Endpoint, KeyPrefix, Location, Region};

object! {
    /// Object store or volume for backups: exactly one of the fields.
    #[schemars(extend("x-kubernetes-validations" = [{
        "rule": "(has(self.s3) ? 1 : 0) + (has(self.gcs) ? 1 : 0) + (has(self.azure) ? 1 : 0) + (has(self.volume) ? 1 : 0) == 1",
        "message": "must have exactly one of s3, gcs, azure and volume",
    }]))]
    pub struct Destination {
        /// Bucket of Amazon S3 or of an S3-compatible server.
        s3: S3,
        /// Bucket of Google Cloud Storage.
        gcs: Gcs,
        /// Container of Azure Blob Storage.
        azure: Azure,
        /// PersistentVolumeClaim in the same namespace. It is lost together with the Kubernetes
        /// cluster.
        volume: Volume,
    }
}

object! {
    /// Bucket of Amazon S3 or of an S3-compatible server.
    #[schemars(extend("required" = ["bucket"]))]
    pub struct S3 {
        /// Name of the bucket.
        bucket: Bucket,
        /// Prefix of the object keys.
        prefix: KeyPrefix,
        /// URL of the server. Default: Amazon S3 in the region.
        endpoint: Endpoint,
        /// Region of the bucket.
        region: Region,
        /// Path-style requests: the bucket is in the path and not in the host. Most S3-compatible
        /// servers need it. Default: false.
        path_style: bool,
        /// Secret with `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`. Default: the identity of
        /// the pod.
        credentials_secret_ref: LocalRef,
        /// Secret with `ca.crt`, for a server certificate that no public CA signed.
        ca_secret_ref: LocalRef,
    }
}

object! {
    /// Bucket of Google Cloud Storage.
    #[schemars(extend("required" = ["bucket"]))]
    pub struct Gcs {
        /// Name of the bucket.
        bucket: Bucket,
        /// Prefix of the object keys.
        prefix: KeyPrefix,
        /// Secret with `service-account.json`. Default: the identity of the pod.
        credentials_secret_ref: LocalRef,
    }
}

object! {
    /// Container of Azure Blob Storage.
    #[schemars(extend("required" = ["account", "container"]))]
    pub struct Azure {
        /// Storage account.
        account: Account,
        /// Name of the container.
        container: Bucket,
        /// Prefix of the blob names.
        prefix: KeyPrefix,
        /// Secret with `AZURE_STORAGE_ACCOUNT_KEY`. Default: the identity of the pod.
        credentials_secret_ref: LocalRef,
    }
}

object! {
    /// PersistentVolumeClaim in the same namespace.
    #[schemars(extend("required" = ["claimRef"]))]
    pub struct Volume {
        /// The PersistentVolumeClaim. It must be writable from the node on which the backup runs.
        claim_ref: LocalRef,
        /// Directory on the volume.
        prefix: KeyPrefix,
    }
}

object! {
    /// Retention of backups. The newest backup is never deleted.
    pub struct Retention {
        /// Minimum number of backups that are kept.
        #[schemars(range(min = 1, max = 1000))]
        keep_last: i32,
        /// Days for which a backup is kept. Default: forever, if `keepLast` is unset, too.
        #[schemars(range(min = 1, max = 3650))]
        keep_days: i32,
    }
}

object! {
    /// Backup to restore: exactly one of `backupRef` and `location`.
    #[schemars(extend("x-kubernetes-validations" = [{
        "rule": "has(self.backupRef) != has(self.location)",
        "message": "must have exactly one of backupRef and location",
    }]))]
    pub struct BackupSource {
        /// Completed EtcdBackup in the same namespace.
        backup_ref: LocalRef,
        /// URL of a backup, such as `s3://bucket/prefix/name.db`.
        location: Location,
        /// Access to the store of `location`.
        access: StoreAccess,
    }
}

object! {
    /// Access to a store that is given by a URL.
    pub struct StoreAccess {
        /// URL of the server. Default: that of the provider.
        endpoint: Endpoint,
        /// Region of the bucket.
        region: Region,
        /// Path-style requests: the bucket is in the path and not in the host. Default: false.
        path_style: bool,
        /// Secret with the keys of the provider. Default: the identity of the pod.
        credentials_secret_ref: LocalRef,
        /// Secret with `ca.crt`, for a server certificate that no public CA signed.
        ca_secret_ref: LocalRef,
    }
}
