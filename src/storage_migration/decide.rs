//! Decides the next step of the migration of one CRD: ordered rules, the first that applies wins.
//!
//! Guarantees: `storedVersions` is trimmed only if all objects were verified under the CRD as it is
//! now; no object is written before every API server stores the same version and the conversion
//! webhook works.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use super::record::{Phase, Record};
use super::state::{DelegatedMigration, MigrationMode, ObservedState, Outcome, Reading};
use crate::api::crd::stored::StoredCrd;
use crate::api::monotonic::MonotonicTime;

/// Each API server learns of a changed CRD with its own delay, and stores the old version until
/// then.
pub(crate) const PROPAGATION_DELAY: Duration = Duration::from_secs(10);
/// How often an obstacle is checked again.
const RECHECK_INTERVAL: Duration = Duration::from_secs(10);
const DELEGATED_POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The delay before failed objects are retried; it doubles with each attempt.
const MIN_RETRY_DELAY: Duration = Duration::from_secs(30);
const MAX_RETRY_DELAY: Duration = Duration::from_mins(10);
/// After so many failed delegated migrations the operator rewrites the objects itself.
const MAX_DELEGATED_FAILURES: u32 = 3;

/// One step and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) step: Step,
    pub(crate) reason: Reason,
    /// When to reconcile again without a change; none if nothing is waited for.
    pub(crate) requeue_at: Option<MonotonicTime>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing.
    Wait,
    /// Read the current revision, test the conversion webhook, and record the start.
    Start(Goal),
    /// Process the next page of the list.
    ProcessPage(Phase),
    /// Record another phase.
    EnterPhase(Phase),
    /// Remove the old versions from `storedVersions`.
    TrimStoredVersions,
    /// Create a `StorageVersionMigration`.
    CreateDelegated,
    /// Delete the `StorageVersionMigration`, and count it if it has failed.
    DeleteDelegated { uid: String, failed: bool },
}

/// The goal of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Every object is stored in the storage version.
    StorageVersion,
    /// Every field manager uses a served version.
    ManagedFields,
}

/// Which rule decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    ReadFailed,
    Disabled,
    CrdNotFound,
    UpToDate,
    UnknownStoredVersion,
    NotEstablished,
    NoConversionWebhook,
    Paused,
    MixedOperatorVersions,
    BackingOff,
    WaitingForPropagation,
    OldVersionsStored,
    OldFieldManagers,
    InProgress,
    ObjectsFailed,
    Retrying,
    Verified,
    AlreadyTrimmed,
    DelegatedInProgress,
    DelegatedSucceeded,
    DelegatedFailed,
    MigratorUnavailable,
}

fn plan(step: Step, reason: Reason) -> Plan {
    Plan { step, reason, requeue_at: None }
}

fn wait(reason: Reason, requeue_at: Option<MonotonicTime>) -> Plan {
    Plan { step: Step::Wait, reason, requeue_at }
}

/// The next step.
pub(crate) fn decide(state: &ObservedState<'_>) -> Plan {
    let recheck = Some(state.now.plus(RECHECK_INTERVAL));
    if state.mode == MigrationMode::Off {
        return wait(Reason::Disabled, None);
    }
    let (Reading::Known(crd), Reading::Known(record)) = (&state.crd, &state.record) else {
        return wait(Reason::ReadFailed, recheck);
    };
    let Some(crd) = crd else { return wait(Reason::CrdNotFound, None) };
    let run = record.as_ref().filter(|record| record.matches(crd));
    if !needs_migration(crd, record.as_ref()) {
        return match run {
            // Another client trimmed `storedVersions`.
            Some(run) if run.phase != Phase::Complete => {
                plan(Step::EnterPhase(Phase::Complete), Reason::AlreadyTrimmed)
            }
            Some(_) | None => wait(Reason::UpToDate, None),
        };
    }
    if let Some(reason) = obstacle(state, crd) {
        return wait(reason, recheck);
    }
    if let Some(retry) = state.cache.next_retry(state.now) {
        return wait(Reason::BackingOff, Some(retry));
    }
    match run {
        Some(run) if run.phase != Phase::Complete => resume(state, crd, run),
        Some(_) | None => start(state, crd),
    }
}

/// Whether there is anything to migrate.
pub(crate) fn needs_migration(crd: &StoredCrd, record: Option<&Record>) -> bool {
    crd.is_stale() || has_old_field_managers(crd, record)
}

/// Whether a field manager may use an unserved version. Objects are checked once for each set of
/// served versions.
fn has_old_field_managers(crd: &StoredCrd, record: Option<&Record>) -> bool {
    let known = record.filter(|record| record.uid == crd.uid);
    known.is_none_or(|record| record.served_by_managers != crd.served())
}

