//! Processes one page of the list, several objects concurrently.
//!
//! Crash safety: a page that is processed again does not rewrite its objects again, because their
//! revisions are beyond the threshold by then.

use futures::StreamExt;
use futures::stream;
use kube::api::PartialObjectMeta;
use serde_json::{Value, json};

use super::{Executor, StepResult, object_ref};
use crate::clients::error::ErrorClass;
use crate::clients::objects::ObjectError;
use crate::clients::storage_versions::PageError;
use crate::clients::{clock, fault_injection};
use crate::storage_migration::managed_fields::{migrate_managers, uses_unserved_version};
use crate::storage_migration::progress_cache::ProgressCache;
use crate::storage_migration::record::{Phase, Record};
use crate::storage_migration::state::ObjectKey;
use crate::storage_migration::transition::{
    ObjectOutcome, PageResult, WriteResponse, after_page, classify_conflict, classify_response,
    restart_list,
};
use crate::telemetry::error_chain;

/// Objects per page. The progress is recorded after each page.
const PAGE_SIZE: u32 = 250;
/// After so many unknown outcomes and no known one, the API server or the webhook is unreachable.
const MAX_UNKNOWN_OUTCOMES: usize = 8;
/// How often the managed fields of an object are tried while another client keeps writing it.
const MAX_WRITE_ATTEMPTS: u32 = 4;

