//! Where backups go: a bucket of S3, of Google or of Azure, or a volume of the cluster.
//! Comes in: nothing. Goes out: the blocks `destination`, `retention` and `from`, shared by kinds.
//! May touch: `shape`, `texts`, `pod`. Credentials are named, never written here.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod checked;
pub mod url;

use crate::api::pod::LocalRef;
use crate::api::shape::shape;
use crate::api::texts::{Account, Bucket, Endpoint, KeyPrefix, Location, Region};

shape! {
    /// Where backups go. Exactly one of the blocks.
    #[schemars(extend("x-kubernetes-validations" = [{
        "rule": "(has(self.s3) ? 1 : 0) + (has(self.gcs) ? 1 : 0) + (has(self.azure) ? 1 : 0) + (has(self.volume) ? 1 : 0) == 1",
        "message": "must have exactly one of s3, gcs, azure and volume",
    }]))]
    pub struct Destination {
        /// A bucket of Amazon S3, or of any server that speaks its language.
        s3: S3,
        /// A bucket of Google Cloud Storage.
        gcs: Gcs,
        /// A container of Azure Blob Storage.
        azure: Azure,
        /// A PersistentVolumeClaim in the same namespace. It shares the cluster's fate; keep a copy elsewhere.
        volume: Volume,
    }
}

shape! {
    /// A bucket of Amazon S3, or of any server that speaks its language.
    #[schemars(extend("required" = ["bucket"]))]
    pub struct S3 {
        /// The bucket's name.
        bucket: Bucket,
        /// What the keys of the objects begin with.
        prefix: KeyPrefix,
        /// The server's URL; Amazon's own for the region if it is left out.
        endpoint: Endpoint,
        /// The bucket's region.
        region: Region,
        /// Whether the bucket is named in the path instead of in the host. Most servers that are not Amazon's need it.
        path_style: bool,
        /// A Secret with `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`; the pod's own identity if it is left out.
        credentials_secret_ref: LocalRef,
        /// A Secret with `ca.crt`, for a server whose certificate is not signed by a public authority.
        ca_secret_ref: LocalRef,
    }
}

shape! {
    /// A bucket of Google Cloud Storage.
    #[schemars(extend("required" = ["bucket"]))]
    pub struct Gcs {
        /// The bucket's name.
        bucket: Bucket,
        /// What the keys of the objects begin with.
        prefix: KeyPrefix,
        /// A Secret with `service-account.json`; the pod's own identity if it is left out.
        credentials_secret_ref: LocalRef,
    }
}

shape! {
    /// A container of Azure Blob Storage.
    #[schemars(extend("required" = ["account", "container"]))]
    pub struct Azure {
        /// The storage account.
        account: Account,
        /// The container in it.
        container: Bucket,
        /// What the names of the blobs begin with.
        prefix: KeyPrefix,
        /// A Secret with `AZURE_STORAGE_ACCOUNT_KEY`; the pod's own identity if it is left out.
        credentials_secret_ref: LocalRef,
    }
}

shape! {
    /// A volume in the same namespace.
    #[schemars(extend("required" = ["claimRef"]))]
    pub struct Volume {
        /// The PersistentVolumeClaim. It must allow writing from the node on which the backup runs.
        claim_ref: LocalRef,
        /// The folder on the volume.
        prefix: KeyPrefix,
    }
}

shape! {
    /// How long backups are kept. The newest one is never removed.
    pub struct Retention {
        /// How many backups are kept at least.
        #[schemars(range(min = 1, max = 1000))]
        keep_last: i32,
        /// For how many days a backup is kept; for ever if both are left out.
        #[schemars(range(min = 1, max = 3650))]
        keep_days: i32,
    }
}

shape! {
    /// What to restore. Exactly one of the two.
    #[schemars(extend("x-kubernetes-validations" = [{
        "rule": "has(self.backupRef) != has(self.location)",
        "message": "must have exactly one of backupRef and location",
    }]))]
    pub struct Origin {
        /// A finished EtcdBackup in the same namespace.
        backup_ref: LocalRef,
        /// The place of a backup in a store, such as `s3://bucket/prefix/name.db`.
        location: Location,
        /// How to reach the store of `location`.
        access: Access,
    }
}

shape! {
    /// How to reach a store that is named by a URL.
    pub struct Access {
        /// The server's URL; the provider's own if it is left out.
        endpoint: Endpoint,
        /// The bucket's region.
        region: Region,
        /// Whether the bucket is named in the path instead of in the host.
        path_style: bool,
        /// A Secret with the keys of the destination's kind; the pod's own identity if it is left out.
        credentials_secret_ref: LocalRef,
        /// A Secret with `ca.crt`, for a server whose certificate is not signed by a public authority.
        ca_secret_ref: LocalRef,
    }
}
