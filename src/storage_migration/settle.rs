//! What is known after a step, as the record to be written down.
//! Comes in: a record, and how a step ended. Goes out: the next record. May touch: nothing; pure.
//! Each record follows from the one before and from how the step ended, so that whoever comes next goes on from it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::Timestamp;

use super::decide::Goal;
use super::record::{Errand, Failure, Phase, Record, Tally};
use super::seen::{Listed, Way};
use crate::api::crd::stored::StoredCrd;

/// So many failures are written down by name; all are counted.
const MOST_FAILURES: usize = 20;

/// How a write was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It was taken; the object has this version now.
    Taken(String),
    /// There is no such object.
    NotFound,
    /// The object is another by now, or somebody says so.
    Conflict,
    /// It was understood and refused.
    Refused(String),
    /// Nobody knows.
    Unknown(String),
}

/// What became of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was stored anew.
    Written,
    /// It is stored as it should be, without a write of ours.
    Fresh,
    /// It was deleted.
    Gone,
    /// It cannot be written.
    Failed(String),
    /// Nobody knows.
    Unknown(String),
}

/// What an answer means; nothing, if the object must be looked at.
pub(crate) fn fate(sent: &Listed, answer: Answer) -> Option<Fate> {
    match answer {
        // The store writes nothing if the bytes are the same, and they are only in the same version.
        Answer::Taken(version) if version == sent.version => Some(Fate::Fresh),
        Answer::Taken(_) => Some(Fate::Written),
        Answer::NotFound => Some(Fate::Gone),
        Answer::Conflict => None,
        Answer::Refused(why) => Some(Fate::Failed(why)),
        Answer::Unknown(why) => Some(Fate::Unknown(why)),
    }
}

/// What a conflict means. Whoever wrote the object meanwhile stored it as it should be; but a webhook may answer with a
/// conflict, too, and then nobody has.
pub(crate) fn fate_in_conflict(sent: &Listed, threshold: u64, found: Option<&Listed>) -> Fate {
    match found {
        None => Fate::Gone,
        Some(found) if found.uid != sent.uid || found.is_after(threshold) => Fate::Fresh,
        Some(_) => {
            Fate::Failed("a conflict was answered, and the object has not changed".to_owned())
        }
    }
}

/// What became of the objects of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Paged {
    pub(crate) tally: Tally,
    pub(crate) failures: Vec<Failure>,
    /// Those of which nobody knows.
    pub(crate) unknown: Vec<Failure>,
}

impl Paged {
    /// Counts an object.
    pub(crate) fn add(&mut self, listed: &Listed, fate: Fate) {
        let one = |tally: Tally| self.tally.plus(Tally { looked: 1, ..tally });
        let failure = |why| Failure { object: listed.words(), why };
        match fate {
            Fate::Written => self.tally = one(Tally { written: 1, ..Tally::default() }),
            Fate::Fresh => self.tally = one(Tally { fresh: 1, ..Tally::default() }),
            Fate::Gone => self.tally = one(Tally { gone: 1, ..Tally::default() }),
            Fate::Failed(why) => {
                self.tally = one(Tally { failed: 1, ..Tally::default() });
                self.failures.push(failure(why));
            }
            Fate::Unknown(why) => self.unknown.push(failure(why)),
        }
    }

    /// Takes those of which nobody knows for failures: they were asked about often enough, and another pass will.
    pub(crate) fn give_up(&mut self) {
        let given_up = u64::try_from(self.unknown.len()).unwrap_or(u64::MAX);
        let more = Tally { looked: given_up, failed: given_up, ..Tally::default() };
        self.tally = self.tally.plus(more);
        self.failures.append(&mut self.unknown);
    }

    /// Counts as written what earlier tries of the same page have written, and this one found fresh.
    pub(crate) const fn carry(&mut self, written: u64) {
        let found = if written < self.tally.fresh { written } else { self.tally.fresh };
        self.tally.fresh = self.tally.fresh.saturating_sub(found);
        self.tally.written = self.tally.written.saturating_add(found);
    }
}

