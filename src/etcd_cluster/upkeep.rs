//! What is written down about the members' files, and when they are looked at next.
//! Comes in: what was written down before, what is asked for, and the time. Goes out: what is written down now. May touch: `api`;
//! pure. A turn is written down before it is taken, so whoever comes after a crash knows who may be silent, and for how long.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::seen::Name;
use super::seen::upkeep::{Occasion, Revision, Round, Upkeep};
use crate::api::etcd_cluster::checked::Defragment;
use crate::api::etcd_cluster::v1::status::{EtcdClusterStatus, UpkeepStatus};
use crate::api::field::Field;
use crate::api::schedule;
use crate::api::texts::Time;

/// The least that anybody waits for a member that rewrites its file.
const SHORTEST: Duration = Duration::from_mins(1);
/// So much of a file is rewritten in a second, on a disk that is slow and busy.
const PER_SECOND: u64 = 4 << 20;
/// The largest file that there is.
const LARGEST: u64 = 8 << 30;
/// So long members have to let go of history that was given up.
const LETTING_GO: Duration = Duration::from_secs(30);
/// The most turns that are written down.
const MOST_TURNS: usize = 16;

/// What was written down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) occasion: Option<Occasion>,
    pub(crate) began: Option<Timestamp>,
    pub(crate) ended: Option<Timestamp>,
    pub(crate) turns: Vec<Name>,
    pub(crate) until: Option<Timestamp>,
    pub(crate) compacted: Option<Revision>,
    pub(crate) next: Option<Timestamp>,
}

impl Told {
    /// What a status says.
    pub(crate) fn read(status: &EtcdClusterStatus) -> Self {
        let UpkeepStatus { occasion, began, ended, turns, until, compacted, next } =
            status.upkeep.clone().or_empty();
        let time = |it: Field<Time>| it.known().and_then(|it| it.as_str().parse().ok());
        let word = occasion.known().map(|it| it.as_str().to_owned()).unwrap_or_default();
        let turns = turns.into_known().unwrap_or_default();
        Self {
            occasion: Occasion::ALL.into_iter().find(|it| it.word() == word),
            began: time(began),
            ended: time(ended),
            turns: turns.into_iter().map(|it| Name(it.as_str().to_owned())).collect(),
            until: time(until),
            compacted: compacted.known().copied().map(Revision),
            next: time(next),
        }
    }

    /// As it stands in the status.
    pub(crate) fn status(&self) -> Field<UpkeepStatus> {
        let Self { occasion, began, ended, turns, until, compacted, next } = self;
        let time = |it: &Option<Timestamp>| it.map(|it| it.to_string().into()).into();
        let turns: Vec<_> = turns.iter().map(|it| it.0.as_str().into()).collect();
        Field::unless_empty(UpkeepStatus {
            occasion: occasion.map(|it| it.word().into()).into(),
            began: time(began),
            ended: time(ended),
            turns: if turns.is_empty() { Field::Absent } else { Field::Known(turns) },
            until: time(until),
            compacted: compacted.map(|it| it.0).into(),
            next: time(next),
        })
    }

    /// The round that goes on.
    pub(crate) fn round(&self) -> Option<Round> {
        let goes_on = self.began.is_some() && self.ended.is_none();
        let occasion = self.occasion.filter(|_| goes_on)?;
        Some(Round { occasion, turns: self.turns.clone() })
    }

    /// Whether something that takes its time was begun, and may not be over.
    pub(crate) fn is_under_way(&self, now: Timestamp) -> bool {
        self.round().is_some() && self.until.is_some_and(|it| now < it)
    }

    /// When files are looked at next. A time that was said before, is one of this schedule and has come stays, so that it is made up
    /// for, once.
    pub(crate) fn next_look(
        &self,
        asked: Option<&Defragment>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let Defragment { schedule, time_zone, reclaim_above: _ } = asked?;
        let plan = schedule::read(schedule.as_deref()?, time_zone.as_deref()).ok()?;
        let is_of_it = |at: &Timestamp| {
            let just_before = at.checked_sub(Duration::from_secs(1)).ok();
            just_before.and_then(|it| plan.next(it).ok()) == Some(*at)
        };
        let is_due = |at: &Timestamp| *at <= now && is_of_it(at);
        self.next.filter(is_due).or_else(|| plan.next(now).ok())
    }

    /// The same, where what was due is being done.
    fn looked(&self, asked: Option<&Defragment>, now: Timestamp) -> Option<Timestamp> {
        Self { next: None, ..self.clone() }.next_look(asked, now)
    }

    /// A round that goes on, or begins now.
    fn in_round(&self, upkeep: &Upkeep, asked: Option<&Defragment>, now: Timestamp) -> Self {
        let next = self.looked(asked, now);
        if self.round().is_some() {
            return Self { next, ..self.clone() };
        }
        let (occasion, compacted) = (upkeep.due, self.compacted);
        Self { occasion, began: Some(now), next, compacted, ..Self::default() }
    }
}

/// What happened.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Note<'a> {
    /// It is a member's turn.
    Turn(&'a Name),
    /// History was given up to a revision.
    Compacted(Revision),
    /// Every file had its turn.
    Ended,
}

/// Who writes it down.
pub(crate) struct Scribe<'a> {
    pub(crate) status: &'a EtcdClusterStatus,
    pub(crate) upkeep: &'a Upkeep,
    pub(crate) asked: Option<&'a Defragment>,
    pub(crate) now: Timestamp,
}

impl Scribe<'_> {
    /// What is written down of it.
    pub(crate) fn record(&self, note: Note<'_>) -> Value {
        let told = match note {
            Note::Turn(name) => self.turn(name),
            Note::Compacted(revision) => self.compacted(revision),
            Note::Ended => Told { ended: Some(self.now), until: None, ..self.round() },
        };
        json!({ "upkeep": told.status() })
    }

    fn round(&self) -> Told {
        Told::read(self.status).in_round(self.upkeep, self.asked, self.now)
    }

    fn turn(&self, name: &Name) -> Told {
        let mut told = self.round();
        told.turns.push(name.clone());
        told.turns.truncate(MOST_TURNS);
        told.until = self.now.checked_add(patience(self.size(name))).ok();
        told
    }

    /// What was rewritten before counts no more.
    fn compacted(&self, revision: Revision) -> Told {
        let until = self.now.checked_add(LETTING_GO).ok();
        let round = self.round();
        Told {
            occasion: Some(Occasion::NoSpace),
            turns: Vec::new(),
            until,
            compacted: Some(revision),
            ..round
        }
    }

    /// The size of a member's file, as it was told last; of the largest that there is, if it was not.
    fn size(&self, name: &Name) -> u64 {
        let members = self.status.members.known().map(Vec::as_slice).unwrap_or_default();
        let named =
            members.iter().find(|it| it.name.known().is_some_and(|it| it.as_str() == name.0));
        let told = named.and_then(|it| it.db_size.known().copied());
        told.and_then(|it| u64::try_from(it).ok()).unwrap_or(LARGEST)
    }
}

/// How long a member may be silent that rewrites a file of this size.
fn patience(bytes: u64) -> Duration {
    SHORTEST.saturating_add(Duration::from_secs(bytes.div_euclid(PER_SECOND)))
}

#[cfg(test)]
mod tests;
