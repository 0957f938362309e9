//! A replica of the model test. Its rules and its writes are the real ones; the election loop
//! around them is simulated: the model passes in the time and the responses.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;

use super::server::{Request, Response};
use crate::api::monotonic::MonotonicTime;
use crate::leader_election::Timing;
use crate::leader_election::decide::decide;
use crate::leader_election::lease::LeaseRef;
use crate::leader_election::state::{
    ElectionState, LeaseRecord, LeaseState, ObservedState, ReadFailure,
};
use crate::leader_election::transition::{Outcome, after_write};
use crate::leader_election::write::{PendingWrite, Write, may_hold_lease, prepare, released_lease};

enum Phase {
    Idle {
        until: MonotonicTime,
    },
    Reading {
        deadline: MonotonicTime,
    },
    Writing {
        deadline: MonotonicTime,
        pending: PendingWrite,
    },
    /// Stopping: reads the Lease once more, and releases it if this process holds it.
    Releasing {
        deadline: MonotonicTime,
    },
    Stopped,
}

/// The properties of one process.
pub(super) struct Process {
    pub(super) number: u64,
    pub(super) identity: String,
    pub(super) timing: Timing,
    /// The speed of its monotonic clock, in percent.
    pub(super) clock_rate: u64,
    pub(super) clock_offset: u64,
}

pub(super) struct Replica {
    pub(super) process: Process,
    election: ElectionState,
    phase: Phase,
    request_id: u64,
    stopping: bool,
    pub(super) paused_until: u64,
    pub(super) inbox: Vec<(u64, Response)>,
}

impl Replica {
    pub(super) fn new(process: Process, now: u64) -> Self {
        let until = MonotonicTime::default();
        Self {
            process,
            election: ElectionState::default(),
            phase: Phase::Idle { until },
            request_id: 0,
            stopping: false,
            paused_until: now,
            inbox: Vec::new(),
        }
    }

    pub(super) fn leads_at(&self, now: u64) -> bool {
        let clock = self.clock(now);
        let stopped = matches!(self.phase, Phase::Releasing { .. } | Phase::Stopped);
        !stopped && self.election.leadership(clock).holds_at(clock)
    }

    /// Starts a shutdown, as a signal does.
    pub(super) fn stop(&mut self) {
        self.stopping = true;
    }

    pub(super) fn is_stopped(&self) -> bool {
        matches!(self.phase, Phase::Stopped)
    }

    fn clock(&self, now: u64) -> MonotonicTime {
        let Process { clock_rate, clock_offset, .. } = self.process;
        MonotonicTime::new(Duration::from_millis(clock_offset + now * clock_rate / 100))
    }

    fn wall(&self, now: u64) -> Timestamp {
        let micros = (self.process.clock_offset + now) * 1000 + self.process.number;
        Timestamp::from_microsecond(i64::try_from(micros).unwrap()).unwrap()
    }

    /// Advances as far as possible at `now`; returns the request to send, if any.
    pub(super) fn tick(&mut self, now: u64) -> Option<(u64, Request)> {
        if now < self.paused_until {
            return None;
        }
        let clock = self.clock(now);
        let response = self.response();
        let waits = |deadline| response.is_none() && clock < deadline;
        match &self.phase {
            Phase::Stopped => None,
            Phase::Idle { .. } | Phase::Reading { .. } if self.stopping => {
                self.start_release(clock)
            }
            Phase::Idle { until } if clock < *until => None,
            Phase::Idle { .. } => self.observe(now),
            Phase::Reading { deadline }
            | Phase::Writing { deadline, .. }
            | Phase::Releasing { deadline }
                if waits(*deadline) =>
            {
                None
            }
            Phase::Reading { .. } => self.observed(response, now),
            Phase::Writing { pending, .. } => {
                let pending = pending.clone();
                self.written(&pending, response, clock);
                None
            }
            Phase::Releasing { .. } => self.release(response, now),
        }
    }

    fn response(&mut self) -> Option<Response> {
        let request_id = self.request_id;
        let mut responses = self.inbox.drain(..);
        responses.find(|(id, _)| *id == request_id).map(|(_, response)| response)
    }

    fn request(&mut self, request: Request) -> (u64, Request) {
        self.request_id += 1;
        (self.request_id, request)
    }

    fn observe(&mut self, now: u64) -> Option<(u64, Request)> {
        let clock = self.clock(now);
        match self.election.call_timeout(&self.process.timing, clock) {
            None => self.observed(None, now),
            Some(timeout) => {
                let deadline = clock.plus(timeout);
                self.phase = Phase::Reading { deadline };
                Some(self.request(Request::Read))
            }
        }
    }

    fn observed(&mut self, response: Option<Response>, now: u64) -> Option<(u64, Request)> {
        let (lease_state, lease) = match response {
            Some(Response::Lease(lease)) => {
                (LeaseState::Found(Box::new(LeaseRecord::from_lease(&lease))), Some(lease))
            }
            Some(Response::NotFound) => (LeaseState::NotFound, None),
            Some(Response::Conflict) | None => (LeaseState::Unknown(ReadFailure::NoResponse), None),
        };
        let (clock, wall) = (self.clock(now), self.wall(now));
        let Process { identity, timing, .. } = &self.process;
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
        let timeout = self.election.call_timeout(timing, clock);
        let (Some(write), Some(timeout)) = (write, timeout) else {
            self.after_write(&pending, &Outcome::NoWrite, clock);
            return None;
        };
        let deadline = clock.plus(timeout);
        self.phase = Phase::Writing { deadline, pending };
        Some(self.request(match write {
            Write::Create(lease) => Request::Create(lease),
            Write::Replace(lease) => Request::Replace(lease),
        }))
    }

    fn written(&mut self, pending: &PendingWrite, response: Option<Response>, now: MonotonicTime) {
        let outcome = match response {
            Some(Response::Lease(lease)) => Outcome::Written { uid: lease.metadata.uid.unwrap() },
            Some(Response::Conflict) => Outcome::Conflict,
            Some(Response::NotFound) => Outcome::NotFound,
            None => Outcome::Unknown,
        };
        self.after_write(pending, &outcome, now);
    }

    fn after_write(&mut self, pending: &PendingWrite, outcome: &Outcome, now: MonotonicTime) {
        let timing = &self.process.timing;
        let election = std::mem::take(&mut self.election);
        self.election = after_write(election, pending, outcome, timing, now);
        let conflict = *outcome == Outcome::Conflict;
        let until = now.plus(self.election.retry_delay(timing, conflict, now));
        self.phase = Phase::Idle { until };
    }

    fn start_release(&mut self, now: MonotonicTime) -> Option<(u64, Request)> {
        if !may_hold_lease(&self.election) {
            self.phase = Phase::Stopped;
            return None;
        }
        let deadline = now.plus(self.process.timing.call_timeout());
        self.phase = Phase::Releasing { deadline };
        Some(self.request(Request::Read))
    }

    fn release(&mut self, response: Option<Response>, now: u64) -> Option<(u64, Request)> {
        self.phase = Phase::Stopped;
        let lease: Option<Box<Lease>> = match response {
            Some(Response::Lease(lease)) => Some(lease),
            Some(Response::NotFound | Response::Conflict) | None => None,
        };
        let times = (self.clock(now), self.wall(now));
        let released =
            released_lease(&self.election, &self.process.identity, lease.as_deref(), times)?;
        Some(self.request(Request::Replace(Box::new(released))))
    }
}