impl Executor<'_> {
    /// Processes the next page.
    pub(super) async fn process_page(
        &self,
        record: &Record,
        cache: &mut ProgressCache,
    ) -> StepResult {
        let token = record.token.as_deref();
        let list = match self.clients.storage_versions.page(self.kind, PAGE_SIZE, token).await {
            Ok(list) => list,
            // The token continues the list as it is now. Objects that were added to the processed
            // part are stored in the storage version.
            Err(PageError::Expired(Some(token))) => {
                return self.save(Record { token: Some(token), ..record.clone() }).await;
            }
            Err(PageError::Expired(None)) => return self.save(restart_list(record)).await,
            Err(PageError::Call(error)) => return StepResult::Failed(error_chain(&error)),
        };
        let mut page = PageResult::default();
        let known: &ProgressCache = cache;
        let mut remaining = list.items.len();
        let mut outcomes = stream::iter(list.items)
            .map(|object| self.process(record, object, known))
            .buffer_unordered(known.concurrency());
        let mut current = Vec::new();
        while let Some((object, outcome, is_verified)) = outcomes.next().await {
            remaining = remaining.saturating_sub(1);
            page.add(&object, outcome);
            current.extend(is_verified.then_some(object));
            let no_response = page.counts.written.saturating_add(page.counts.failed) == 0;
            if no_response && page.unknown.len() > MAX_UNKNOWN_OUTCOMES && !known.is_last_attempt()
            {
                break;
            }
        }
        drop(outcomes);
        for object in &current {
            cache.record_current(object);
        }
        if let Some(first) = page.unknown.first() {
            let message = format!("{}: {}", first.object, first.message);
            if cache.record_page_failure(page.counts.written) || remaining > 0 {
                return StepResult::Failed(message);
            }
            page.fail_unknown();
        }
        page.add_earlier(cache.written_earlier);
        fault_injection::crash_point("migration", record.phase.name());
        let token = list.metadata.continue_.filter(|token| !token.is_empty());
        let counts = page.counts;
        match self.save(after_page(record, page, token, self.crd, clock::wall())).await {
            StepResult::Done(after, _) => {
                cache.record_page_done();
                StepResult::Done(after, counts)
            }
            other @ (StepResult::Conflict | StepResult::Failed(_)) => other,
        }
    }

    /// Processes one object; also returns whether a write has verified that it is current.
    async fn process(
        &self,
        record: &Record,
        object: PartialObjectMeta,
        cache: &ProgressCache,
    ) -> (ObjectKey, ObjectOutcome, bool) {
        let key = ObjectKey::new(&object.metadata);
        if record.phase == Phase::ManagedFields {
            let outcome = self.rewrite_managed_fields(&key, &object).await;
            return (key, outcome, false);
        }
        if key.is_after(record.threshold) || cache.is_current(&key) {
            return (key, ObjectOutcome::Current, false);
        }
        let outcome = self.rewrite(record, &key).await;
        let is_verified = outcome == ObjectOutcome::Current;
        (key, outcome, is_verified)
    }

    /// Writes an object without changing it.
    async fn rewrite(&self, record: &Record, key: &ObjectKey) -> ObjectOutcome {
        let empty =
            json!({ "metadata": { "uid": key.uid, "resourceVersion": key.resource_version } });
        if let Some(outcome) = classify_response(key, self.write(key, &empty).await) {
            return outcome;
        }
        match self.clients.storage_versions.metadata(object_ref(self.kind, key)).await {
            Ok(found) => {
                let found = found.map(|found| ObjectKey::new(&found.metadata));
                classify_conflict(key, record.threshold, found.as_ref())
            }
            Err(error) => ObjectOutcome::Unknown(error_chain(&error)),
        }
    }

    /// Writes an object. The permissions in a namespace are granted shortly after a leader starts:
    /// a rejection is attributed to the object only if the operator has the permission.
    async fn write(&self, key: &ObjectKey, patch: &Value) -> WriteResponse {
        let object = object_ref(self.kind, key);
        let client = &self.clients.storage_versions;
        let first = write_response(client.merge(object, patch).await);
        let WriteResponse::Rejected(_) = &first else { return first };
        match client.can_write(object).await {
            Ok(true) => write_response(client.merge(object, patch).await),
            Ok(false) => WriteResponse::Unknown(format!(
                "the operator has no permission to write in namespace {}",
                key.namespace
            )),
            Err(error) => WriteResponse::Unknown(error_chain(&error)),
        }
    }

    /// Moves the field managers of an object that use an unserved version to the hub version.
    async fn rewrite_managed_fields(
        &self,
        key: &ObjectKey,
        object: &PartialObjectMeta,
    ) -> ObjectOutcome {
        let served = self.crd.served();
        let entries = object.metadata.managed_fields.iter().flatten();
        let entries: Vec<Value> = entries.map(|entry| json!(entry)).collect();
        if !uses_unserved_version(self.kind, &entries, &served) {
            return ObjectOutcome::Current;
        }
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let object =
                match self.clients.storage_versions.object(object_ref(self.kind, key)).await {
                    Ok(Some(object)) => object,
                    Ok(None) => return ObjectOutcome::Deleted,
                    Err(error) => return ObjectOutcome::Unknown(error_chain(&error)),
                };
            let Some(entries) = migrate_managers(self.kind, &object, &served) else {
                return ObjectOutcome::Current;
            };
            let field = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
            let patch = json!({ "metadata": {
                "uid": field("/metadata/uid"),
                "resourceVersion": field("/metadata/resourceVersion"),
                "managedFields": entries,
            } });
            if let Some(outcome) = classify_response(key, self.write(key, &patch).await) {
                return outcome;
            }
        }
        ObjectOutcome::Failed("another client keeps writing the object".to_owned())
    }
}

fn write_response(response: Result<PartialObjectMeta, ObjectError>) -> WriteResponse {
    match response {
        Ok(written) => {
            WriteResponse::Accepted(written.metadata.resource_version.unwrap_or_default())
        }
        Err(error) => match error.class() {
            ErrorClass::NotFound => WriteResponse::NotFound,
            ErrorClass::Conflict => WriteResponse::Conflict,
            ErrorClass::Rejected => WriteResponse::Rejected(error_chain(&error)),
            ErrorClass::ServerError | ErrorClass::Unreachable => {
                WriteResponse::Unknown(error_chain(&error))
            }
        },
    }
}
