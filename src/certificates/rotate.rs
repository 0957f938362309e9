//! The corridor of the leader: renews the authorities and puts their bundle where it is trusted.
//! Comes in: the outlook, the times, the mandate, the wish to stop. Goes out: one write at most in
//! each pass, and none by a replica that does not lead. May touch: `ports`, `telemetry`. It decides
//! nothing; `decide` does. After each write it looks again.

mod tell;

use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use tokio::time;

use super::carry_out::{Outcome, carry_out, settle};
use super::decide::{Plan, Step, decide, rest};
use super::lifetimes::Lifetimes;
use super::look::{self, Looked, Outlook};
use super::mint;
use super::render;
use super::ring::Ring;
use super::seen::{Memory, Reading, Seen, Sight};
use crate::ports::call::{CallError, Class};
use crate::ports::changes::{self, Change, Changes};
use crate::ports::clock::{self, Clock};
use crate::ports::mandate::{Mandate, Unled};
use crate::ports::trust::Injection;
use crate::telemetry::Metrics;

/// How often a replica that does not lead asks whether it does.
const FOLLOWER_PAUSE: Duration = Duration::from_secs(1);
/// The pause after a write, and after one that came too late.
const SOON: Duration = Duration::from_millis(250);

/// The leader's care for the authorities. It runs on every replica, and acts on the one that leads.
pub(crate) struct Rotate {
    pub(crate) outlook: Outlook,
    pub(crate) lifetimes: Lifetimes,
    pub(crate) clock: Clock,
    pub(crate) mandate: Mandate,
    pub(crate) metrics: Metrics,
}

/// What changes from pass to pass. A term begins without any of it.
#[derive(Default)]
struct Run {
    memory: Memory,
    changes: Option<Changes>,
    told: tell::Told,
}

/// One look at everything.
struct Look {
    ring: look::Ring,
    targets: Vec<Looked>,
}

/// How a write ended, in the words of whoever knows.
type Written = Result<Result<(), CallError>, Unled>;

impl Rotate {
    /// Cares for the authorities while this replica leads, until `stop` is done. A look may be given
    /// up at any time; a write that was begun ends before this returns.
    pub(crate) async fn run(self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut run = Run::default();
        loop {
            let looked = tokio::select! {
                () = &mut stop => break,
                looked = self.look(&mut run) => looked,
            };
            let rest = match looked {
                Ok(look) => self.pass(&mut run, &look).await,
                Err(Unled::OutOfTime(_)) => SOON,
                Err(Unled::NotLeading) => {
                    run = Run::default();
                    FOLLOWER_PAUSE
                }
            };
            let change = tokio::select! {
                () = &mut stop => break,
                () = time::sleep(rest) => None,
                Some(change) = next(&mut run.changes) => Some(change),
            };
            run.told.watched(change);
        }
    }

    /// Reads the Secret and the targets, if this replica leads.
    async fn look(&self, run: &mut Run) -> Result<Look, Unled> {
        let limit = self.lifetimes.call();
        let look = async { tokio::join!(self.outlook.ring(limit), self.outlook.sights(limit)) };
        // Each call has its own limit; the term may end before.
        let (ring, targets) = self.mandate.during(limit.saturating_mul(2), look).await?;
        if run.changes.is_none() {
            run.changes = Some(self.changes());
        }
        Ok(Look { ring, targets })
    }

    /// Decides, does, tells; answers how long to rest.
    async fn pass(&self, run: &mut Run, look: &Look) -> Duration {
        self.tell_looked(run, look);
        let reading = &look.ring.reading;
        let sights: Vec<Sight> = look.targets.iter().map(|it| it.sight.clone()).collect();
        let (now, wall) = (self.clock.now(), clock::wall());
        let memory = std::mem::take(&mut run.memory).look(reading, &sights, now);
        let seen = Seen {
            lifetimes: &self.lifetimes,
            wall,
            now,
            reading,
            targets: &sights,
            memory: &memory,
        };
        let plan = decide(&seen);
        self.tell_plan(run, plan, reading);
        let outcome = self.act(run, &seen, plan, look).await;
        let rest = match outcome {
            None | Some(Outcome::Refused) => rest(&seen, plan),
            Some(Outcome::Written | Outcome::Late | Outcome::Unknown) => SOON,
        };
        run.memory = match (outcome, reading) {
            (Some(outcome), Reading::Found { ring, damage: _ }) => {
                settle(memory.clone(), plan, outcome, ring.bundle(), self.clock.now())
            }
            (None, _) | (_, Reading::Absent | Reading::Unknown(_)) => memory.clone(),
        };
        rest
    }

    fn changes(&self) -> Changes {
        let secret = self.outlook.authorities.changes();
        let targets = self.outlook.trust.changes(&self.outlook.targets);
        changes::all(secret.into_iter().chain(targets))
    }

    /// Performs the plan's write, if it has one.
    async fn act(
        &self,
        run: &mut Run,
        seen: &Seen<'_>,
        plan: Plan,
        look: &Look,
    ) -> Option<Outcome> {
        let Reading::Found { ring, damage: _ } = seen.reading else {
            return None;
        };
        let written = match plan.step {
            Step::Wait => return None,
            Step::Inject(place) => self.inject(place, ring, look.targets.get(place)?).await?,
            Step::MakeCurrent
            | Step::AddNext
            | Step::Mend
            | Step::Promote
            | Step::Stamp
            | Step::DropPrevious => {
                let fresh = || mint::authority(&self.lifetimes, seen.wall);
                let ring = carry_out(seen, ring, plan, fresh);
                let ring = ring.inspect_err(|error| run.told.unmade(error)).ok()??;
                self.replace(&render::replaced(look.ring.secret.as_ref()?, &ring)).await
            }
        };
        Some(self.tell_written(run, plan, written))
    }

    async fn inject(&self, place: usize, ring: &Ring, looked: &Looked) -> Option<Written> {
        let (target, found) = (self.outlook.targets.get(place)?, looked.found.as_ref()?);
        let (hooks, bundle) = (self.outlook.ours(found), ring.bundle());
        let injection = Injection { target, found, hooks, bundle };
        let limit = self.lifetimes.call();
        let call = self.outlook.trust.inject(&injection, limit);
        Some(self.mandate.during(limit, call).await)
    }

    async fn replace(&self, secret: &Secret) -> Written {
        let limit = self.lifetimes.call();
        let call = self.outlook.authorities.replace(secret, limit);
        self.mandate.during(limit, call).await.map(|written| written.map(|_| ()))
    }
}

/// The next change, once somebody watches.
async fn next(changes: &mut Option<Changes>) -> Option<Change> {
    match changes {
        Some(changes) => changes.next().await,
        None => std::future::pending().await,
    }
}

const fn outcome(class: Class) -> Outcome {
    match class {
        // Gone, or another of the same name is there.
        Class::NotFound | Class::Conflict => Outcome::Late,
        Class::Refused => Outcome::Refused,
        Class::Unwell | Class::Unreachable => Outcome::Unknown,
    }
}
