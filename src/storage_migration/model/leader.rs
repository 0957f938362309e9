//! A leader of the model: the real decisions and records, with calls to the model API server.

use std::time::Duration;

use jiff::Timestamp;

use super::server::{Crash, Listing, Lookup, ModelServer};
use crate::api::crd::stored::StoredCrd;
use crate::api::kinds;
use crate::api::monotonic::MonotonicTime;
use crate::storage_migration::decide::{Goal, Plan, Step, decide};
use crate::storage_migration::progress_cache::ProgressCache;
use crate::storage_migration::record::{Phase, Record};
use crate::storage_migration::state::{
    DelegatedMigration, MigrationMode, ObjectKey, ObservedState, Reading,
};
use crate::storage_migration::transition::{
    ObjectOutcome, PageResult, StartParams, after_page, classify_conflict, classify_response,
    enter_phase, restart_list, start,
};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

#[derive(Default)]
pub(super) struct ModelLeader {
    cache: ProgressCache,
    now: MonotonicTime,
}

/// The result of a step.
enum ModelResult {
    Done,
    Conflict,
    Failed,
}

struct ModelExecutor<'a> {
    server: &'a mut ModelServer,
    crd: StoredCrd,
    record: Option<Record>,
    version: u64,
}

impl ModelLeader {
    /// The next leader: later, and with an empty cache.
    pub(super) fn successor(&self) -> Self {
        Self { cache: ProgressCache::default(), now: self.now.plus(Duration::from_secs(15)) }
    }

    /// One reconciliation; returns whether there was nothing to do.
    pub(super) fn reconcile(&mut self, server: &mut ModelServer) -> Result<bool, Crash> {
        let crd = server.read_crd()?;
        let (record, version) = server.read_record()?;
        self.cache.observe(&crd, self.now);
        let run = record.clone().filter(|record| record.matches(&crd));
        if run.as_ref().is_some_and(|record| record.phase == Phase::Blocked) {
            self.cache.record_blocked(self.now);
        }
        let Plan { step, reason: _, requeue_at } = decide(&ObservedState {
            kind: kinds::by_name("EtcdCluster").unwrap(),
            mode: MigrationMode::Operator,
            crd: Reading::Known(Some(crd.clone())),
            record: Reading::Known(record.clone()),
            retry_request: None,
            mixed_versions: Reading::Known(false),
            delegated: Reading::Known(DelegatedMigration::NotFound),
            cache: &self.cache,
            now: self.now,
        });
        if step == Step::Wait {
            self.now = requeue_at.unwrap_or_else(|| self.now.plus(Duration::from_mins(5)));
            return Ok(requeue_at.is_none());
        }
        let record = if run.is_some() { run } else { record };
        let executor = ModelExecutor { server, crd, record, version };
        match executor.execute(&step, &mut self.cache)? {
            ModelResult::Done => self.cache.record_success(),
            ModelResult::Conflict => self.now = self.now.plus(Duration::from_millis(250)),
            ModelResult::Failed => self.cache.record_failure(self.now),
        }
        Ok(false)
    }
}

impl ModelExecutor<'_> {
    fn execute(mut self, step: &Step, cache: &mut ProgressCache) -> Result<ModelResult, Crash> {
        let record = self.record.clone();
        match step {
            Step::Wait => Ok(ModelResult::Done),
            Step::Start(goal) => self.start(*goal),
            Step::ProcessPage(_) => self.process_page(&record.unwrap(), cache),
            Step::EnterPhase(phase) => {
                cache.clear_blocked();
                self.save(enter_phase(&record.unwrap(), *phase, &self.crd.clone(), NOW))
            }
            Step::TrimStoredVersions => {
                if !self.server.trim(&self.crd)? {
                    return Ok(ModelResult::Conflict);
                }
                let crd = self.crd.clone();
                self.save(enter_phase(&record.unwrap(), Phase::ManagedFields, &crd, NOW))
            }
            Step::CreateDelegated | Step::DeleteDelegated { .. } => {
                panic!("nothing is delegated in this model")
            }
        }
    }

    fn save(&mut self, record: Record) -> Result<ModelResult, Crash> {
        let saved = self.server.save(record, self.version)?;
        Ok(if saved { ModelResult::Done } else { ModelResult::Conflict })
    }

    fn start(&mut self, goal: Goal) -> Result<ModelResult, Crash> {
        let Listing::Page { items: _, next: _, revision } = self.server.page(None)? else {
            return Ok(ModelResult::Failed);
        };
        let mode = MigrationMode::Operator;
        let params = StartParams { goal, mode, threshold: revision, total: 5, now: NOW };
        self.save(start(&self.crd.clone(), self.record.clone().as_ref(), &params))
    }

    fn process_page(
        &mut self,
        record: &Record,
        cache: &mut ProgressCache,
    ) -> Result<ModelResult, Crash> {
        let (items, next) = match self.server.page(record.token.as_deref())? {
            Listing::Page { items, next, revision: _ } => (items, next),
            Listing::Expired(token) if token.is_empty() => return self.save(restart_list(record)),
            Listing::Expired(token) => {
                return self.save(Record { token: Some(token), ..record.clone() });
            }
            Listing::Failed => return Ok(ModelResult::Failed),
        };
        let mut page = PageResult::default();
        for object in &items {
            let outcome = self.process(record, object, cache)?;
            page.add(object, outcome);
        }
        if !page.unknown.is_empty() {
            if cache.record_page_failure(page.counts.written) {
                return Ok(ModelResult::Failed);
            }
            page.fail_unknown();
        }
        page.add_earlier(cache.written_earlier);
        let result = self.save(after_page(record, page, next, &self.crd.clone(), NOW))?;
        if matches!(result, ModelResult::Done) {
            cache.record_page_done();
        }
        Ok(result)
    }

    fn process(
        &mut self,
        record: &Record,
        object: &ObjectKey,
        cache: &mut ProgressCache,
    ) -> Result<ObjectOutcome, Crash> {
        let is_current = object.is_after(record.threshold) || cache.is_current(object);
        if record.phase == Phase::ManagedFields || is_current {
            return Ok(ObjectOutcome::Current);
        }
        let response = self.server.rewrite(object, record.threshold)?;
        if let Some(outcome) = classify_response(object, response) {
            if outcome == ObjectOutcome::Current {
                cache.record_current(object);
            }
            return Ok(outcome);
        }
        Ok(match self.server.get(object)? {
            Lookup::Response(found) => classify_conflict(object, record.threshold, found.as_ref()),
            Lookup::NoResponse => ObjectOutcome::Unknown("timeout".to_owned()),
        })
    }
}
