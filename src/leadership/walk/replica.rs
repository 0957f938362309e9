//! A replica of the model world. It does what `campaign` does, in the same order and with the same
//! rules, but its time and its answers are handed to it.
//! Comes in: the world's time, answers. Goes out: calls. May touch: nothing.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;

use super::server::{Answer, Call};
use crate::api::moment::Moment;
use crate::leadership::Timing;
use crate::leadership::decide::{Step, decide, look};
use crate::leadership::render::{self, Holder};
use crate::leadership::seen::{Begin, Memory, Reading, Record, Seen};
use crate::leadership::settle::{Attempt, Outcome, acquired, settle};

enum Doing {
    Resting { until: Moment },
    Looking { limit: Moment },
    Writing { limit: Moment, attempt: Attempt },
}

pub(super) struct Replica {
    pub(super) process: u64,
    identity: String,
    /// How fast its clock runs, in percent.
    rate: u64,
    offset: u64,
    memory: Memory,
    doing: Doing,
    call: u64,
    pub(super) paused_until: u64,
    pub(super) inbox: Vec<(u64, Answer)>,
}

impl Replica {
    pub(super) fn new(process: u64, rate: u64, offset: u64, now: u64) -> Self {
        Self {
            process,
            identity: format!("replica-{process}"),
            rate,
            offset,
            memory: Memory::default(),
            doing: Doing::Resting {
                until: Moment::default(),
            },
            call: 0,
            paused_until: now,
            inbox: Vec::new(),
        }
    }

    pub(super) fn leads_at(&self, now: u64) -> bool {
        let clock = self.clock(now);
        self.memory.leadership(clock).holds_at(clock)
    }

    fn clock(&self, now: u64) -> Moment {
        Moment::new(Duration::from_millis(self.offset + now * self.rate / 100))
    }

    fn wall(&self, now: u64) -> Timestamp {
        let micros = (self.offset + now) * 1000 + self.process;
        Timestamp::from_microsecond(i64::try_from(micros).unwrap()).unwrap()
    }

    /// Goes on as far as it can at `now`; a call that it makes is handed to the world.
    pub(super) fn tick(&mut self, now: u64, timing: &Timing) -> Option<(u64, Call)> {
        if now < self.paused_until {
            return None;
        }
        let clock = self.clock(now);
        let answer = self.answer();
        match self.doing {
            Doing::Resting { until } if clock < until => None,
            Doing::Resting { .. } => {
                let limit = clock.plus(self.memory.call_limit(timing, clock));
                self.doing = Doing::Looking { limit };
                Some(self.calls(Call::Read))
            }
            Doing::Looking { limit } | Doing::Writing { limit, .. }
                if answer.is_none() && clock < limit =>
            {
                None
            }
            Doing::Looking { .. } => self.looked(answer, now, timing),
            Doing::Writing { attempt, .. } => {
                self.wrote(&attempt, answer, clock, timing);
                None
            }
        }
    }

    fn answer(&mut self) -> Option<Answer> {
        let call = self.call;
        let mut answers = self.inbox.drain(..);
        answers
            .find(|(to, _)| *to == call)
            .map(|(_, answer)| answer)
    }

    fn calls(&mut self, call: Call) -> (u64, Call) {
        self.call += 1;
        (self.call, call)
    }

    fn looked(&mut self, got: Option<Answer>, now: u64, timing: &Timing) -> Option<(u64, Call)> {
        let (reading, lease) = match got {
            Some(Answer::Lease(lease)) => {
                (Reading::Found(Box::new(Record::of(&lease))), Some(lease))
            }
            Some(Answer::NotFound) => (Reading::Absent, None),
            Some(Answer::Conflict) | None => (Reading::Unknown, None),
        };
        let clock = self.clock(now);
        self.memory = look(std::mem::take(&mut self.memory), &reading, clock);
        let (identity, memory) = (self.identity.as_str(), &self.memory);
        let plan = decide(
            &Seen {
                identity,
                now: clock,
                reading: &reading,
                memory,
            },
            timing,
        );
        let wall = self.wall(now);
        let acquired = acquired(memory, &plan, wall);
        let attempt = Attempt {
            plan,
            acquired,
            sent: clock,
        };
        let holder = Holder {
            identity,
            acquired,
            duration: timing.lease_duration,
        };
        let call = match (plan.step, lease) {
            (Step::Create, _) => {
                let new = render::created("quorate", "space", &holder, wall);
                Call::Create(Box::new(new))
            }
            (Step::Take(_) | Step::Renew, Some(lease)) => {
                Call::Replace(Box::new(render::held(&lease, &holder, wall)))
            }
            (Step::Take(_) | Step::Renew, None) | (Step::Wait | Step::StepDown, _) => {
                self.settle(&attempt, &Outcome::NothingToWrite, clock, timing);
                return None;
            }
        };
        let limit = clock.plus(memory.call_limit(timing, clock));
        self.doing = Doing::Writing { limit, attempt };
        Some(self.calls(call))
    }

    fn wrote(&mut self, attempt: &Attempt, got: Option<Answer>, now: Moment, timing: &Timing) {
        let outcome = match got {
            Some(Answer::Lease(lease)) => Outcome::Written {
                uid: lease.metadata.uid.unwrap(),
            },
            Some(Answer::Conflict) => Outcome::Refused,
            Some(Answer::NotFound) => Outcome::Gone,
            None => Outcome::Unknown,
        };
        self.settle(attempt, &outcome, now, timing);
    }

    fn settle(&mut self, attempt: &Attempt, outcome: &Outcome, now: Moment, timing: &Timing) {
        let memory = std::mem::take(&mut self.memory);
        self.memory = settle(memory, attempt, outcome, timing, now);
        let pause = self.memory.pause(timing, *outcome == Outcome::Refused, now);
        self.doing = Doing::Resting {
            until: now.plus(pause),
        };
    }

    /// The Lease as it leaves it when told to stop, if it is its own to leave.
    pub(super) fn farewell(&self, now: u64, lease: Option<&Lease>) -> Option<Lease> {
        let (taken, on_probation) = match (&self.memory.term, self.memory.claim) {
            (Some(term), _) => (term.acquired, self.clock(now) < term.leads_from),
            (None, Some(claim)) => (claim.acquired, claim.begin == Begin::OnProbation),
            (None, None) => return None,
        };
        let lease = lease.filter(|lease| Record::of(lease).is_of(&self.identity, taken))?;
        Some(render::released(lease, on_probation, self.wall(now)))
    }
}
