//! The corridor of the election: look, decide, do, tell, and again after a pause.
//! Comes in: the Lease's port, a name, the timing, the wish to stop. Goes out: a watch on
//! [`Leadership`], gates and metrics. May touch: `ports`, `telemetry`. It chooses nothing itself.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use tokio::sync::watch;
use tokio::time;

use super::Leadership;
use super::decide::{Because, Plan, Step, decide, look};
use super::render::{self, Holder};
use super::seen::{Begin, Memory, Reading, Record, Seen, Timing};
use super::settle::{Attempt, Outcome, acquired, settle};
use crate::ports::clock::{self, Clock};
use crate::ports::lease::{Class, LeaseError, LeasePort};
use crate::telemetry::{Gate, Gates, Metrics, chain};

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
    last: Option<Because>,
}

impl Campaign {
    /// Competes until `stop` is done, and lets the Lease go then, if it was held.
    pub(crate) async fn run(self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut run = Run::default();
        loop {
            // A look may be given up at any time; a write, once begun, is waited for, so that we
            // know what to let go.
            let (reading, lease) = tokio::select! {
                () = &mut stop => break,
                looked = self.look(&run) => looked,
            };
            let pause = self.pass(&mut run, &reading, lease.as_ref()).await;
            tokio::select! {
                () = &mut stop => break,
                () = time::sleep(pause) => {}
            }
        }
        self.release(run.memory).await;
    }

    async fn look(&self, run: &Run) -> (Reading, Option<Lease>) {
        match self
            .port
            .read(run.memory.call_limit(&self.timing, self.clock.now()))
            .await
        {
            Ok(Some(lease)) => (Reading::Found(Box::new(Record::of(&lease))), Some(lease)),
            Ok(None) => (Reading::Absent, None),
            Err(error) if error.class() == Class::NotFound => (Reading::Absent, None),
            Err(error) => {
                self.complain(run, &error);
                (Reading::Unknown, None)
            }
        }
    }

    /// Decides, does, tells; answers how long to rest.
    async fn pass(&self, run: &mut Run, reading: &Reading, lease: Option<&Lease>) -> Duration {
        if *reading != Reading::Unknown {
            self.gates.open(Gate::KubernetesApi);
        }
        let now = self.clock.now();
        let memory = look(std::mem::take(&mut run.memory), reading, now);
        let seen = Seen {
            identity: &self.identity,
            now,
            reading,
            memory: &memory,
        };
        let plan = decide(&seen, &self.timing);
        self.tell_plan(run, plan, reading);
        if plan.step == Step::StepDown {
            // Said before anything else is done: whoever acts as a leader must stop first.
            self.tell(Leadership::Following);
        }
        let (attempt, outcome) = self.act(&memory, plan, lease).await;
        let refused = outcome == Outcome::Refused;
        let now = self.clock.now();
        run.memory = settle(memory, &attempt, &outcome, &self.timing, now);
        self.tell(run.memory.leadership(now));
        run.memory.pause(&self.timing, refused, self.clock.now())
    }

    async fn act(&self, memory: &Memory, plan: Plan, lease: Option<&Lease>) -> (Attempt, Outcome) {
        let wall = clock::wall();
        let acquired = acquired(memory, &plan, wall);
        let holder = Holder {
            identity: &self.identity,
            acquired,
            duration: self.timing.lease_duration,
        };
        let attempt = Attempt {
            plan,
            acquired,
            sent: self.clock.now(),
        };
        let limit = memory.call_limit(&self.timing, attempt.sent);
        let written = match (plan.step, lease) {
            (Step::Create, _) => {
                let new = render::created(&self.port.name, &self.port.namespace, &holder, wall);
                self.port.create(&new, limit).await
            }
            (Step::Take(_) | Step::Renew, Some(lease)) => {
                self.port
                    .replace(&render::held(lease, &holder, wall), limit)
                    .await
            }
            (Step::Take(_) | Step::Renew, None) | (Step::Wait | Step::StepDown, _) => {
                return (attempt, Outcome::NothingToWrite);
            }
        };
        (attempt, self.outcome(written))
    }

    fn outcome(&self, written: Result<Lease, LeaseError>) -> Outcome {
        match written {
            Ok(lease) => Outcome::Written {
                uid: lease.metadata.uid.unwrap_or_default(),
            },
            Err(error) => {
                let error_text = chain(&error);
                tracing::warn!(
                    identity = self.identity,
                    error = error_text,
                    "lease not written"
                );
                match error.class() {
                    Class::NotFound => Outcome::Gone,
                    Class::Conflict | Class::Refused => Outcome::Refused,
                    Class::Unknown => Outcome::Unknown,
                }
            }
        }
    }

    /// Tells everyone who waits for it, and the log if it is a change.
    fn tell(&self, leads: Leadership) {
        let led = self.told.send_replace(leads);
        self.metrics
            .leads(matches!(leads, Leadership::Leading { .. }));
        match (led, leads) {
            (Leadership::Following, Leadership::Leading { .. }) => {
                tracing::info!(identity = self.identity, "this replica leads");
            }
            (Leadership::Leading { .. }, Leadership::Following) => {
                tracing::warn!(identity = self.identity, "this replica no longer leads");
            }
            (Leadership::Following, Leadership::Following)
            | (Leadership::Leading { .. }, Leadership::Leading { .. }) => {}
        }
    }

    /// One line for each change of mind; every pass would be a line every other second.
    fn tell_plan(&self, run: &mut Run, plan: Plan, reading: &Reading) {
        if run.last.replace(plan.because) == Some(plan.because) {
            return;
        }
        let holder = match reading {
            Reading::Found(record) => record.holder.as_deref().unwrap_or_default(),
            Reading::Absent | Reading::Unknown => "",
        };
        let on_probation = matches!(plan.step, Step::Create | Step::Take(Begin::OnProbation));
        tracing::info!(
            identity = self.identity,
            because = plan.because.name(),
            step = ?plan.step,
            holder,
            on_probation,
            "lease decision"
        );
    }

    fn complain(&self, run: &Run, error: &LeaseError) {
        let error = chain(error);
        if run.last == Some(Because::Unreadable) {
            tracing::debug!(
                identity = self.identity,
                error,
                "the API server still does not answer"
            );
        } else {
            tracing::warn!(
                identity = self.identity,
                error,
                retry_seconds = self.timing.retry_period.as_secs_f64(),
                "cannot reach the Kubernetes API; will try again"
            );
        }
    }

    /// Frees the Lease if it is ours, so that the next replica need not wait for it to expire.
    async fn release(&self, memory: Memory) {
        self.tell(Leadership::Following);
        let now = self.clock.now();
        let (taken, on_probation) = match (&memory.term, memory.claim) {
            (Some(term), _) => (term.acquired, now < term.leads_from),
            (None, Some(claim)) => (claim.acquired, claim.begin == Begin::OnProbation),
            (None, None) => return,
        };
        let limit = Memory::default().call_limit(&self.timing, now);
        let freed = match self.port.read(limit).await {
            Ok(Some(lease)) if Record::of(&lease).is_of(&self.identity, taken) => {
                let free = render::released(&lease, on_probation, clock::wall());
                self.port.replace(&free, limit).await.map(|_| true)
            }
            Ok(_) => Ok(false),
            Err(error) => Err(error),
        };
        match freed {
            Ok(true) => tracing::info!(identity = self.identity, "lease released"),
            Ok(false) => tracing::info!(identity = self.identity, "lease is not ours to release"),
            Err(error) => {
                let error = chain(&error);
                tracing::warn!(identity = self.identity, error, "lease left to expire");
            }
        }
    }
}