/// What prevents a migration from starting or continuing.
fn obstacle(state: &ObservedState<'_>, crd: &StoredCrd) -> Option<Reason> {
    let hub = state.kind.hub().name;
    let serves_hub = crd.versions.iter().any(|(name, served)| name == hub && *served);
    if !crd.unknown_versions(state.kind).is_empty() {
        return Some(Reason::UnknownStoredVersion);
    }
    if !crd.established || !serves_hub {
        return Some(Reason::NotEstablished);
    }
    if crd.versions.len() > 1 && !crd.converted {
        return Some(Reason::NoConversionWebhook);
    }
    if crd.paused {
        return Some(Reason::Paused);
    }
    match state.mixed_versions {
        Reading::Known(false) => None,
        Reading::Known(true) => Some(Reason::MixedOperatorVersions),
        Reading::Unknown => Some(Reason::ReadFailed),
    }
}

fn start(state: &ObservedState<'_>, crd: &StoredCrd) -> Plan {
    if !crd.is_stale() {
        return plan(Step::Start(Goal::ManagedFields), Reason::OldFieldManagers);
    }
    let propagated = state.cache.crd_since().unwrap_or(state.now).plus(PROPAGATION_DELAY);
    if propagated > state.now {
        return wait(Reason::WaitingForPropagation, Some(propagated));
    }
    plan(Step::Start(Goal::StorageVersion), Reason::OldVersionsStored)
}

fn resume(state: &ObservedState<'_>, crd: &StoredCrd, run: &Record) -> Plan {
    match run.phase {
        Phase::Delegated => follow_delegated(state, run),
        Phase::Rewriting | Phase::Verifying | Phase::Verified if !crd.is_stale() => {
            plan(Step::EnterPhase(Phase::ManagedFields), Reason::AlreadyTrimmed)
        }
        Phase::Rewriting | Phase::Verifying | Phase::ManagedFields => {
            plan(Step::ProcessPage(run.phase), Reason::InProgress)
        }
        Phase::Verified => plan(Step::TrimStoredVersions, Reason::Verified),
        Phase::Blocked => {
            let since = state.cache.blocked_since().unwrap_or(state.now);
            let retry = since.plus(retry_delay(run.attempt));
            if retry > state.now && !state.cache.is_new_retry(state.retry_request.as_ref()) {
                let requeue_at = retry.min(state.now.plus(RECHECK_INTERVAL));
                return wait(Reason::ObjectsFailed, Some(requeue_at));
            }
            let phase = if crd.is_stale() { Phase::Rewriting } else { Phase::ManagedFields };
            plan(Step::EnterPhase(phase), Reason::Retrying)
        }
        Phase::Complete => wait(Reason::UpToDate, None),
    }
}

fn follow_delegated(state: &ObservedState<'_>, run: &Record) -> Plan {
    let recorded = run.delegated.clone().unwrap_or_default();
    let Reading::Known(delegated) = &state.delegated else {
        return wait(Reason::ReadFailed, Some(state.now.plus(RECHECK_INTERVAL)));
    };
    let rewrite = Step::EnterPhase(Phase::Rewriting);
    match delegated {
        _ if state.mode != MigrationMode::Kubernetes
            || recorded.failed >= MAX_DELEGATED_FAILURES =>
        {
            plan(rewrite, Reason::DelegatedFailed)
        }
        DelegatedMigration::NotServed => plan(rewrite, Reason::MigratorUnavailable),
        DelegatedMigration::NotFound => plan(Step::CreateDelegated, Reason::OldVersionsStored),
        DelegatedMigration::Found { uid, outcome } if *uid == recorded.uid => match outcome {
            None => {
                let requeue_at = state.now.plus(DELEGATED_POLL_INTERVAL);
                wait(Reason::DelegatedInProgress, Some(requeue_at))
            }
            // Success is reported even if `storedVersions` is unchanged, and regardless of what
            // other clients wrote in the meantime: the objects are verified.
            Some(Outcome::Succeeded) => {
                plan(Step::EnterPhase(Phase::Verifying), Reason::DelegatedSucceeded)
            }
            Some(Outcome::Failed) => {
                let step = Step::DeleteDelegated { uid: uid.clone(), failed: true };
                plan(step, Reason::DelegatedFailed)
            }
        },
        // An object of an earlier migration, whose outcome does not apply to this one.
        DelegatedMigration::Found { uid, outcome: _ } => {
            let step = Step::DeleteDelegated { uid: uid.clone(), failed: false };
            plan(step, Reason::OldVersionsStored)
        }
    }
}

fn retry_delay(attempt: u32) -> Duration {
    let factor = 2_u32.saturating_pow(attempt.saturating_sub(1));
    MIN_RETRY_DELAY.saturating_mul(factor).min(MAX_RETRY_DELAY)
}

#[cfg(test)]
mod tests;
