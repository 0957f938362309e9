//! Reports a migration: log lines, each state once until it changes, and Events on the CRD.

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType, Recorder};

use super::decide::{Plan, Reason};
use super::record::{Phase, Record};
use crate::api::crd::stored::StoredCrd;
use crate::api::kinds::Kind;
use crate::api::names;
use crate::clients::leader_guard::LeaderGuard;
use crate::telemetry::error_chain;

const EVENT_TIMEOUT: Duration = Duration::from_secs(5);
/// The API server rejects longer notes.
const MAX_NOTE_CHARS: usize = 1000;

/// What was logged last for a kind.
#[derive(Default)]
pub(super) struct LastReport {
    reason: Option<Reason>,
    failed: bool,
}

/// An Event on a CRD.
pub(super) struct MigrationEvent {
    is_warning: bool,
    reason: &'static str,
    note: String,
}

impl LastReport {
    /// Logs the reason of a plan, if it has changed.
    pub(super) fn planned(&mut self, kind: &Kind, plan: &Plan, crd: Option<&StoredCrd>) {
        let reason = plan.reason;
        if self.reason.replace(reason) == Some(reason) {
            return;
        }
        let (crd, stored) =
            (kind.crd_name(), crd.map(|crd| crd.stored.join(", ")).unwrap_or_default());
        if let Some(message) = message(reason) {
            tracing::warn!(crd, stored, ?reason, "{message}");
        } else {
            tracing::debug!(crd, stored, ?reason, "storage version migration");
        }
    }

    /// Logs a step that succeeded; returns the Event for the CRD, if any.
    pub(super) fn succeeded(
        &mut self,
        kind: &Kind,
        plan: &Plan,
        before: Option<&Record>,
        after: &Record,
    ) -> Option<MigrationEvent> {
        self.failed = false;
        tracing::info!(
            crd = kind.crd_name(),
            reason = ?plan.reason,
            phase = after.phase.name(),
            total = after.total,
            listed = after.counts.listed,
            written = after.counts.written,
            current = after.counts.current,
            deleted = after.counts.deleted,
            failed = after.counts.failed,
            "migrating stored objects to {}",
            after.storage
        );
        let before = before.map(|record| record.phase);
        (before != Some(after.phase)).then(|| event(before, after)).flatten()
    }

    /// Logs a step that failed, as a warning only the first time.
    pub(super) fn failed(&mut self, kind: &Kind, plan: &Plan, error: &str) {
        let (crd, reason) = (kind.crd_name(), plan.reason);
        if std::mem::replace(&mut self.failed, true) {
            tracing::debug!(crd, ?reason, error, "step still fails");
        } else {
            tracing::warn!(crd, ?reason, error, "step failed; retrying");
        }
    }
}

/// The warning of a plan that waits.
const fn message(reason: Reason) -> Option<&'static str> {
    Some(match reason {
        Reason::UnknownStoredVersion => {
            "storedVersions has a version that this release does not know; no object is migrated"
        }
        Reason::NotEstablished => {
            "waiting for the CRD to be established and to serve the hub version"
        }
        Reason::NoConversionWebhook => {
            "the CRD has several versions and no conversion webhook; apply the CRDs of this release"
        }
        Reason::Paused => "storage version migration is paused by annotation",
        Reason::MixedOperatorVersions => {
            "waiting for operator replicas of another version to terminate"
        }
        Reason::ReadFailed => "failed to read the stored versions; retrying",
        Reason::ObjectsFailed => {
            "some objects could not be written, so old versions stay in storedVersions; retrying. The ConfigMap has the errors"
        }
        Reason::DelegatedFailed => "the StorageVersionMigration failed",
        Reason::MigratorUnavailable => {
            "the StorageVersionMigration API is not served; the operator rewrites the objects"
        }
        Reason::Disabled
        | Reason::CrdNotFound
        | Reason::UpToDate
        | Reason::BackingOff
        | Reason::WaitingForPropagation
        | Reason::OldVersionsStored
        | Reason::OldFieldManagers
        | Reason::InProgress
        | Reason::Retrying
        | Reason::Verified
        | Reason::AlreadyTrimmed
        | Reason::DelegatedInProgress
        | Reason::DelegatedSucceeded => return None,
    })
}

fn event(before: Option<Phase>, after: &Record) -> Option<MigrationEvent> {
    let (storage, total, written) = (&after.storage, after.total, after.counts.written);
    let normal = |reason, note| Some(MigrationEvent { is_warning: false, reason, note });
    match (before, after.phase) {
        (None | Some(Phase::Complete), Phase::Rewriting | Phase::Delegated) => normal(
            "StorageMigrationStarted",
            format!("Migrating {total} objects to storage version {storage}"),
        ),
        (_, Phase::Blocked) => Some(MigrationEvent {
            is_warning: true,
            reason: "StorageMigrationBlocked",
            note: blocked_note(after),
        }),
        (Some(Phase::Verified), Phase::ManagedFields | Phase::Complete) => normal(
            "StorageMigrated",
            format!(
                "All objects are stored in {storage}: {written} were rewritten, and storedVersions is [{storage}]"
            ),
        ),
        (Some(Phase::ManagedFields), Phase::Complete) if written > 0 => normal(
            "ManagedFieldsMigrated",
            format!("Managed fields of {written} objects were migrated to {storage}"),
        ),
        (
            _,
            Phase::Delegated
            | Phase::Rewriting
            | Phase::Verifying
            | Phase::Verified
            | Phase::ManagedFields
            | Phase::Complete,
        ) => None,
    }
}

fn blocked_note(after: &Record) -> String {
    let errors: Vec<String> = after
        .failures
        .iter()
        .take(3)
        .map(|failure| format!("{}: {}", failure.object, failure.message))
        .collect();
    let note = format!(
        "{} objects could not be written, so old versions stay in storedVersions; retrying. {}",
        after.counts.failed,
        errors.join("; ")
    );
    note.chars().take(MAX_NOTE_CHARS).collect()
}

impl MigrationEvent {
    /// Publishes the Event on the CRD of a kind.
    pub(super) async fn publish(
        self,
        recorder: &Recorder,
        leader_guard: &LeaderGuard,
        kind: &Kind,
        uid: &str,
    ) {
        let event = Event {
            type_: if self.is_warning { EventType::Warning } else { EventType::Normal },
            reason: self.reason.to_owned(),
            note: Some(self.note),
            action: "MigrateStorage".to_owned(),
            secondary: None,
        };
        publish(recorder, leader_guard, &event, &crd_reference(kind, uid)).await;
    }
}

/// The CRD of a kind, as Events refer to it.
pub(super) fn crd_reference(kind: &Kind, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("apiextensions.k8s.io/v1".to_owned()),
        kind: Some("CustomResourceDefinition".to_owned()),
        name: Some(kind.crd_name()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    }
}

/// Publishes an Event, if this replica leads. A failure is only logged.
pub(super) async fn publish(
    recorder: &Recorder,
    leader_guard: &LeaderGuard,
    event: &Event,
    about: &ObjectReference,
) {
    if let Ok(Err(error)) = leader_guard.run(EVENT_TIMEOUT, recorder.publish(event, about)).await {
        tracing::debug!(
            error = error_chain(&error),
            manager = names::OPERATOR,
            "failed to publish an Event"
        );
    }
}
