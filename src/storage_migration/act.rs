//! Executes the step that was decided.
//!
//! Crash safety: each step can be repeated and can be interrupted anywhere. A rewritten object is
//! recognised by its revision, and the record is written after what it records.

mod page;
mod record;

use serde_json::{Value, json};

use super::decide::{Goal, Step};
use super::observe::{MigrationClients, Observation};
use super::progress_cache::ProgressCache;
use super::record::{Counts, Phase, Record};
use super::state::{ObjectKey, Reading, revision};
use super::transition::{StartParams, enter_phase, start, with_delegated};
use crate::api::crd::stored::StoredCrd;
use crate::api::kinds::Kind;
use crate::clients::error::ErrorClass;
use crate::clients::objects::ObjectError;
use crate::clients::storage_versions::{ObjectRef, PageError};
use crate::clients::{clock, fault_injection};
use crate::telemetry::error_chain;

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StepResult {
    /// Done and recorded; the counts are those of this step.
    Done(Box<Record>, Counts),
    /// Another client changed the object first: observe again.
    Conflict,
    /// Not done, or the outcome is unknown: back off.
    Failed(String),
}

/// What a step needs.
pub(super) struct Executor<'a> {
    pub(super) clients: &'a MigrationClients,
    pub(super) kind: &'static Kind,
    pub(super) crd: &'a StoredCrd,
    pub(super) observation: &'a Observation,
    pub(super) record: Option<&'a Record>,
}

impl Executor<'_> {
    /// Executes a step; none if there is nothing to do.
    pub(super) async fn execute(
        &self,
        step: &Step,
        cache: &mut ProgressCache,
    ) -> Option<StepResult> {
        let record = || self.record.cloned();
        Some(match step {
            Step::Wait => return None,
            Step::Start(goal) => self.start(*goal).await,
            Step::ProcessPage(_) => self.process_page(&record()?, cache).await,
            Step::EnterPhase(phase) => {
                cache.clear_blocked();
                self.save(enter_phase(&record()?, *phase, self.crd, clock::wall())).await
            }
            Step::TrimStoredVersions => self.trim(&record()?).await,
            Step::CreateDelegated => self.create_delegated(&record()?).await,
            Step::DeleteDelegated { uid, failed } => {
                self.delete_delegated(&record()?, uid, *failed).await
            }
        })
    }

    /// Objects that are written after the revision of this list are stored in the storage version;
    /// all others may not be.
    async fn start(&self, goal: Goal) -> StepResult {
        let list = match self.clients.storage_versions.page(self.kind, 1, None).await {
            Ok(list) => list,
            Err(PageError::Expired(_)) => return StepResult::Conflict,
            Err(PageError::Call(error)) => return StepResult::Failed(error_chain(&error)),
        };
        let Some(threshold) = list.metadata.resource_version.as_deref().and_then(revision) else {
            return StepResult::Failed("resourceVersion of the list is not a number".to_owned());
        };
        let remaining = list.metadata.remaining_item_count.unwrap_or_default();
        let listed = u64::try_from(list.items.len()).unwrap_or_default();
        let total = listed.saturating_add(u64::try_from(remaining).unwrap_or_default());
        if let (Goal::StorageVersion, Some(first)) = (goal, list.items.first())
            && let Err(error) = self.test_conversion(&ObjectKey::new(&first.metadata)).await
        {
            return StepResult::Failed(format!("conversion failed: {}", error_chain(&error)));
        }
        let (mode, now) = (self.clients.mode, clock::wall());
        let previous = match &self.observation.record {
            Reading::Known(previous) => previous.as_ref(),
            Reading::Unknown => return StepResult::Conflict,
        };
        let params = StartParams { goal, mode, threshold, total, now };
        fault_injection::crash_point("migration", "start");
        self.save(start(self.crd, previous, &params)).await
    }

    /// Dry-runs a write through an older version: the API server must reach the conversion webhook
    /// through its Service, with the CA bundle that it has.
    async fn test_conversion(&self, object: &ObjectKey) -> Result<(), ObjectError> {
        let older = |(name, served): &&(String, bool)| *served && *name != self.crd.storage;
        let Some((version, _)) = self.crd.versions.iter().rev().find(older) else {
            return Ok(());
        };
        let object = object_ref(self.kind, object);
        match self.clients.storage_versions.dry_run(object, version, &json!({})).await {
            // The object was converted; the failure has another cause.
            Err(error)
                if matches!(
                    error.class(),
                    ErrorClass::NotFound | ErrorClass::Conflict | ErrorClass::Rejected
                ) =>
            {
                Ok(())
            }
            response => response,
        }
    }

    /// The objects were verified under this CRD: both were read in one observation, and the write
    /// applies to that resource version only.
    async fn trim(&self, record: &Record) -> StepResult {
        fault_injection::crash_point("migration", "verified");
        if let Err(error) = self.clients.storage_versions.trim(self.crd).await {
            return failure(&error);
        }
        fault_injection::crash_point("migration", "trimmed");
        self.save(enter_phase(record, Phase::ManagedFields, self.crd, clock::wall())).await
    }

    async fn create_delegated(&self, record: &Record) -> StepResult {
        match self.clients.storage_versions.create_migration(self.kind).await {
            Ok(created) => {
                let uid = created.pointer("/metadata/uid").and_then(Value::as_str);
                self.save(with_delegated(record, uid.unwrap_or_default(), false)).await
            }
            Err(error) => failure(&error),
        }
    }

    async fn delete_delegated(&self, record: &Record, uid: &str, has_failed: bool) -> StepResult {
        match self.clients.storage_versions.delete_migration(self.kind, uid).await {
            Ok(()) => self.save(with_delegated(record, "", has_failed)).await,
            Err(error) => failure(&error),
        }
    }
}

fn object_ref<'a>(kind: &'a Kind, object: &'a ObjectKey) -> ObjectRef<'a> {
    ObjectRef { kind, namespace: &object.namespace, name: &object.name }
}

fn failure(error: &ObjectError) -> StepResult {
    match error.class() {
        ErrorClass::Conflict | ErrorClass::NotFound => StepResult::Conflict,
        ErrorClass::Rejected | ErrorClass::ServerError | ErrorClass::Unreachable => {
            StepResult::Failed(error_chain(error))
        }
    }
}
