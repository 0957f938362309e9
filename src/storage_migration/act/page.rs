//! Works through one page of the list, several objects at a time.
//! Comes in: the record. Goes out: the next record, or that the page must be tried again. May touch: `clients`. A page
//! that is tried again costs no write of an object that was written: its revision is beyond the threshold by then.

use futures::StreamExt;
use futures::stream;
use kube::api::PartialObjectMeta;
use serde_json::{Value, json};

use super::{Acting, Done, which};
use crate::clients::error::ErrorClass;
use crate::clients::objects::ObjectError;
use crate::clients::storage_versions::PageError;
use crate::clients::{clock, fault_injection};
use crate::storage_migration::memory::Memory;
use crate::storage_migration::ownership::{is_foreign, rewritten};
use crate::storage_migration::record::{Phase, Record};
use crate::storage_migration::seen::Listed;
use crate::storage_migration::settle::{
    Answer, Fate, Paged, fate, fate_in_conflict, rewound, turned,
};
use crate::telemetry::error_chain;

/// So many objects are listed at a time. After each page it is written down how far the run is.
const PAGE: u32 = 250;
/// After so many without an answer, and none with one, nobody seems to be there.
const MOST_UNKNOWN: usize = 8;
/// An object that somebody else keeps writing is tried so often.
const MOST_TRIES: u32 = 4;

impl Acting<'_> {
    /// Works through the next page.
    pub(super) async fn page(&self, record: &Record, memory: &mut Memory) -> Done {
        let list = match self.outlook.port.page(self.kind, PAGE, record.token.as_deref()).await {
            Ok(list) => list,
            // What is left of the list, as it is now. What is new in the part that was looked at is stored as it
            // should be.
            Err(PageError::Expired(Some(token))) => {
                return self.save(Record { token: Some(token), ..record.clone() }).await;
            }
            Err(PageError::Expired(None)) => return self.save(rewound(record)).await,
            Err(PageError::Call(error)) => return Done::Unwell(error_chain(&error)),
        };
        let mut paged = Paged::default();
        let known: &Memory = memory;
        let mut left = list.items.len();
        let mut fates = stream::iter(list.items)
            .map(|object| self.deal(record, object, known))
            .buffer_unordered(known.width());
        let mut proven = Vec::new();
        while let Some((listed, fate, is_proof)) = fates.next().await {
            left = left.saturating_sub(1);
            paged.add(&listed, fate);
            proven.extend(is_proof.then_some(listed));
            let silent = paged.tally.written.saturating_add(paged.tally.failed) == 0;
            if silent && paged.unknown.len() > MOST_UNKNOWN && !known.is_last_try() {
                break;
            }
        }
        drop(fates);
        for listed in &proven {
            memory.prove(listed);
        }
        if let Some(first) = paged.unknown.first() {
            let why = format!("{}: {}", first.object, first.why);
            if memory.tried(paged.tally.written) || left > 0 {
                return Done::Unwell(why);
            }
            paged.give_up();
        }
        paged.carry(memory.carried);
        fault_injection::crash_point("migration", record.phase.name());
        let next = list.metadata.continue_.filter(|token| !token.is_empty());
        let dealt = paged.tally;
        match self.save(turned(record, paged, next, self.definition, clock::wall())).await {
            Done::Well(after, _) => {
                memory.turn();
                Done::Well(after, dealt)
            }
            other @ (Done::Late | Done::Unwell(_)) => other,
        }
    }

    /// Deals with one object; also says whether its stored form is known to be right though it is old.
    async fn deal(
        &self,
        record: &Record,
        object: PartialObjectMeta,
        memory: &Memory,
    ) -> (Listed, Fate, bool) {
        let listed = Listed::read(&object.metadata);
        if record.phase == Phase::Owners {
            let fate = self.rewrite(&listed, &object).await;
            return (listed, fate, false);
        }
        if listed.is_after(record.threshold) || memory.is_proven(&listed) {
            return (listed, Fate::Fresh, false);
        }
        let fate = self.store(record, &listed).await;
        let is_proof = fate == Fate::Fresh;
        (listed, fate, is_proof)
    }

    /// Writes an object without changing it.
    async fn store(&self, record: &Record, listed: &Listed) -> Fate {
        let nothing =
            json!({ "metadata": { "uid": listed.uid, "resourceVersion": listed.version } });
        if let Some(fate) = fate(listed, self.write(listed, &nothing).await) {
            return fate;
        }
        match self.outlook.port.metadata(which(self.kind, listed)).await {
            Ok(found) => {
                let found = found.map(|it| Listed::read(&it.metadata));
                fate_in_conflict(listed, record.threshold, found.as_ref())
            }
            Err(error) => Fate::Unknown(error_chain(&error)),
        }
    }

    /// Writes an object. The rights in a namespace come with the leader, a moment after it begins: only who is refused
    /// although it has them was refused for the object's sake.
    async fn write(&self, listed: &Listed, patch: &Value) -> Answer {
        let which = which(self.kind, listed);
        let first = answer(self.outlook.port.merge(which, patch).await);
        let Answer::Refused(_) = &first else { return first };
        match self.outlook.port.can_write(which).await {
            Ok(true) => answer(self.outlook.port.merge(which, patch).await),
            Ok(false) => {
                let place = &listed.namespace;
                Answer::Unknown(format!("the operator may not write in the namespace {place}"))
            }
            Err(error) => Answer::Unknown(error_chain(&error)),
        }
    }

    /// Makes the owners of an object speak the hub's version, if one of them speaks a version that is not served.
    async fn rewrite(&self, listed: &Listed, object: &PartialObjectMeta) -> Fate {
        let served = self.definition.served();
        let entries = object.metadata.managed_fields.iter().flatten();
        let entries: Vec<Value> = entries.map(|entry| json!(entry)).collect();
        if !is_foreign(self.kind, &entries, &served) {
            return Fate::Fresh;
        }
        for _ in 0..MOST_TRIES {
            let whole = match self.outlook.port.object(which(self.kind, listed)).await {
                Ok(Some(whole)) => whole,
                Ok(None) => return Fate::Gone,
                Err(error) => return Fate::Unknown(error_chain(&error)),
            };
            let Some(owners) = rewritten(self.kind, &whole, &served) else { return Fate::Fresh };
            let text = |pointer: &str| whole.pointer(pointer).cloned().unwrap_or_default();
            let patch = json!({ "metadata": {
                "uid": text("/metadata/uid"),
                "resourceVersion": text("/metadata/resourceVersion"),
                "managedFields": owners,
            } });
            if let Some(fate) = fate(listed, self.write(listed, &patch).await) {
                return fate;
            }
        }
        Fate::Failed("somebody else keeps writing it".to_owned())
    }
}

fn answer(answer: Result<PartialObjectMeta, ObjectError>) -> Answer {
    match answer {
        Ok(taken) => Answer::Taken(taken.metadata.resource_version.unwrap_or_default()),
        Err(error) => match error.class() {
            ErrorClass::NotFound => Answer::NotFound,
            ErrorClass::Conflict => Answer::Conflict,
            ErrorClass::Rejected => Answer::Refused(error_chain(&error)),
            ErrorClass::ServerError | ErrorClass::Unreachable => {
                Answer::Unknown(error_chain(&error))
            }
        },
    }
}
