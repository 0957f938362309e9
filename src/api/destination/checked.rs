//! Where backups go and come from, as controllers see it.
//! Comes in: blocks that have passed the checks. Goes out: closed types.
//! May touch: the blocks of `destination`.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::{Azure, Destination, Gcs, Origin, Retention, S3, Volume};
use crate::api::etcd_cluster::v1::Backup;
use crate::api::field::Field;
use crate::api::pod::LocalRef;

/// When and where backups are made.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// When, as it was written.
    pub schedule: Option<String>,
    /// The time zone of the schedules.
    pub time_zone: Option<String>,
    /// Whether the schedules rest.
    pub suspend: bool,
    /// Where to.
    pub store: Option<Store>,
    /// How many to keep at least.
    pub keep_last: Option<i32>,
    /// For how many days.
    pub keep_days: Option<i32>,
    /// When the newest is proven, as it was written.
    pub verify_schedule: Option<String>,
}

impl Plan {
    /// The plan of a cluster.
    pub(crate) fn of_cluster(backup: Backup) -> Self {
        let Backup { schedule, time_zone, suspend, destination, retention, verify_schedule } =
            backup;
        let Retention { keep_last, keep_days } = retention.or_empty();
        Self {
            schedule: text(&schedule),
            time_zone: text(&time_zone),
            suspend: suspend.into_known().unwrap_or_default(),
            store: destination.into_known().and_then(Store::of),
            keep_last: keep_last.into_known(),
            keep_days: keep_days.into_known(),
            verify_schedule: text(&verify_schedule),
        }
    }
}

/// A place for backups.
#[derive(Clone, Debug, PartialEq)]
pub enum Store {
    /// A bucket of S3 or of a server that speaks its language.
    S3 {
        /// The bucket.
        bucket: String,
        /// What keys begin with.
        prefix: Option<String>,
        /// The server, if it is not Amazon's.
        endpoint: Option<String>,
        /// The region.
        region: Option<String>,
        /// Whether the bucket is in the path.
        path_style: bool,
        /// The Secret with the keys.
        credentials: Option<String>,
        /// The Secret with the authority.
        authority: Option<String>,
    },
    /// A bucket of Google's.
    Gcs {
        /// The bucket.
        bucket: String,
        /// What keys begin with.
        prefix: Option<String>,
        /// The Secret with the keys.
        credentials: Option<String>,
    },
    /// A container of Azure's.
    Azure {
        /// The account.
        account: String,
        /// The container.
        container: String,
        /// What names begin with.
        prefix: Option<String>,
        /// The Secret with the key.
        credentials: Option<String>,
    },
    /// A volume of the cluster.
    Volume {
        /// The claim.
        claim: String,
        /// The folder.
        prefix: Option<String>,
    },
}

impl Store {
    /// The store that a block names; nothing if it names none.
    #[must_use]
    pub fn of(destination: Destination) -> Option<Self> {
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
                bucket: text(&bucket)?,
                prefix: text(&prefix),
                endpoint: text(&endpoint),
                region: text(&region),
                path_style: path_style.into_known().unwrap_or_default(),
                credentials: name_of(&credentials_secret_ref),
                authority: name_of(&ca_secret_ref),
            });
        }
        if let Some(Gcs { bucket, prefix, credentials_secret_ref }) = gcs.into_known() {
            return Some(Self::Gcs {
                bucket: text(&bucket)?,
                prefix: text(&prefix),
                credentials: name_of(&credentials_secret_ref),
            });
        }
        if let Some(Azure { account, container, prefix, credentials_secret_ref }) =
            azure.into_known()
        {
            return Some(Self::Azure {
                account: text(&account)?,
                container: text(&container)?,
                prefix: text(&prefix),
                credentials: name_of(&credentials_secret_ref),
            });
        }
        let Volume { claim_ref, prefix } = volume.into_known()?;
        Some(Self::Volume { claim: name_of(&claim_ref)?, prefix: text(&prefix) })
    }
}

/// What to restore.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A backup of the same namespace, by its name.
    Backup(String),
    /// A place in a store, as it was written, and how to reach it.
    Location {
        /// The place.
        location: String,
        /// The server, if it is not the provider's.
        endpoint: Option<String>,
        /// The region.
        region: Option<String>,
        /// Whether the bucket is in the path.
        path_style: bool,
        /// The Secret with the keys.
        credentials: Option<String>,
        /// The Secret with the authority.
        authority: Option<String>,
    },
}

impl Source {
    /// The source that a block names; nothing if it names none.
    pub(crate) fn of(origin: Field<Origin>) -> Option<Self> {
        let Origin { backup_ref, location, access } = origin.into_known()?;
        if let Some(name) = name_of(&backup_ref) {
            return Some(Self::Backup(name));
        }
        let access = access.or_empty();
        Some(Self::Location {
            location: text(&location)?,
            endpoint: text(&access.endpoint),
            region: text(&access.region),
            path_style: access.path_style.into_known().unwrap_or_default(),
            credentials: name_of(&access.credentials_secret_ref),
            authority: name_of(&access.ca_secret_ref),
        })
    }
}

fn text<T: ToString>(field: &Field<T>) -> Option<String> {
    field.known().map(ToString::to_string)
}

fn name_of(reference: &Field<LocalRef>) -> Option<String> {
    reference.known().and_then(|it| text(&it.name))
}
