//! All that one pass knows of one definition and of its objects.
//! Comes in: what was read, and the time. Goes out: `Seen`. May touch: `api`. Pure. What could not be read is unknown.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::memory::Memory;
use super::record::Record;
use crate::api::crd::stored::StoredCrd;
use crate::api::kinds::{self, Kind};
use crate::api::monotonic::MonotonicTime;

/// Who writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// This operator.
    Own,
    /// Kubernetes' own migrator, where it is served.
    Kubernetes,
    /// Nobody.
    Off,
}

/// What was read, or that it could not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reading<T> {
    /// So it is.
    Known(T),
    /// Nobody knows.
    Unknown,
}

/// What became of an errand to Kubernetes' own migrator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Errand {
    /// There is no such migrator in this cluster.
    Unserved,
    /// Nothing was asked.
    Absent,
    /// It was asked by this object.
    There {
        /// Its uid.
        uid: String,
        /// How far it is.
        end: Option<End>,
    },
}

/// How an errand ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Everything was written.
    Succeeded,
    /// Something was not, and it never tries again.
    Failed,
}

/// Everything.
pub(crate) struct Seen<'a> {
    pub(crate) kind: &'static Kind,
    pub(crate) way: Way,
    pub(crate) definition: Reading<Option<StoredCrd>>,
    pub(crate) record: Reading<Option<Record>>,
    /// When an administrator last asked to try again, if ever.
    pub(crate) asked: Option<String>,
    /// Whether a replica of another release runs.
    pub(crate) others: Reading<bool>,
    /// Only looked at while it matters.
    pub(crate) errand: Reading<Errand>,
    pub(crate) memory: &'a Memory,
    pub(crate) now: MonotonicTime,
}

/// The kinds whose objects can be stored in more than one version.
pub(crate) fn converted() -> impl Iterator<Item = &'static Kind> {
    kinds::ALL.into_iter().filter(|kind| kind.has_older_versions())
}

/// An object of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    /// The version that was read.
    pub(crate) version: String,
}

impl Listed {
    /// What a list tells of an object.
    pub(crate) fn read(metadata: &ObjectMeta) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Self {
            namespace: text(&metadata.namespace),
            name: text(&metadata.name),
            uid: text(&metadata.uid),
            version: text(&metadata.resource_version),
        }
    }

    /// Whether it was written after that revision. A version that is no number says nothing.
    pub(crate) fn is_after(&self, threshold: u64) -> bool {
        revision(&self.version).is_some_and(|version| version > threshold)
    }

    /// How people call it.
    pub(crate) fn words(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// A resource version as a number: they are compared, and nothing else is done with them.
pub(crate) fn revision(version: &str) -> Option<u64> {
    version.parse().ok()
}
