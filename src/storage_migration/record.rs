//! What is written down of a run, so that whoever comes next goes on where it stood.
//! Comes in: nothing. Goes out: the record of one definition, as JSON in a ConfigMap. May touch: serde. Pure.
//!
//! A run belongs to a definition as it was: with the same uid, storage version, versions and editors. Everything that
//! was written after `threshold` under such a definition is stored in its storage version.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::api::crd::stored::StoredCrd;

/// One run over the objects of a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    /// The definition's uid.
    pub(crate) uid: String,
    /// The version that is stored.
    pub(crate) storage: String,
    /// Every version of the definition.
    pub(crate) versions: Vec<String>,
    /// Who wrote the definition, and when.
    pub(crate) edits: String,
    /// How far it is.
    pub(crate) phase: Phase,
    /// What was written after this revision needs no write.
    pub(crate) threshold: u64,
    /// Where the list goes on; nothing at its beginning.
    #[serde(rename = "continue", default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    /// How often the list was begun.
    pub(crate) pass: u32,
    /// How many objects there were at the beginning.
    pub(crate) total: u64,
    /// What became of those that were looked at.
    pub(crate) tally: Tally,
    /// Some of those that could not be written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) failures: Vec<Failure>,
    /// When it began.
    pub(crate) started: Timestamp,
    /// When it came to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended: Option<Timestamp>,
    /// The versions that were served when the owners of all objects were last seen to speak no other.
    #[serde(default)]
    pub(crate) owners_speak: Vec<String>,
    /// What was asked of Kubernetes' own migrator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) errand: Option<Errand>,
}

/// What was asked of Kubernetes' own migrator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Errand {
    /// The uid of the object by which it was asked, once there is one.
    #[serde(default)]
    pub(crate) uid: String,
    /// How often it has failed.
    #[serde(default)]
    pub(crate) failed: u32,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// Kubernetes' own migrator writes.
    Delegated,
    /// Objects are written, page by page.
    Writing,
    /// All were written, and a second list is looked through.
    Verifying,
    /// Nothing is stored in another version: the definition may say so.
    Proven,
    /// Some could not be written; they are tried again.
    Held,
    /// Owners that speak a version which is not served are made to speak another.
    Owners,
    /// Nothing is left to do.
    Done,
}

impl Phase {
    /// The word for it, as people read it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Delegated => "Delegated",
            Self::Writing => "Writing",
            Self::Verifying => "Verifying",
            Self::Proven => "Proven",
            Self::Held => "Held",
            Self::Owners => "Owners",
            Self::Done => "Done",
        }
    }
}

/// What became of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Tally {
    /// Looked at in this pass.
    pub(crate) looked: u64,
    /// Stored anew, in the whole run.
    pub(crate) written: u64,
    /// Found to be stored as they should be, in this pass.
    pub(crate) fresh: u64,
    /// Deleted meanwhile, in this pass.
    pub(crate) gone: u64,
    /// Not written, in this pass.
    pub(crate) failed: u64,
}

/// An object that could not be written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// Its namespace and name.
    pub(crate) object: String,
    /// Why not.
    pub(crate) why: String,
}

impl Record {
    /// Whether this is a run over the definition as it is.
    pub(crate) fn is_of(&self, definition: &StoredCrd) -> bool {
        self.uid == definition.uid
            && self.storage == definition.storage
            && self.edits == definition.spec_fingerprint
            && self.versions.iter().eq(definition.versions.iter().map(|(name, _)| name))
    }
}

impl Tally {
    /// Both together.
    pub(crate) const fn plus(self, more: Self) -> Self {
        let Self { looked, written, fresh, gone, failed } = more;
        Self {
            looked: self.looked.saturating_add(looked),
            written: self.written.saturating_add(written),
            fresh: self.fresh.saturating_add(fresh),
            gone: self.gone.saturating_add(gone),
            failed: self.failed.saturating_add(failed),
        }
    }
}
