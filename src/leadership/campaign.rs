//! The corridor of the election: look, decide, do, tell, and again after a pause.
//! Comes in: the Lease's port, a name, the timing, the wish to stop. Goes out: a watch on
//! `Leadership`, gates and metrics. May touch: `ports`, `telemetry`. It chooses nothing itself.

mod tell;

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use tokio::sync::watch;
use tokio::time;

use super::attempt::{Attempt, Write, farewell, may_hold, prepare};
use super::decide::{Because, Step, decide};
use super::render::Place;
use super::seen::{Memory, Reading, Record, Seen, Timing, Unread};
use super::settle::{Outcome, settle};
use crate::api::leadership::Leadership;
use crate::ports::clock::{self, Clock};
use crate::ports::lease::{Class, LeaseError, LeasePort};
use crate::telemetry::{Gates, Metrics};

/// One replica's part in the election.
pub(crate) struct Campaign {
    pub(crate) port: LeasePort,
    pub(crate) identity: String,
    pub(crate) timing: Timing,
    pub(crate) clock: Clock,
    pub(crate) gates: Gates,
    pub(crate) metrics: Metrics,
    pub(crate) told: watch::Sender<Leadership>,
}

/// What changes from pass to pass.
#[derive(Default)]
struct Run {
    memory: Memory,
    /// What was last said about decisions, reads and writes, so that each is said once.
    decided: Option<Because>,
    unread: Option<Class>,
    unwritten: Option<Class>,
}

impl Campaign {
    /// Competes until `stop` is done, and lets the Lease go then, if it was held. Whoever asks it
    /// to stop has first ended everything in this process that acts as a leader.
    pub(crate) async fn run(self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut run = Run::default();
        loop {
            // A look may be given up at any time; a write, once begun, is waited for, so that we
            // know what to let go.
            let (reading, lease) = tokio::select! {
                () = &mut stop => break,
                looked = self.look(&mut run) => looked,
            };
            let pause = self.pass(&mut run, &reading, lease.as_ref()).await;
            tokio::select! {
                () = &mut stop => break,
                () = time::sleep(pause) => {}
            }
        }
        self.release(&run.memory).await;
    }

    async fn look(&self, run: &mut Run) -> (Reading, Option<Lease>) {
        let Some(limit) = run.memory.call_limit(&self.timing, self.clock.now()) else {
            return (Reading::Unknown(Unread::Unanswered), None);
        };
        match self.port.read(limit).await {
            Ok(Some(lease)) => {
                run.unread = None;
                (Reading::Found(Box::new(Record::of(&lease))), Some(lease))
            }
            Ok(None) => {
                run.unread = None;
                (Reading::Absent, None)
            }
            Err(error) => {
                self.tell_unread(run, &error);
                (unread(error.class()), None)
            }
        }
    }

    /// Decides, does, tells; answers how long to rest.
    async fn pass(&self, run: &mut Run, reading: &Reading, lease: Option<&Lease>) -> Duration {
        let now = self.clock.now();
        let memory = std::mem::take(&mut run.memory).look(&self.identity, reading, now);
        let seen =
            Seen { identity: &self.identity, timing: &self.timing, now, reading, memory: &memory };
        let plan = decide(&seen);
        self.tell_plan(run, plan, reading);
        if let Step::StepDown { .. } = plan.step {
            // Said before anything else is done: whoever acts as a leader must stop first.
            self.tell(Leadership::Following);
        }
        let place = Place { namespace: &self.port.namespace, name: &self.port.name };
        let times = (self.clock.now(), clock::wall());
        let (attempt, write) = prepare(&seen, plan.step, lease, place, times);
        let outcome = self.act(run, &memory, &attempt, write).await;
        self.tell_gates(reading, &outcome);
        let now = self.clock.now();
        run.memory = settle(memory, &attempt, &outcome, &self.timing, now);
        self.tell(run.memory.leadership(now));
        let conflict = outcome == Outcome::Conflict;
        run.memory.pause(&self.timing, conflict, self.clock.now())
    }

    async fn act(
        &self,
        run: &mut Run,
        memory: &Memory,
        attempt: &Attempt,
        write: Option<Write>,
    ) -> Outcome {
        let limit = memory.call_limit(&self.timing, attempt.sent);
        let (Some(write), Some(limit)) = (write, limit) else {
            return Outcome::NothingToWrite;
        };
        let creates = matches!(write, Write::Create(_));
        let written = match write {
            Write::Create(lease) => self.port.create(&lease, limit).await,
            Write::Replace(lease) => self.port.replace(&lease, limit).await,
        };
        match written {
            Ok(lease) => {
                run.unwritten = None;
                Outcome::Written { uid: lease.metadata.uid.unwrap_or_default() }
            }
            Err(error) => {
                self.tell_unwritten(run, &error);
                unwritten(error.class(), creates)
            }
        }
    }

    /// Frees the Lease if it is ours, so that the next replica need not wait for it to expire.
    async fn release(&self, memory: &Memory) {
        self.tell_resigned();
        if !may_hold(memory) {
            return;
        }
        match self.let_go(memory).await {
            Ok(true) => tracing::info!(identity = self.identity, "lease released"),
            Ok(false) => tracing::info!(identity = self.identity, "lease is not ours to release"),
            Err(error) => self.tell_unreleased(&error),
        }
    }

    async fn let_go(&self, memory: &Memory) -> Result<bool, LeaseError> {
        let limit = self.timing.call_limit();
        let lease = self.port.read(limit).await?;
        let times = (self.clock.now(), clock::wall());
        match farewell(memory, &self.identity, lease.as_ref(), times) {
            Some(free) => self.port.replace(&free, limit).await.map(|_| true),
            None => Ok(false),
        }
    }
}

const fn unread(class: Class) -> Reading {
    match class {
        Class::NotFound => Reading::Absent,
        Class::Refused => Reading::Unknown(Unread::Refused),
        Class::Conflict | Class::Unwell | Class::Unreachable => {
            Reading::Unknown(Unread::Unanswered)
        }
    }
}

const fn unwritten(class: Class, creates: bool) -> Outcome {
    match class {
        // What a creation does not find is its namespace: asking again soon will not help.
        Class::NotFound if creates => Outcome::Refused,
        Class::NotFound => Outcome::Gone,
        Class::Conflict => Outcome::Conflict,
        Class::Refused => Outcome::Refused,
        Class::Unwell | Class::Unreachable => Outcome::Unknown,
    }
}
