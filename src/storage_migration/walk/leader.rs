//! A leader of the model: the same decisions and the same records, with the model's calls in between.

use std::time::Duration;

use jiff::Timestamp;

use super::server::{Death, Found, Listing, Server};
use crate::api::crd::stored::StoredCrd;
use crate::api::kinds;
use crate::api::monotonic::MonotonicTime;
use crate::storage_migration::decide::{Goal, Plan, Step, decide};
use crate::storage_migration::memory::Memory;
use crate::storage_migration::record::{Phase, Record};
use crate::storage_migration::seen::{Errand, Listed, Reading, Seen, Way};
use crate::storage_migration::settle::{
    Beginning, Fate, Paged, begun, entered, fate, fate_in_conflict, rewound, turned,
};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

#[derive(Default)]
pub(super) struct Leader {
    memory: Memory,
    now: MonotonicTime,
}

/// How a step ended.
enum Done {
    Well,
    Late,
    Unwell,
}

struct Acting<'a> {
    server: &'a mut Server,
    definition: StoredCrd,
    record: Option<Record>,
    version: u64,
}

impl Leader {
    /// The next one: the time goes on, and all else is forgotten.
    pub(super) fn succeeded(&self) -> Self {
        Self { memory: Memory::default(), now: self.now.plus(Duration::from_secs(15)) }
    }

    /// One pass; answers whether there was nothing to do.
    pub(super) fn pass(&mut self, server: &mut Server) -> Result<bool, Death> {
        let definition = server.definition()?;
        let (record, version) = server.book()?;
        self.memory.see(&definition, self.now);
        let run = record.clone().filter(|it| it.is_of(&definition));
        if run.as_ref().is_some_and(|it| it.phase == Phase::Held) {
            self.memory.held(self.now);
        }
        let Plan { step, because: _, wake } = decide(&Seen {
            kind: kinds::by_name("EtcdCluster").unwrap(),
            way: Way::Own,
            definition: Reading::Known(Some(definition.clone())),
            record: Reading::Known(record.clone()),
            asked: None,
            others: Reading::Known(false),
            errand: Reading::Known(Errand::Absent),
            memory: &self.memory,
            now: self.now,
        });
        if step == Step::Wait {
            self.now = wake.unwrap_or_else(|| self.now.plus(Duration::from_mins(5)));
            return Ok(wake.is_none());
        }
        let before = if run.is_some() { run } else { record };
        let acting = Acting { server, definition, record: before, version };
        match acting.act(&step, &mut self.memory)? {
            Done::Well => self.memory.well(),
            Done::Late => self.now = self.now.plus(Duration::from_millis(250)),
            Done::Unwell => self.memory.unwell(self.now),
        }
        Ok(false)
    }
}

impl Acting<'_> {
    fn act(mut self, step: &Step, memory: &mut Memory) -> Result<Done, Death> {
        let record = self.record.clone();
        match step {
            Step::Wait => Ok(Done::Well),
            Step::Begin(goal) => self.begin(*goal),
            Step::Page(_) => self.page(&record.unwrap(), memory),
            Step::Note(phase) => {
                memory.resume();
                self.save(entered(&record.unwrap(), *phase, &self.definition.clone(), NOW))
            }
            Step::Trim => {
                if !self.server.trim(&self.definition)? {
                    return Ok(Done::Late);
                }
                self.save(entered(&record.unwrap(), Phase::Owners, &self.definition.clone(), NOW))
            }
            Step::Send | Step::Clear { .. } => panic!("nobody else is asked here"),
        }
    }

    fn save(&mut self, record: Record) -> Result<Done, Death> {
        let saved = self.server.save(record, self.version)?;
        Ok(if saved { Done::Well } else { Done::Late })
    }

    fn begin(&mut self, goal: Goal) -> Result<Done, Death> {
        let Listing::Page { items: _, next: _, revision } = self.server.page(None)? else {
            return Ok(Done::Unwell);
        };
        let total = 5;
        let beginning = Beginning { goal, way: Way::Own, threshold: revision, total, now: NOW };
        self.save(begun(&self.definition.clone(), self.record.clone().as_ref(), &beginning))
    }

    fn page(&mut self, record: &Record, memory: &mut Memory) -> Result<Done, Death> {
        let (items, next) = match self.server.page(record.token.as_deref())? {
            Listing::Page { items, next, revision: _ } => (items, next),
            Listing::Expired(token) if token.is_empty() => return self.save(rewound(record)),
            Listing::Expired(token) => {
                return self.save(Record { token: Some(token), ..record.clone() });
            }
            Listing::Unwell => return Ok(Done::Unwell),
        };
        let mut paged = Paged::default();
        for listed in &items {
            let fate = self.deal(record, listed, memory)?;
            paged.add(listed, fate);
        }
        if !paged.unknown.is_empty() {
            if memory.tried(paged.tally.written) {
                return Ok(Done::Unwell);
            }
            paged.give_up();
        }
        paged.carry(memory.carried);
        let done = self.save(turned(record, paged, next, &self.definition.clone(), NOW))?;
        if matches!(done, Done::Well) {
            memory.turn();
        }
        Ok(done)
    }

    fn deal(
        &mut self,
        record: &Record,
        listed: &Listed,
        memory: &mut Memory,
    ) -> Result<Fate, Death> {
        let is_known = listed.is_after(record.threshold) || memory.is_proven(listed);
        if record.phase == Phase::Owners || is_known {
            return Ok(Fate::Fresh);
        }
        let answer = self.server.touch(listed, record.threshold)?;
        if let Some(fate) = fate(listed, answer) {
            if fate == Fate::Fresh {
                memory.prove(listed);
            }
            return Ok(fate);
        }
        Ok(match self.server.get(listed)? {
            Found::There(found) => fate_in_conflict(listed, record.threshold, found.as_ref()),
            Found::Silence => Fate::Unknown("silence".to_owned()),
        })
    }
}
