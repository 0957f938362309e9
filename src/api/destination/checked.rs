//! Where backups go and come from, as controllers see it.
//! Comes in: blocks that have passed the checks. Goes out: closed types.
//! May touch: the blocks of `destination`. It knows no kind: each hands in what it says.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::{Access, Azure, Destination, Gcs, Origin, Retention, S3, Volume};
use crate::api::checked::Unread;
use crate::api::field::Field;
use crate::api::plain::{is_true, name_of, text};
use crate::api::texts::{Schedule, TimeZone};

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

/// What a kind says about backups, field by field. What it has no words for is absent.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) schedule: Field<Schedule>,
    pub(crate) time_zone: Field<TimeZone>,
    pub(crate) suspend: Field<bool>,
    pub(crate) destination: Field<Destination>,
    pub(crate) retention: Field<Retention>,
    pub(crate) verify_schedule: Field<Schedule>,
}

impl Plan {
    /// The plan in the block `spec.backup` of any kind.
    pub(crate) fn read(asked: Asked) -> Result<Self, Unread> {
        let Asked { schedule, time_zone, suspend, destination, retention, verify_schedule } = asked;
        let Retention { keep_last, keep_days } = retention.or_empty();
        Ok(Self {
            schedule: text(&schedule),
            time_zone: text(&time_zone),
            suspend: is_true(&suspend),
            store: Store::read(destination, "spec.backup.destination")?,
            keep_last: keep_last.into_known(),
            keep_days: keep_days.into_known(),
            verify_schedule: text(&verify_schedule),
        })
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
    /// The store, if there is a block for it. Such a block names one: what is lost here would be
    /// written elsewhere, or nowhere.
    pub(crate) fn read(
        destination: Field<Destination>,
        path: &'static str,
    ) -> Result<Option<Self>, Unread> {
        let named = |block| Self::of(block).ok_or(Unread { path, wanted: "a place for backups" });
        destination.into_known().map(named).transpose()
    }

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
                path_style: is_true(&path_style),
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
    /// The source that a block names. Without one, somebody would begin with nothing instead.
    pub(crate) fn read(origin: Field<Origin>, path: &'static str) -> Result<Self, Unread> {
        let source = origin.into_known().and_then(Self::of);
        source.ok_or(Unread { path, wanted: "a backup, by its name or its place" })
    }

    fn of(origin: Origin) -> Option<Self> {
        let Origin { backup_ref, location, access } = origin;
        if let Some(name) = name_of(&backup_ref) {
            return Some(Self::Backup(name));
        }
        let Access { endpoint, region, path_style, credentials_secret_ref, ca_secret_ref } =
            access.or_empty();
        Some(Self::Location {
            location: text(&location)?,
            endpoint: text(&endpoint),
            region: text(&region),
            path_style: is_true(&path_style),
            credentials: name_of(&credentials_secret_ref),
            authority: name_of(&ca_secret_ref),
        })
    }
}