/// What a run begins with.
pub(crate) struct Beginning {
    pub(crate) goal: Goal,
    pub(crate) way: Way,
    /// The revision of a list that was read just now.
    pub(crate) threshold: u64,
    pub(crate) total: u64,
    pub(crate) now: Timestamp,
}

/// A run begins.
pub(crate) fn begun(
    definition: &StoredCrd,
    before: Option<&Record>,
    beginning: &Beginning,
) -> Record {
    let Beginning { goal, way, threshold, total, now } = *beginning;
    let before = before.filter(|before| before.uid == definition.uid);
    Record {
        uid: definition.uid.clone(),
        storage: definition.storage.clone(),
        versions: definition.versions.iter().map(|(name, _)| name.clone()).collect(),
        edits: definition.spec_fingerprint.clone(),
        phase: match (goal, way) {
            (Goal::Owners, _) => Phase::Owners,
            (Goal::Storage, Way::Kubernetes) => Phase::Delegated,
            (Goal::Storage, Way::Own | Way::Off) => Phase::Writing,
        },
        threshold,
        token: None,
        pass: 1,
        total,
        tally: Tally::default(),
        failures: Vec::new(),
        started: now,
        ended: None,
        owners_speak: before.map(|before| before.owners_speak.clone()).unwrap_or_default(),
        errand: None,
    }
}

/// A page is over; `next` is where the list goes on.
pub(crate) fn turned(
    record: &Record,
    paged: Paged,
    next: Option<String>,
    definition: &StoredCrd,
    now: Timestamp,
) -> Record {
    let mut after = record.clone();
    after.tally = after.tally.plus(paged.tally);
    let room = MOST_FAILURES.saturating_sub(after.failures.len());
    after.failures.extend(paged.failures.into_iter().take(room));
    after.token = next;
    if after.token.is_some() {
        return after;
    }
    let phase = match after.phase {
        _ if after.tally.failed > 0 => Phase::Held,
        Phase::Writing => Phase::Verifying,
        Phase::Verifying => Phase::Proven,
        Phase::Owners => {
            after.owners_speak = definition.served();
            Phase::Done
        }
        Phase::Delegated | Phase::Proven | Phase::Held | Phase::Done => after.phase,
    };
    if phase == Phase::Held || phase == Phase::Proven {
        after.phase = phase;
        return after;
    }
    entered(&after, phase, definition, now)
}

/// A list must be begun anew, because nobody knows any more where it stood.
pub(crate) fn rewound(record: &Record) -> Record {
    let tally = Tally { written: record.tally.written, ..Tally::default() };
    Record { token: None, tally, failures: Vec::new(), ..record.clone() }
}

/// Another phase begins.
pub(crate) fn entered(
    record: &Record,
    phase: Phase,
    definition: &StoredCrd,
    now: Timestamp,
) -> Record {
    let mut after = rewound(record);
    // Whoever speaks was looked at while the same versions were served.
    let phase = match phase {
        Phase::Owners if record.owners_speak == definition.served() => Phase::Done,
        Phase::Delegated
        | Phase::Writing
        | Phase::Verifying
        | Phase::Proven
        | Phase::Held
        | Phase::Owners
        | Phase::Done => phase,
    };
    if record.phase == Phase::Held {
        after.pass = after.pass.saturating_add(1);
    }
    if phase == Phase::Done {
        after.tally = record.tally;
        after.ended = Some(now);
    }
    after.phase = phase;
    after
}

/// Kubernetes' own migrator was asked, or it was taken back.
pub(crate) fn with_errand(record: &Record, uid: &str, failed: bool) -> Record {
    let before = record.errand.clone().unwrap_or_default();
    let failed = before.failed.saturating_add(u32::from(failed));
    Record { errand: Some(Errand { uid: uid.to_owned(), failed }), ..record.clone() }
}

#[cfg(test)]
mod tests;
