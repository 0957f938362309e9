//! The next migration record: a pure function of the last record and the result of a step.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;

use super::decide::Goal;
use super::record::{Counts, DelegatedRecord, Failure, Phase, Record};
use super::state::{MigrationMode, ObjectKey};
use crate::api::crd::stored::StoredCrd;

/// How many failures are recorded by name; all are counted.
const MAX_FAILURES: usize = 20;

/// The response to a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriteResponse {
    /// The write was accepted; the object now has this resource version.
    Accepted(String),
    NotFound,
    /// The object has changed since it was read, or a webhook claims so.
    Conflict,
    /// The API server or a webhook rejected the write.
    Rejected(String),
    /// The outcome is unknown.
    Unknown(String),
}

/// The outcome for one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ObjectOutcome {
    /// The operator rewrote it.
    Rewritten,
    /// It is stored in the storage version, without a write of the operator.
    Current,
    /// It was deleted.
    Deleted,
    /// It cannot be written.
    Failed(String),
    /// The outcome is unknown.
    Unknown(String),
}

/// The outcome that a response implies; none if the object must be read.
pub(crate) fn classify_response(
    sent: &ObjectKey,
    response: WriteResponse,
) -> Option<ObjectOutcome> {
    match response {
        // The API server skips the write if the stored bytes are identical, which requires the same
        // version.
        WriteResponse::Accepted(version) if version == sent.resource_version => {
            Some(ObjectOutcome::Current)
        }
        WriteResponse::Accepted(_) => Some(ObjectOutcome::Rewritten),
        WriteResponse::NotFound => Some(ObjectOutcome::Deleted),
        WriteResponse::Conflict => None,
        WriteResponse::Rejected(message) => Some(ObjectOutcome::Failed(message)),
        WriteResponse::Unknown(message) => Some(ObjectOutcome::Unknown(message)),
    }
}

/// The outcome after a conflict. A write of another client has stored the object in the storage
/// version; but a webhook may also respond with a conflict, and then nothing was written.
pub(crate) fn classify_conflict(
    sent: &ObjectKey,
    threshold: u64,
    found: Option<&ObjectKey>,
) -> ObjectOutcome {
    match found {
        None => ObjectOutcome::Deleted,
        Some(found) if found.uid != sent.uid || found.is_after(threshold) => ObjectOutcome::Current,
        Some(_) => ObjectOutcome::Failed(
            "write rejected with a conflict, but the object is unchanged".to_owned(),
        ),
    }
}

/// The outcomes of one page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageResult {
    pub(crate) counts: Counts,
    pub(crate) failures: Vec<Failure>,
    /// Objects with an unknown outcome.
    pub(crate) unknown: Vec<Failure>,
}

impl PageResult {
    /// Counts an object.
    pub(crate) fn add(&mut self, object: &ObjectKey, outcome: ObjectOutcome) {
        let add = |counts: Counts| self.counts.plus(Counts { listed: 1, ..counts });
        let failure = |message| Failure { object: object.namespaced_name(), message };
        match outcome {
            ObjectOutcome::Rewritten => {
                self.counts = add(Counts { written: 1, ..Counts::default() });
            }
            ObjectOutcome::Current => self.counts = add(Counts { current: 1, ..Counts::default() }),
            ObjectOutcome::Deleted => self.counts = add(Counts { deleted: 1, ..Counts::default() }),
            ObjectOutcome::Failed(message) => {
                self.counts = add(Counts { failed: 1, ..Counts::default() });
                self.failures.push(failure(message));
            }
            ObjectOutcome::Unknown(message) => self.unknown.push(failure(message)),
        }
    }

    /// Counts unknown outcomes as failures, after the last attempt at the page. The next attempt at
    /// the migration retries them.
    pub(crate) fn fail_unknown(&mut self) {
        let unknown = u64::try_from(self.unknown.len()).unwrap_or(u64::MAX);
        let more = Counts { listed: unknown, failed: unknown, ..Counts::default() };
        self.counts = self.counts.plus(more);
        self.failures.append(&mut self.unknown);
    }

    /// Counts as written what earlier attempts at the page wrote and this one found current.
    pub(crate) const fn add_earlier(&mut self, written: u64) {
        let found = if written < self.counts.current { written } else { self.counts.current };
        self.counts.current = self.counts.current.saturating_sub(found);
        self.counts.written = self.counts.written.saturating_add(found);
    }
}

