//! Backup destinations and sources as controllers read them after validation.
//! Independent of a kind: each kind passes in its fields.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::{Azure, BackupSource, Destination, Gcs, Retention, S3, StoreAccess, Volume};
use crate::api::extract::{is_true, ref_name, string};
use crate::api::field::Field;
use crate::api::strings::{Schedule, TimeZone};
use crate::api::validated::ReadError;

/// Scheduled backups.
#[derive(Clone, Debug, PartialEq)]
pub struct BackupConfig {
    /// Cron schedule as in the spec.
    pub schedule: Option<String>,
    /// Time zone of the schedules.
    pub time_zone: Option<String>,
    /// Whether the schedules are suspended.
    pub suspend: bool,
    /// Destination.
    pub store: Option<ObjectStore>,
    /// Minimum number of backups to keep.
    pub keep_last: Option<i32>,
    /// Days for which backups are kept.
    pub keep_days: Option<i32>,
    /// Cron schedule of verification as in the spec.
    pub verify_schedule: Option<String>,
}

/// Backup fields of a kind. Fields that the kind does not have are absent.
#[derive(Debug)]
pub(crate) struct BackupFields {
    pub(crate) schedule: Field<Schedule>,
    pub(crate) time_zone: Field<TimeZone>,
    pub(crate) suspend: Field<bool>,
    pub(crate) destination: Field<Destination>,
    pub(crate) retention: Field<Retention>,
    pub(crate) verify_schedule: Field<Schedule>,
}

impl BackupConfig {
    /// Reads `spec.backup` of any kind.
    pub(crate) fn read(fields: BackupFields) -> Result<Self, ReadError> {
        let BackupFields { schedule, time_zone, suspend, destination, retention, verify_schedule } =
            fields;
        let Retention { keep_last, keep_days } = retention.or_default();
        Ok(Self {
            schedule: string(&schedule),
            time_zone: string(&time_zone),
            suspend: is_true(&suspend),
            store: ObjectStore::read(destination, "spec.backup.destination")?,
            keep_last: keep_last.into_known(),
            keep_days: keep_days.into_known(),
            verify_schedule: string(&verify_schedule),
        })
    }
}

/// Destination of backups.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectStore {
    /// Bucket of Amazon S3 or of an S3-compatible server.
    S3 {
        /// Name of the bucket.
        bucket: String,
        /// Prefix of the object keys.
        prefix: Option<String>,
        /// URL of the server, if not Amazon S3.
        endpoint: Option<String>,
        /// Region.
        region: Option<String>,
        /// Path-style requests.
        path_style: bool,
        /// Secret with the credentials.
        credentials: Option<String>,
        /// Secret with the CA certificate.
        ca: Option<String>,
    },
    /// Bucket of Google Cloud Storage.
    Gcs {
        /// Name of the bucket.
        bucket: String,
        /// Prefix of the object keys.
        prefix: Option<String>,
        /// Secret with the credentials.
        credentials: Option<String>,
    },
    /// Container of Azure Blob Storage.
    Azure {
        /// Storage account.
        account: String,
        /// Name of the container.
        container: String,
        /// Prefix of the blob names.
        prefix: Option<String>,
        /// Secret with the account key.
        credentials: Option<String>,
    },
    /// PersistentVolumeClaim.
    Volume {
        /// Name of the claim.
        claim: String,
        /// Directory on the volume.
        prefix: Option<String>,
    },
}

impl ObjectStore {
    /// The store of a destination, if one is set. An incomplete destination is an error: otherwise
    /// backups would be written elsewhere, or not at all.
    pub(crate) fn read(
        destination: Field<Destination>,
        path: &'static str,
    ) -> Result<Option<Self>, ReadError> {
        let named = |block| {
            Self::from_block(block).ok_or(ReadError { path, expected: "a complete destination" })
        };
        destination.into_known().map(named).transpose()
    }

    /// The store of a destination; `None` if no store is set.
    #[must_use]
    pub fn from_block(destination: Destination) -> Option<Self> {
        let Destination { s3, gcs, azure, volume } = destination;
        if let Some(s3) = s3.into_known() {
            let S3 {
                bucket,
                prefix,
                endpoint,
                region,
                path_style,
                credentials_secret_ref,
                ca_secret_ref,
            } = s3;
            return Some(Self::S3 {
                bucket: string(&bucket)?,
                prefix: string(&prefix),
                endpoint: string(&endpoint),
                region: string(&region),
                path_style: is_true(&path_style),
                credentials: ref_name(&credentials_secret_ref),
                ca: ref_name(&ca_secret_ref),
            });
        }
        if let Some(Gcs { bucket, prefix, credentials_secret_ref }) = gcs.into_known() {
            return Some(Self::Gcs {
                bucket: string(&bucket)?,
                prefix: string(&prefix),
                credentials: ref_name(&credentials_secret_ref),
            });
        }
        if let Some(Azure { account, container, prefix, credentials_secret_ref }) =
            azure.into_known()
        {
            return Some(Self::Azure {
                account: string(&account)?,
                container: string(&container)?,
                prefix: string(&prefix),
                credentials: ref_name(&credentials_secret_ref),
            });
        }
        let Volume { claim_ref, prefix } = volume.into_known()?;
        Some(Self::Volume { claim: ref_name(&claim_ref)?, prefix: string(&prefix) })
    }
}

/// Backup to restore.
#[derive(Clone, Debug, PartialEq)]
pub enum RestoreSource {
    /// EtcdBackup in the same namespace, by name.
    Backup(String),
    /// URL of a backup and the access to its store.
    Location {
        /// URL.
        location: String,
        /// URL of the server, if not the default of the provider.
        endpoint: Option<String>,
        /// Region.
        region: Option<String>,
        /// Path-style requests.
        path_style: bool,
        /// Secret with the credentials.
        credentials: Option<String>,
        /// Secret with the CA certificate.
        ca: Option<String>,
    },
}

impl RestoreSource {
    /// The source of a restore. Without one the cluster would start empty, so it is an error.
    pub(crate) fn read(source: Field<BackupSource>, path: &'static str) -> Result<Self, ReadError> {
        let source = source.into_known().and_then(Self::from_block);
        source.ok_or(ReadError { path, expected: "a backup, by name or location" })
    }

    fn from_block(source: BackupSource) -> Option<Self> {
        let BackupSource { backup_ref, location, access } = source;
        if let Some(name) = ref_name(&backup_ref) {
            return Some(Self::Backup(name));
        }
        let StoreAccess { endpoint, region, path_style, credentials_secret_ref, ca_secret_ref } =
            access.or_default();
        Some(Self::Location {
            location: string(&location)?,
            endpoint: string(&endpoint),
            region: string(&region),
            path_style: is_true(&path_style),
            credentials: ref_name(&credentials_secret_ref),
            ca: ref_name(&ca_secret_ref),
        })
    }
}
