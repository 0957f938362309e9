//! A replica of the model test. Its rules and its writes are the real ones; the election loop
//! around them is simulated: the model passes in the time and the responses.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;

use super::server::{Answer, Call};
use crate::api::monotonic::MonotonicTime;
use crate::leader_election::Timing;
use crate::leader_election::decide::decide;
use crate::leader_election::lease::LeaseRef;
use crate::leader_election::state::{
    ElectionState, LeaseRecord, LeaseState, ObservedState, ReadFailure,
};
use crate::leader_election::transition::{Outcome, after_write};
use crate::leader_election::write::{PendingWrite, Write, may_hold_lease, prepare, released_lease};

enum Doing {
    Resting {
        until: MonotonicTime,
    },
    Looking {
        limit: MonotonicTime,
    },
    Writing {
        limit: MonotonicTime,
        pending: PendingWrite,
    },
    /// Stopping: reads the Lease once more, and releases it if this process holds it.
    Leaving {
        limit: MonotonicTime,
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
    election: ElectionState,
    doing: Doing,
    call: u64,
    stopping: bool,
    pub(super) paused_until: u64,
    pub(super) inbox: Vec<(u64, Answer)>,
}

impl Replica {
    pub(super) fn new(nature: Nature, now: u64) -> Self {
        let until = MonotonicTime::default();
        Self {
            nature,
            election: ElectionState::default(),
            doing: Doing::Resting { until },
            call: 0,
            stopping: false,
            paused_until: now,
            inbox: Vec::new(),
        }
    }

    pub(super) fn leads_at(&self, now: u64) -> bool {
        let clock = self.clock(now);
        let stopped = matches!(self.doing, Doing::Leaving { .. } | Doing::Gone);
        !stopped && self.election.leadership(clock).holds_at(clock)
    }

    /// Asks it to stop, as a signal does.
    pub(super) fn stop(&mut self) {
        self.stopping = true;
    }

    pub(super) fn is_gone(&self) -> bool {
        matches!(self.doing, Doing::Gone)
    }

    fn clock(&self, now: u64) -> MonotonicTime {
        let Nature { rate, offset, .. } = self.nature;
        MonotonicTime::new(Duration::from_millis(offset + now * rate / 100))
    }

    fn wall(&self, now: u64) -> Timestamp {
        let micros = (self.nature.offset + now) * 1000 + self.nature.process;
        Timestamp::from_microsecond(i64::try_from(micros).unwrap()).unwrap()
    }

    /// Advances as far as possible at `now`; returns the call to send, if any.
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
            Doing::Resting { .. } => self.observe(now),
            Doing::Looking { limit } | Doing::Writing { limit, .. } | Doing::Leaving { limit }
                if silent(*limit) =>
            {
                None
            }
            Doing::Looking { .. } => self.observed(answer, now),
            Doing::Writing { pending, .. } => {
                let pending = pending.clone();
                self.wrote(&pending, answer, clock);
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

    fn observe(&mut self, now: u64) -> Option<(u64, Call)> {
        let clock = self.clock(now);
        match self.election.call_timeout(&self.nature.timing, clock) {
            None => self.observed(None, now),
            Some(limit) => {
                let limit = clock.plus(limit);
                self.doing = Doing::Looking { limit };
                Some(self.calls(Call::Read))
            }
        }
    }

    fn observed(&mut self, got: Option<Answer>, now: u64) -> Option<(u64, Call)> {
        let (lease_state, lease) = match got {
            Some(Answer::Lease(lease)) => {
                (LeaseState::Found(Box::new(LeaseRecord::from_lease(&lease))), Some(lease))
            }
            Some(Answer::NotFound) => (LeaseState::NotFound, None),
            Some(Answer::Conflict) | None => (LeaseState::Unknown(ReadFailure::NoResponse), None),
        };
        let (clock, wall) = (self.clock(now), self.wall(now));
        let Nature { identity, timing, .. } = &self.nature;
        self.election = std::mem::take(&mut self.election).observe(identity, &lease_state, clock);
        let state = ObservedState {
            identity,
            timing,
            now: clock,
            lease_state: &lease_state,
            election: &self.election,
        };
        let plan = decide(&state);
        let lease_ref = LeaseRef { namespace: "space", name: "quorate" };
        let lease = lease.as_deref();
        let (pending, write) = prepare(&state, plan.step, lease, lease_ref, (clock, wall));
        let limit = self.election.call_timeout(timing, clock);
        let (Some(write), Some(limit)) = (write, limit) else {
            self.after_write(&pending, &Outcome::NoWrite, clock);
            return None;
        };
        let limit = clock.plus(limit);
        self.doing = Doing::Writing { limit, pending };
        Some(self.calls(match write {
            Write::Create(lease) => Call::Create(lease),
            Write::Replace(lease) => Call::Replace(lease),
        }))
    }

    fn wrote(&mut self, pending: &PendingWrite, got: Option<Answer>, now: MonotonicTime) {
        let outcome = match got {
            Some(Answer::Lease(lease)) => Outcome::Written { uid: lease.metadata.uid.unwrap() },
            Some(Answer::Conflict) => Outcome::Conflict,
            Some(Answer::NotFound) => Outcome::NotFound,
            None => Outcome::Unknown,
        };
        self.after_write(pending, &outcome, now);
    }

    fn after_write(&mut self, pending: &PendingWrite, outcome: &Outcome, now: MonotonicTime) {
        let timing = &self.nature.timing;
        let election = std::mem::take(&mut self.election);
        self.election = after_write(election, pending, outcome, timing, now);
        let conflict = *outcome == Outcome::Conflict;
        let until = now.plus(self.election.pause(timing, conflict, now));
        self.doing = Doing::Resting { until };
    }

    fn leave(&mut self, now: MonotonicTime) -> Option<(u64, Call)> {
        if !may_hold_lease(&self.election) {
            self.doing = Doing::Gone;
            return None;
        }
        let limit = now.plus(self.nature.timing.call_timeout());
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
        let free = released_lease(&self.election, &self.nature.identity, lease.as_deref(), times)?;
        Some(self.calls(Call::Replace(Box::new(free))))
    }
}
