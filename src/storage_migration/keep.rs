//! The corridor: look, decide, do, tell, and again when something happens.
//! Comes in: a client, the mandate, who writes. Goes out: objects stored in today's version.
//! May touch: `clients`, `telemetry`. It chooses nothing itself. One kind after the other, one step at a time; it may be
//! ended at any moment.

use std::time::Duration;

use futures::StreamExt;
use kube::Client;
use kube::runtime::events::{Recorder, Reporter};
use tokio::time;

use super::act::{Acting, Done};
use super::decide::{Plan, Step, decide};
use super::look::{Looked, Outlook};
use super::memory::Memory;
use super::record::{Phase, Tally};
use super::seen::{Reading, Seen, Way, converted};
use super::tell::Said;
use crate::api::kinds::Kind;
use crate::api::monotonic::MonotonicTime;
use crate::api::names;
use crate::clients::clock::Clock;
use crate::clients::leader_guard::LeaderGuard;
use crate::clients::objects::Objects;
use crate::clients::storage_versions::StorageVersionsClient;
use crate::telemetry::{Metrics, MigrationCounts};

/// Even if nothing is heard, everything is looked at this often: a watch may have missed something.
const SELDOM: Duration = Duration::from_mins(5);
/// After somebody was faster.
const SOON: Duration = Duration::from_millis(250);

/// Carries stored objects to today's version as long as this replica leads. Whoever starts it ends it when the lead is
/// lost.
pub(crate) struct Keeper {
    pub(crate) client: Client,
    pub(crate) mandate: LeaderGuard,
    /// The operator's own namespace.
    pub(crate) namespace: String,
    pub(crate) way: Way,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
}

/// One kind, and what is remembered of it.
struct Desk {
    kind: &'static Kind,
    memory: Memory,
    said: Said,
}

/// What the passes share.
struct Run {
    outlook: Outlook,
    clock: Clock,
    metrics: Metrics,
    recorder: Recorder,
    mandate: LeaderGuard,
}

impl Keeper {
    /// Goes on until it is dropped.
    pub(crate) async fn run(self) {
        let Self { client, mandate, namespace, way, clock, metrics } = self;
        let port = StorageVersionsClient::new(client.clone(), mandate.clone());
        let mut changes = port.changes(converted());
        let objects = Objects::new(client.clone(), mandate.clone());
        let reporter = Reporter { controller: names::OPERATOR.into(), instance: None };
        let run = Run {
            outlook: Outlook { port, objects, namespace, way },
            clock,
            metrics,
            recorder: Recorder::new(client, reporter),
            mandate,
        };
        let desk = |kind| Desk { kind, memory: Memory::default(), said: Said::default() };
        let mut desks: Vec<Desk> = converted().map(desk).collect();
        loop {
            let mut rest = SELDOM;
            for desk in &mut desks {
                rest = rest.min(run.pass(desk).await);
            }
            tokio::select! {
                () = time::sleep(rest) => {}
                Some(_) = changes.next() => {}
            }
        }
    }
}

impl Run {
    /// Looks, decides, does, tells; answers how long to rest.
    async fn pass(&self, desk: &mut Desk) -> Duration {
        let looked = self.outlook.look(desk.kind).await;
        let now = self.clock.now();
        let definition = match &looked.definition {
            Reading::Known(Some(definition)) => Some(definition.clone()),
            Reading::Known(None) | Reading::Unknown => None,
        };
        let record = match &looked.record {
            Reading::Known(record) => record.clone(),
            Reading::Unknown => None,
        };
        let run =
            record.filter(|it| definition.as_ref().is_some_and(|definition| it.is_of(definition)));
        if let Some(definition) = &definition {
            desk.memory.see(definition, now);
            self.metrics.storage_migration.stored(desk.kind.name, definition.stored.len());
        }
        if run.as_ref().is_some_and(|it| it.phase == Phase::Held) {
            desk.memory.held(now);
        }
        let plan = self.decide(desk, &looked);
        desk.said.plan(desk.kind, &plan, definition.as_ref());
        let Some(definition) = definition else { return rest(&plan, now) };
        if matches!(plan.step, Step::Note(_)) {
            desk.memory.answer(looked.asked.clone());
        }
        let acting = Acting {
            outlook: &self.outlook,
            kind: desk.kind,
            definition: &definition,
            looked: &looked,
            record: run.as_ref(),
        };
        let done = acting.act(&plan.step, &mut desk.memory).await;
        self.tell(desk, &plan, &acting, done.as_ref()).await;
        match done {
            None => rest(&plan, now),
            Some(Done::Well(..)) => {
                desk.memory.well();
                Duration::ZERO
            }
            Some(Done::Late) => SOON,
            Some(Done::Unwell(_)) => {
                let now = self.clock.now();
                desk.memory.unwell(now);
                desk.memory.again(now).map_or(SOON, |again| again.since(now))
            }
        }
    }

    fn decide(&self, desk: &Desk, looked: &Looked) -> Plan {
        decide(&Seen {
            kind: desk.kind,
            way: self.outlook.way,
            definition: looked.definition.clone(),
            record: looked.record.clone(),
            asked: looked.asked.clone(),
            others: looked.others.clone(),
            errand: looked.errand.clone(),
            memory: &desk.memory,
            now: self.clock.now(),
        })
    }

    async fn tell(&self, desk: &mut Desk, plan: &Plan, acting: &Acting<'_>, done: Option<&Done>) {
        match done {
            Some(Done::Well(after, dealt)) => {
                let Tally { looked: _, written, fresh, gone, failed } = *dealt;
                let metrics = &self.metrics.storage_migration;
                metrics.count_objects(
                    desk.kind.name,
                    MigrationCounts { written, current: fresh, deleted: gone, failed },
                );
                let left = after.total.saturating_sub(after.tally.looked);
                let running = after.phase != Phase::Done;
                metrics.run(desk.kind.name, running, if running { left } else { 0 });
                let word = desk.said.well(desk.kind, plan, acting.record, after);
                if let Some(word) = word {
                    let uid = &acting.definition.uid;
                    word.publish(&self.recorder, &self.mandate, desk.kind, uid).await;
                }
            }
            Some(Done::Unwell(why)) => desk.said.unwell(desk.kind, plan, why),
            Some(Done::Late) | None => {}
        }
    }
}

fn rest(plan: &Plan, now: MonotonicTime) -> Duration {
    plan.wake.map_or(SELDOM, |wake| wake.since(now))
}