/// What a migration starts with.
pub(crate) struct StartParams {
    pub(crate) goal: Goal,
    pub(crate) mode: MigrationMode,
    /// The revision of a list that was read just before.
    pub(crate) threshold: u64,
    pub(crate) total: u64,
    pub(crate) now: Timestamp,
}

/// The record of a migration that starts.
pub(crate) fn start(crd: &StoredCrd, previous: Option<&Record>, params: &StartParams) -> Record {
    let StartParams { goal, mode, threshold, total, now } = *params;
    let previous = previous.filter(|previous| previous.uid == crd.uid);
    Record {
        uid: crd.uid.clone(),
        storage: crd.storage.clone(),
        versions: crd.versions.iter().map(|(name, _)| name.clone()).collect(),
        spec_fingerprint: crd.spec_fingerprint.clone(),
        phase: match (goal, mode) {
            (Goal::ManagedFields, _) => Phase::ManagedFields,
            (Goal::StorageVersion, MigrationMode::Kubernetes) => Phase::Delegated,
            (Goal::StorageVersion, MigrationMode::Operator | MigrationMode::Off) => {
                Phase::Rewriting
            }
        },
        threshold,
        token: None,
        attempt: 1,
        total,
        counts: Counts::default(),
        failures: Vec::new(),
        start_time: now,
        completion_time: None,
        served_by_managers: previous
            .map(|previous| previous.served_by_managers.clone())
            .unwrap_or_default(),
        delegated: None,
    }
}

/// The record after a page; `token` continues the list.
pub(crate) fn after_page(
    record: &Record,
    page: PageResult,
    token: Option<String>,
    crd: &StoredCrd,
    now: Timestamp,
) -> Record {
    let mut after = record.clone();
    after.counts = after.counts.plus(page.counts);
    let capacity = MAX_FAILURES.saturating_sub(after.failures.len());
    after.failures.extend(page.failures.into_iter().take(capacity));
    after.token = token;
    if after.token.is_some() {
        return after;
    }
    let phase = match after.phase {
        _ if after.counts.failed > 0 => Phase::Blocked,
        Phase::Rewriting => Phase::Verifying,
        Phase::Verifying => Phase::Verified,
        Phase::ManagedFields => {
            after.served_by_managers = crd.served();
            Phase::Complete
        }
        Phase::Delegated | Phase::Verified | Phase::Blocked | Phase::Complete => after.phase,
    };
    if phase == Phase::Blocked || phase == Phase::Verified {
        after.phase = phase;
        return after;
    }
    enter_phase(&after, phase, crd, now)
}

/// The record with the list at its beginning, because the continue token expired.
pub(crate) fn restart_list(record: &Record) -> Record {
    let counts = Counts { written: record.counts.written, ..Counts::default() };
    Record { token: None, counts, failures: Vec::new(), ..record.clone() }
}

/// The record in another phase.
pub(crate) fn enter_phase(
    record: &Record,
    phase: Phase,
    crd: &StoredCrd,
    now: Timestamp,
) -> Record {
    let mut after = restart_list(record);
    // The field managers were checked while the same versions were served.
    let phase = match phase {
        Phase::ManagedFields if record.served_by_managers == crd.served() => Phase::Complete,
        Phase::Delegated
        | Phase::Rewriting
        | Phase::Verifying
        | Phase::Verified
        | Phase::Blocked
        | Phase::ManagedFields
        | Phase::Complete => phase,
    };
    if record.phase == Phase::Blocked {
        after.attempt = after.attempt.saturating_add(1);
    }
    if phase == Phase::Complete {
        after.counts = record.counts;
        after.completion_time = Some(now);
    }
    after.phase = phase;
    after
}

/// The record after a `StorageVersionMigration` was created, or deleted with an empty uid.
pub(crate) fn with_delegated(record: &Record, uid: &str, failed: bool) -> Record {
    let previous = record.delegated.clone().unwrap_or_default();
    let failed = previous.failed.saturating_add(u32::from(failed));
    Record { delegated: Some(DelegatedRecord { uid: uid.to_owned(), failed }), ..record.clone() }
}

#[cfg(test)]
mod tests;
