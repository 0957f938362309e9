//! What is remembered from pass to pass: who is left alone for how long, and which objects have
//! been spoken to.
//! Comes in: how steps ended. Goes out: who rests, when to wake up. May touch: `api::moment`. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::complain::Says;
use crate::api::monotonic::MonotonicTime;

/// The first rest; each further one is twice as long.
const SHORTEST: Duration = Duration::from_secs(1);
/// A namespace can be on its way out for hours; and a right that an administrator adds is used
/// after this time at the latest.
const LONGEST: Duration = Duration::from_mins(1);
/// Two to the power of this is more than the longest rest.
const MOST_DOUBLINGS: u32 = 6;

/// Who is left alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    /// Everyone: the API server does not answer, or this replica does not lead.
    Everyone,
    /// A namespace, by its name.
    Namespace(String),
    /// An object, by its uid.
    Object(String),
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was done.
    Done,
    /// It was not done, and nothing is wrong: the namespace is going, something has changed since,
    /// or an object is there after all. The watches will tell, or a later try will do.
    NotNow,
    /// The API server understood and said no.
    Refused,
    /// Nobody knows, or nobody was asked. This says something about the API server or about this
    /// replica, and nothing about the namespace.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
struct Rest {
    until: MonotonicTime,
    tries: u32,
}

/// What an object was last made to say, and the versions of it that this is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) says: Says,
    /// The version that the decision was made about.
    pub(crate) before: String,
    /// The version that it has since.
    pub(crate) after: String,
}

/// What is remembered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    rests: BTreeMap<Who, Rest>,
    told: BTreeMap<String, Told>,
}

impl Memory {
    /// Whether someone is to be left alone at `now`.
    pub(crate) fn rests(&self, who: &Who, now: MonotonicTime) -> bool {
        self.rests.get(who).is_some_and(|rest| now < rest.until)
    }

    /// Notes how a step about `who` ended.
    pub(crate) fn settle(&mut self, who: Who, outcome: Outcome, now: MonotonicTime) {
        match outcome {
            Outcome::Done => {
                self.rests.remove(&who);
                self.rests.remove(&Who::Everyone);
            }
            Outcome::NotNow | Outcome::Refused => {
                self.rests.remove(&Who::Everyone);
                self.tire(who, now);
            }
            // One namespace may be all that is wrong, say because a webhook hangs there. It rests
            // longer than everyone does, so that the others have their turn before it.
            Outcome::Unknown => {
                self.tire(who, now);
                self.tire(Who::Everyone, now);
            }
        }
    }

    fn tire(&mut self, who: Who, now: MonotonicTime) {
        let tries = self.rests.get(&who).map_or(0, |rest| rest.tries);
        let pause = SHORTEST.saturating_mul(2_u32.saturating_pow(tries)).min(LONGEST);
        let pause = match who {
            Who::Everyone => pause.checked_div(2).unwrap_or_default(),
            Who::Namespace(_) | Who::Object(_) => pause,
        };
        let tries = tries.saturating_add(1).min(MOST_DOUBLINGS);
        self.rests.insert(who, Rest { until: now.plus(pause), tries });
    }

    /// When the next one has rested enough.
    pub(crate) fn wakes(&self, now: MonotonicTime) -> Option<MonotonicTime> {
        self.rests.values().map(|rest| rest.until).filter(|until| now < *until).min()
    }

    /// What the object with this uid was last made to say.
    pub(crate) fn told(&self, uid: &str) -> Option<&Told> {
        self.told.get(uid)
    }

    /// Notes what an object was made to say.
    pub(crate) fn tell(&mut self, uid: &str, told: Told) {
        self.told.insert(uid.to_owned(), told);
    }

    /// Forgets objects that are gone, and those who have rested for long without being tried again.
    pub(crate) fn forget(&mut self, alive: &BTreeSet<&str>, now: MonotonicTime) {
        self.told.retain(|uid, _| alive.contains(uid.as_str()));
        self.rests.retain(|_, rest| now < rest.until.plus(LONGEST));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> MonotonicTime {
        MonotonicTime::new(Duration::from_secs(seconds))
    }

    fn here() -> Who {
        Who::Namespace("here".to_owned())
    }

    #[test]
    fn each_failure_doubles_the_rest_up_to_a_minute() {
        let mut memory = Memory::default();
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            memory.settle(here(), Outcome::NotNow, at(100));
            assert_eq!(memory.wakes(at(100)), Some(at(100 + seconds)));
            assert!(memory.rests(&here(), at(99 + seconds)));
            assert!(!memory.rests(&here(), at(100 + seconds)));
        }
        memory.settle(here(), Outcome::Done, at(100));
        assert_eq!(memory.wakes(at(100)), None);
    }

    #[test]
    fn silence_is_everyones_trouble_and_an_answer_ends_it() {
        let mut memory = Memory::default();
        memory.settle(here(), Outcome::Unknown, at(0));
        assert!(memory.rests(&Who::Everyone, at(0)));
        let there = Who::Namespace("there".to_owned());
        assert!(!memory.rests(&there, at(0)));
        memory.settle(there, Outcome::Refused, at(0));
        assert!(!memory.rests(&Who::Everyone, at(0)));
    }

    #[test]
    fn one_namespace_that_never_answers_does_not_keep_the_others_from_their_turn() {
        let mut memory = Memory::default();
        let mut now = at(0);
        for _ in 0..20 {
            memory.settle(here(), Outcome::Unknown, now);
            now = memory.wakes(now).unwrap();
            assert!(!memory.rests(&Who::Everyone, now) && memory.rests(&here(), now));
            now = memory.wakes(now).unwrap();
        }
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let mut memory = Memory::default();
        let told = Told { says: Says::Nothing, before: "1".to_owned(), after: "2".to_owned() };
        memory.tell("u1", told.clone());
        memory.tell("u2", told);
        memory.settle(here(), Outcome::NotNow, at(0));
        memory.forget(&BTreeSet::from(["u2"]), at(60));
        assert!(memory.told("u1").is_none() && memory.told("u2").is_some());
        assert_eq!(memory.rests.len(), 1);
        memory.forget(&BTreeSet::new(), at(61));
        assert!(memory.rests.is_empty() && memory.told.is_empty());
    }
}
