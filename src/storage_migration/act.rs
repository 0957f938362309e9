//! Does what was decided, and never chooses.
//! Comes in: a step, and what was seen. Goes out: the record that follows, already written down, or why not.
//! May touch: `clients`. Each step may be repeated and may be cut off anywhere: an object that was written is known by its
//! revision, and the record is written after what it tells.

mod book;
mod page;

use serde_json::{Value, json};

use super::decide::{Goal, Step};
use super::look::{Looked, Outlook};
use super::memory::Memory;
use super::record::{Phase, Record, Tally};
use super::seen::{Listed, Reading, revision};
use super::settle::{Beginning, begun, entered, with_errand};
use crate::api::crd::stored::StoredCrd;
use crate::api::kinds::Kind;
use crate::clients::error::ErrorClass;
use crate::clients::objects::ObjectError;
use crate::clients::storage_versions::{ObjectRef, PageError};
use crate::clients::{clock, fault_injection};
use crate::telemetry::error_chain;

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// As it should, and so it is written down; and what became of objects.
    Well(Box<Record>, Tally),
    /// Somebody was faster: look again.
    Late,
    /// It was not done, or nobody knows: look again after a while.
    Unwell(String),
}

/// What a step needs.
pub(super) struct Acting<'a> {
    pub(super) outlook: &'a Outlook,
    pub(super) kind: &'static Kind,
    pub(super) definition: &'a StoredCrd,
    pub(super) looked: &'a Looked,
    pub(super) record: Option<&'a Record>,
}

impl Acting<'_> {
    /// Performs a step; nothing if there is nothing to perform.
    pub(super) async fn act(&self, step: &Step, memory: &mut Memory) -> Option<Done> {
        let record = || self.record.cloned();
        Some(match step {
            Step::Wait => return None,
            Step::Begin(goal) => self.begin(*goal).await,
            Step::Page(_) => self.page(&record()?, memory).await,
            Step::Note(phase) => {
                memory.resume();
                self.save(entered(&record()?, *phase, self.definition, clock::wall())).await
            }
            Step::Trim => self.trim(&record()?).await,
            Step::Send => self.send(&record()?).await,
            Step::Clear { uid, failed } => self.clear(&record()?, uid, *failed).await,
        })
    }

    /// The revision of a list that is read now divides what is surely stored as it should be from what may not be.
    async fn begin(&self, goal: Goal) -> Done {
        let list = match self.outlook.port.page(self.kind, 1, None).await {
            Ok(list) => list,
            Err(PageError::Expired(_)) => return Done::Late,
            Err(PageError::Call(error)) => return Done::Unwell(error_chain(&error)),
        };
        let Some(threshold) = list.metadata.resource_version.as_deref().and_then(revision) else {
            return Done::Unwell("the list has no revision that can be compared".to_owned());
        };
        let more = list.metadata.remaining_item_count.unwrap_or_default();
        let listed = u64::try_from(list.items.len()).unwrap_or_default();
        let total = listed.saturating_add(u64::try_from(more).unwrap_or_default());
        if let (Goal::Storage, Some(first)) = (goal, list.items.first())
            && let Err(error) = self.converts(&Listed::read(&first.metadata)).await
        {
            return Done::Unwell(format!("objects cannot be converted: {}", error_chain(&error)));
        }
        let (way, now) = (self.outlook.way, clock::wall());
        let before = match &self.looked.record {
            Reading::Known(before) => before.as_ref(),
            Reading::Unknown => return Done::Late,
        };
        let beginning = Beginning { goal, way, threshold, total, now };
        fault_injection::crash_point("migration", "begun");
        self.save(begun(self.definition, before, &beginning)).await
    }

    /// Tries to write an object through an older version, without writing it: the API server must reach whoever
    /// converts, through the Service and with the authorities that it trusts.
    async fn converts(&self, listed: &Listed) -> Result<(), ObjectError> {
        let older = |(name, served): &&(String, bool)| *served && *name != self.definition.storage;
        let Some((version, _)) = self.definition.versions.iter().rev().find(older) else {
            return Ok(());
        };
        let which = which(self.kind, listed);
        match self.outlook.port.dry_run(which, version, &json!({})).await {
            // It was converted, and is refused or gone for a reason of its own.
            Err(error)
                if matches!(
                    error.class(),
                    ErrorClass::NotFound | ErrorClass::Conflict | ErrorClass::Rejected
                ) =>
            {
                Ok(())
            }
            answer => answer,
        }
    }

    /// The definition is the one that the proof was made under: both were read in one look, and the write lands on that
    /// very version of it.
    async fn trim(&self, record: &Record) -> Done {
        fault_injection::crash_point("migration", "proven");
        if let Err(error) = self.outlook.port.trim(self.definition).await {
            return failed(&error);
        }
        fault_injection::crash_point("migration", "trimmed");
        self.save(entered(record, Phase::Owners, self.definition, clock::wall())).await
    }

    async fn send(&self, record: &Record) -> Done {
        match self.outlook.port.create_migration(self.kind).await {
            Ok(made) => {
                let uid = made.pointer("/metadata/uid").and_then(Value::as_str);
                self.save(with_errand(record, uid.unwrap_or_default(), false)).await
            }
            Err(error) => failed(&error),
        }
    }

    async fn clear(&self, record: &Record, uid: &str, has_failed: bool) -> Done {
        match self.outlook.port.delete_migration(self.kind, uid).await {
            Ok(()) => self.save(with_errand(record, "", has_failed)).await,
            Err(error) => failed(&error),
        }
    }
}

fn which<'a>(kind: &'a Kind, listed: &'a Listed) -> ObjectRef<'a> {
    ObjectRef { kind, namespace: &listed.namespace, name: &listed.name }
}

fn failed(error: &ObjectError) -> Done {
    match error.class() {
        ErrorClass::Conflict | ErrorClass::NotFound => Done::Late,
        ErrorClass::Rejected | ErrorClass::ServerError | ErrorClass::Unreachable => {
            Done::Unwell(error_chain(error))
        }
    }
}
