//! The migration record of one CRD, stored as JSON in a ConfigMap.
//!
//! Crash safety: the next leader continues from the record. A record belongs to a CRD with the same
//! uid, storage version, versions and spec fingerprint; every object that was written after
//! `threshold` under such a CRD is stored in its storage version.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::api::crd::stored::StoredCrd;

/// One migration of the objects of a CRD.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    /// The uid of the CRD.
    pub(crate) uid: String,
    /// The storage version of the CRD.
    pub(crate) storage: String,
    /// All versions of the CRD.
    pub(crate) versions: Vec<String>,
    /// The managers that wrote the spec of the CRD, and when.
    pub(crate) spec_fingerprint: String,
    pub(crate) phase: Phase,
    /// Objects that were written after this revision need no write.
    pub(crate) threshold: u64,
    /// The continue token of the list; none at its beginning.
    #[serde(rename = "continue", default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    /// The number of the attempt, from 1; a blocked migration is retried with the next one.
    pub(crate) attempt: u32,
    /// Objects at the start.
    pub(crate) total: u64,
    pub(crate) counts: Counts,
    /// The first objects that could not be written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) failures: Vec<Failure>,
    pub(crate) start_time: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) completion_time: Option<Timestamp>,
    /// The served versions at the last check that no field manager uses any other version.
    #[serde(default)]
    pub(crate) served_by_managers: Vec<String>,
    /// The delegated migration, if Kubernetes rewrites the objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delegated: Option<DelegatedRecord>,
}

/// The `StorageVersionMigration` object that this migration created.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DelegatedRecord {
    /// Its uid; empty before it is created.
    #[serde(default)]
    pub(crate) uid: String,
    /// How many of them have failed.
    #[serde(default)]
    pub(crate) failed: u32,
}

/// The progress of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// Kubernetes rewrites the objects.
    Delegated,
    /// The operator rewrites the objects, page by page.
    Rewriting,
    /// All objects were rewritten; a second list is checked.
    Verifying,
    /// No object is stored in another version: `storedVersions` can be trimmed.
    Verified,
    /// Some objects could not be written; they are retried later.
    Blocked,
    /// Field managers that use an unserved version are moved to the hub version.
    ManagedFields,
    /// Nothing remains.
    Complete,
}

impl Phase {
    /// The name, as users read it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Delegated => "Delegated",
            Self::Rewriting => "Rewriting",
            Self::Verifying => "Verifying",
            Self::Verified => "Verified",
            Self::Blocked => "Blocked",
            Self::ManagedFields => "ManagedFields",
            Self::Complete => "Complete",
        }
    }
}

/// Processed objects by outcome: `written` of the whole migration, the others of the current list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Counts {
    pub(crate) listed: u64,
    pub(crate) written: u64,
    /// Stored in the storage version already.
    pub(crate) current: u64,
    pub(crate) deleted: u64,
    pub(crate) failed: u64,
}

/// An object that could not be written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// Its namespace and name.
    pub(crate) object: String,
    /// The error.
    pub(crate) message: String,
}

impl Record {
    /// Whether this record belongs to the CRD as it is now.
    pub(crate) fn matches(&self, crd: &StoredCrd) -> bool {
        self.uid == crd.uid
            && self.storage == crd.storage
            && self.spec_fingerprint == crd.spec_fingerprint
            && self.versions.iter().eq(crd.versions.iter().map(|(name, _)| name))
    }
}

impl Counts {
    /// The sum of both.
    pub(crate) const fn plus(self, more: Self) -> Self {
        let Self { listed, written, current, deleted, failed } = more;
        Self {
            listed: self.listed.saturating_add(listed),
            written: self.written.saturating_add(written),
            current: self.current.saturating_add(current),
            deleted: self.deleted.saturating_add(deleted),
            failed: self.failed.saturating_add(failed),
        }
    }
}
