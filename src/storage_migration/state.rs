//! The observed state of one CRD and its objects. What could not be read is unknown.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::progress_cache::ProgressCache;
use super::record::Record;
use crate::api::crd::stored::StoredCrd;
use crate::api::kinds::{self, Kind};
use crate::api::monotonic::MonotonicTime;

/// Which component rewrites stored objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MigrationMode {
    /// The operator.
    Operator,
    /// The `StorageVersionMigration` API of Kubernetes, where it is served.
    Kubernetes,
    /// None.
    Off,
}

/// The result of a read. Unknown is never absence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reading<T> {
    /// The read succeeded.
    Known(T),
    /// The read failed.
    Unknown,
}

/// The `StorageVersionMigration` object of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DelegatedMigration {
    /// This cluster does not serve the API.
    NotServed,
    /// No such object.
    NotFound,
    /// The object exists.
    Found {
        uid: String,
        /// None while the migration is running.
        outcome: Option<Outcome>,
    },
}

/// The outcome of a delegated migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Every object was written.
    Succeeded,
    /// At least one was not; Kubernetes does not retry.
    Failed,
}

/// Everything that a decision depends on.
pub(crate) struct ObservedState<'a> {
    pub(crate) kind: &'static Kind,
    pub(crate) mode: MigrationMode,
    pub(crate) crd: Reading<Option<StoredCrd>>,
    pub(crate) record: Reading<Option<Record>>,
    /// The last retry that an administrator requested.
    pub(crate) retry_request: Option<String>,
    /// Whether a replica of another operator version runs.
    pub(crate) mixed_versions: Reading<bool>,
    /// Read only while a migration is delegated.
    pub(crate) delegated: Reading<DelegatedMigration>,
    pub(crate) cache: &'a ProgressCache,
    pub(crate) now: MonotonicTime,
}

/// The kinds whose objects can be stored in more than one version.
pub(crate) fn multi_version_kinds() -> impl Iterator<Item = &'static Kind> {
    kinds::ALL.into_iter().filter(|kind| kind.has_older_versions())
}

/// An object of a list, at the version that was listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectKey {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
}

impl ObjectKey {
    /// The key of an object with this metadata.
    pub(crate) fn new(metadata: &ObjectMeta) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Self {
            namespace: text(&metadata.namespace),
            name: text(&metadata.name),
            uid: text(&metadata.uid),
            resource_version: text(&metadata.resource_version),
        }
    }

    /// Whether the object was written after this revision. A version that is not a number is not
    /// comparable, and does not count as later.
    pub(crate) fn is_after(&self, threshold: u64) -> bool {
        revision(&self.resource_version).is_some_and(|revision| revision > threshold)
    }

    /// The namespace and name.
    pub(crate) fn namespaced_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// A resource version as a number, only for comparison.
pub(crate) fn revision(resource_version: &str) -> Option<u64> {
    resource_version.parse().ok()
}
