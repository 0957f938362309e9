//! The corridor of every replica: sees to it that there is a Secret, and signs its own certificate.
//! Comes in: the outlook, the times, the wish to stop. Goes out: the certificate of the next
//! handshake, and a gate that opens when every API server can call us. May touch: `ports`,
//! `telemetry`. It decides nothing; `renew` does. No key that it makes leaves this process.

mod tell;

use std::time::Duration;

use futures::StreamExt;
use tokio::time;

use super::lifetimes::Lifetimes;
use super::look::Outlook;
use super::mint;
use super::render;
use super::renew::{self, Held, Renewal, Step, Times, can_be_called, renew};
use super::ring;
use super::seen::{Reading, Sight, Unread};
use crate::ports::call::Class;
use crate::ports::clock::{self, Clock};
use crate::ports::identity::Identity;
use crate::telemetry::{Gate, Gates, Metrics};

/// The pause between two looks at the targets, until they trust us.
const GATE_PAUSE: Duration = Duration::from_secs(2);
/// The pause after a write, and after one that another replica was faster with.
const SOON: Duration = Duration::from_millis(250);

/// One replica's certificate.
pub(crate) struct Keep {
    pub(crate) outlook: Outlook,
    pub(crate) lifetimes: Lifetimes,
    pub(crate) clock: Clock,
    pub(crate) identity: Identity,
    pub(crate) gates: Gates,
    pub(crate) metrics: Metrics,
}

/// What changes from pass to pass.
#[derive(Default)]
struct Run {
    held: Held,
    /// Whether the gate was opened. It stays open, and then the targets are the leader's business.
    opened: bool,
    told: tell::Told,
}

impl Keep {
    /// Keeps the certificate good until `stop` is done.
    pub(crate) async fn run(self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut changes = self.outlook.authorities.changes();
        let mut run = Run::default();
        loop {
            let rest = tokio::select! {
                () = &mut stop => break,
                rest = self.pass(&mut run) => rest,
            };
            tokio::select! {
                () = &mut stop => break,
                () = time::sleep(rest) => {}
                Some(change) = changes.next() => self.tell_watched(&mut run, change),
            }
        }
    }

    /// Looks, decides, does, tells; answers how long to rest.
    async fn pass(&self, run: &mut Run) -> Duration {
        let asked = self.times();
        let looked = self.outlook.ring(self.lifetimes.call()).await;
        self.tell_looked(run, &looked);
        run.held = std::mem::take(&mut run.held).look(&looked.reading, asked);
        let times = self.times();
        let plan = renew(&self.lifetimes, &run.held, &looked.reading, times);
        run.told.plan(plan, run.held.leaf.is_some());
        let wrote = match plan.step {
            Step::Rest => false,
            Step::Create => self.create(run, times).await,
            Step::Sign => {
                self.sign(run, plan, times);
                false
            }
        };
        self.tell_expiry(run);
        let rest = renew::rest(&self.lifetimes, &run.held, plan, times.wall);
        let rest = if wrote { SOON } else { rest };
        if self.open(run, &looked.reading).await { rest } else { rest.min(GATE_PAUSE) }
    }

    /// Makes the Secret; says whether it is there now.
    async fn create(&self, run: &mut Run, times: Times) -> bool {
        let made = match mint::authority(&self.lifetimes, times.wall) {
            Ok(made) => made,
            Err(error) => {
                run.told.unmade(&error);
                return false;
            }
        };
        let ring = ring::Ring::new(made, &run.held.remembered());
        let secret = render::created(self.outlook.namespace(), &ring);
        match self.outlook.authorities.create(&secret, self.lifetimes.call()).await {
            Ok(_) => {
                self.tell_created(run);
                true
            }
            // Another replica was faster.
            Err(error) if error.class() == Class::Conflict => true,
            Err(error) => {
                self.tell_uncreated(run, &error);
                false
            }
        }
    }

    fn sign(&self, run: &mut Run, plan: Renewal, times: Times) {
        let signer = run.held.signer(&self.lifetimes, times).cloned();
        // There is one, or signing would not have been decided.
        let Ok(signer) = signer else { return };
        match mint::leaf(&self.lifetimes, &signer, self.outlook.namespace(), times.wall) {
            Ok((leaf, shown)) => {
                self.identity.put(shown);
                run.told.signed(plan, &leaf);
                run.held.leaf = Some(leaf);
            }
            Err(error) => run.told.unmade(&error),
        }
    }

    /// Opens the gate once we can be called; says whether it is open.
    async fn open(&self, run: &mut Run, reading: &Reading) -> bool {
        if run.opened {
            return true;
        }
        if *reading == Reading::Unknown(Unread::Refused) {
            self.gates.refused(Gate::Certificate);
        }
        if run.held.leaf.is_none() {
            return false;
        }
        let looked = self.outlook.sights(self.lifetimes.call()).await;
        self.tell_targets(run, &looked);
        let sights: Vec<Sight> = looked.into_iter().map(|it| it.sight).collect();
        if can_be_called(&run.held, &sights, clock::wall()) == Some(true) {
            self.gates.open(Gate::Certificate);
            run.opened = true;
            tracing::info!("the API server trusts the webhook certificate");
        } else if sights.contains(&Sight::Unknown(Unread::Refused)) {
            self.gates.refused(Gate::Certificate);
        }
        run.opened
    }

    fn times(&self) -> Times {
        Times { now: self.clock.now(), wall: clock::wall() }
    }
}
