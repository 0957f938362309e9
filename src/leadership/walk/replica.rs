//! A replica of the model world. Its rules and its writes are the real ones; what is made up is
//! the corridor around them: its time and its answers are handed to it.
//! Comes in: the world's time, answers. Goes out: calls. May touch: nothing.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;

use super::server::{Answer, Call};
use crate::api::moment::Moment;
use crate::leadership::Timing;
use crate::leadership::attempt::{Attempt, Write, farewell, may_hold, prepare};
use crate::leadership::decide::decide;
use crate::leadership::render::Place;
use crate::leadership::seen::{Memory, Reading, Record, Seen, Unread};
use crate::leadership::settle::{Outcome, settle};

enum Doing {
    Resting {
        until: Moment,
    },
    Looking {
        limit: Moment,
    },
    Writing {
        limit: Moment,
        attempt: Attempt,
    },
    /// Told to stop: it reads the Lease once more, to let it go if it is its own.
    Leaving {
        limit: Moment,
    },
    Gone,
}

/// What makes one process differ from another.
pub(super) struct Nature {
    pub(super) process: u64,
    pub(super) identity: String,
    pub(super) timing: Timing,
    /// How fast its clock runs, in percent.
    pub(super) rate: u64,
    pub(super) offset: u64,
}

pub(super) struct Replica {
    pub(super) nature: Nature,
    memory: Memory,
    doing: Doing,
    call: u64,
    stopping: bool,
    pub(super) paused_until: u64,
    pub(super) inbox: Vec<(u64, Answer)>,
}

impl Replica {
    pub(super) fn new(nature: Nature, now: u64) -> Self {
        let until = Moment::default();
        Self {
            nature,
            memory: Memory::default(),
            doing: Doing::Resting { until },
            call: 0,
            stopping: false,
            paused_until: now,
            inbox: Vec::new(),
        }
    }

    pub(super) fn leads_at(&self, now: u64) -> bool {
        let clock = self.clock(now);
        let resigned = matches!(self.doing, Doing::Leaving { .. } | Doing::Gone);
        !resigned && self.memory.leadership(clock).holds_at(clock)
    }

    /// Asks it to stop, as a signal does.
    pub(super) fn stop(&mut self) {
        self.stopping = true;
    }

    pub(super) fn is_gone(&self) -> bool {
        matches!(self.doing, Doing::Gone)
    }

    fn clock(&self, now: u64) -> Moment {
        let Nature { rate, offset, .. } = self.nature;
        Moment::new(Duration::from_millis(offset + now * rate / 100))
    }

    fn wall(&self, now: u64) -> Timestamp {
        let micros = (self.nature.offset + now) * 1000 + self.nature.process;
        Timestamp::from_microsecond(i64::try_from(micros).unwrap()).unwrap()
    }

    /// Goes on as far as it can at `now`; a call that it makes is handed to the world.
    pub(super) fn tick(&mut self, now: u64) -> Option<(u64, Call)> {
        if now < self.paused_until {
            return None;
        }
        let clock = self.clock(now);
        let answer = self.answer();
        let silent = |limit| answer.is_none() && clock < limit;
        match &self.doing {
            Doing::Gone => None,
            Doing::Resting { .. } | Doing::Looking { .. } if self.stopping => self.leave(clock),
            Doing::Resting { until } if clock < *until => None,
            Doing::Resting { .. } => self.look(now),
            Doing::Looking { limit } | Doing::Writing { limit, .. } | Doing::Leaving { limit }
                if silent(*limit) =>
            {
                None
            }
            Doing::Looking { .. } => self.looked(answer, now),
            Doing::Writing { attempt, .. } => {
                let attempt = attempt.clone();
                self.wrote(&attempt, answer, clock);
                None
            }
            Doing::Leaving { .. } => self.left(answer, now),
        }
    }

    fn answer(&mut self) -> Option<Answer> {
        let call = self.call;
        let mut answers = self.inbox.drain(..);
        answers.find(|(to, _)| *to == call).map(|(_, answer)| answer)
    }

    fn calls(&mut self, call: Call) -> (u64, Call) {
        self.call += 1;
        (self.call, call)
    }

    fn look(&mut self, now: u64) -> Option<(u64, Call)> {
        let clock = self.clock(now);
        match self.memory.call_limit(&self.nature.timing, clock) {
            None => self.looked(None, now),
            Some(limit) => {
                let limit = clock.plus(limit);
                self.doing = Doing::Looking { limit };
                Some(self.calls(Call::Read))
            }
        }
    }

    fn looked(&mut self, got: Option<Answer>, now: u64) -> Option<(u64, Call)> {
        let (reading, lease) = match got {
            Some(Answer::Lease(lease)) => {
                (Reading::Found(Box::new(Record::of(&lease))), Some(lease))
            }
            Some(Answer::NotFound) => (Reading::Absent, None),
            Some(Answer::Conflict) | None => (Reading::Unknown(Unread::Unanswered), None),
        };
        let (clock, wall) = (self.clock(now), self.wall(now));
        let Nature { identity, timing, .. } = &self.nature;
        self.memory = std::mem::take(&mut self.memory).look(identity, &reading, clock);
        let seen = Seen { identity, timing, now: clock, reading: &reading, memory: &self.memory };
        let plan = decide(&seen);
        let place = Place { namespace: "space", name: "quorate" };
        let lease = lease.as_deref();
        let (attempt, write) = prepare(&seen, plan.step, lease, place, (clock, wall));
        let limit = self.memory.call_limit(timing, clock);
        let (Some(write), Some(limit)) = (write, limit) else {
            self.settle(&attempt, &Outcome::NothingToWrite, clock);
            return None;
        };
        let limit = clock.plus(limit);
        self.doing = Doing::Writing { limit, attempt };
        Some(self.calls(match write {
            Write::Create(lease) => Call::Create(lease),
            Write::Replace(lease) => Call::Replace(lease),
        }))
    }

    fn wrote(&mut self, attempt: &Attempt, got: Option<Answer>, now: Moment) {
        let outcome = match got {
            Some(Answer::Lease(lease)) => Outcome::Written { uid: lease.metadata.uid.unwrap() },
            Some(Answer::Conflict) => Outcome::Conflict,
            Some(Answer::NotFound) => Outcome::Gone,
            None => Outcome::Unknown,
        };
        self.settle(attempt, &outcome, now);
    }

    fn settle(&mut self, attempt: &Attempt, outcome: &Outcome, now: Moment) {
        let timing = &self.nature.timing;
        let memory = std::mem::take(&mut self.memory);
        self.memory = settle(memory, attempt, outcome, timing, now);
        let conflict = *outcome == Outcome::Conflict;
        let until = now.plus(self.memory.pause(timing, conflict, now));
        self.doing = Doing::Resting { until };
    }

    fn leave(&mut self, now: Moment) -> Option<(u64, Call)> {
        if !may_hold(&self.memory) {
            self.doing = Doing::Gone;
            return None;
        }
        let limit = now.plus(self.nature.timing.call_limit());
        self.doing = Doing::Leaving { limit };
        Some(self.calls(Call::Read))
    }

    fn left(&mut self, got: Option<Answer>, now: u64) -> Option<(u64, Call)> {
        self.doing = Doing::Gone;
        let lease: Option<Box<Lease>> = match got {
            Some(Answer::Lease(lease)) => Some(lease),
            Some(Answer::NotFound | Answer::Conflict) | None => None,
        };
        let times = (self.clock(now), self.wall(now));
        let free = farewell(&self.memory, &self.nature.identity, lease.as_deref(), times)?;
        Some(self.calls(Call::Replace(Box::new(free))))
    }
}
