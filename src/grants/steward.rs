//! The corridor of the rights: listen, decide, do, tell, and again when something happens.
//! Comes in: a client, the mandate, who binds. Goes out: bindings, conditions, words.
//! May touch: `clients`, `telemetry`. It chooses nothing itself. It may be ended at any moment: each
//! step is one write, and the next leader looks anew.

mod act;
mod listen;
mod tell;

use std::time::Duration;

use futures::StreamExt;
use futures::stream::SelectAll;
use kube::Client;
use tokio::time;

use super::complain::complain;
use super::decide::decide;
use super::memory::{Memory, Outcome};
use super::seen::{Seen, World};
use crate::api::namespace_access::NamespaceAccess;
use crate::clients::clock::Clock;
use crate::clients::leader_guard::LeaderGuard;
use crate::clients::rbac::RbacClient;
use crate::telemetry::Metrics;
use listen::{Heard, Listening, listen};
use tell::Said;

/// What comes in so shortly after something else is answered together with it.
const GATHER: Duration = Duration::from_millis(200);
/// More than this is not gathered before something is done.
const MOST_GATHERED: usize = 10_000;
/// The pause before the rest of a plan that was too long for one pass.
const BREATH: Duration = Duration::from_millis(100);
/// After so many calls of one pass of which nobody knows how they ended, the pass ends, too.
const MOST_UNKNOWN: usize = 3;

/// Keeps the operator's rights in the namespaces where its objects are, as long as this replica
/// leads. Whoever starts it ends it when the lead is lost.
pub(crate) struct Steward {
    pub(crate) client: Client,
    pub(crate) mandate: LeaderGuard,
    /// The namespace of the operator's own account.
    pub(crate) namespace: String,
    pub(crate) way: NamespaceAccess,
    pub(crate) metrics: Metrics,
}

/// What changes from pass to pass, and what the passes need.
struct Run {
    port: RbacClient,
    operator: String,
    way: NamespaceAccess,
    metrics: Metrics,
    clock: Clock,
    world: World,
    memory: Memory,
    said: Said,
}

impl Steward {
    /// Goes on until it is dropped.
    pub(crate) async fn run(self) {
        let Self { client, mandate, namespace, way, metrics } = self;
        let port = RbacClient::new(client, mandate);
        let mut heard = listen(&port, &namespace);
        let mut run = Run {
            port,
            operator: namespace,
            way,
            metrics,
            clock: Clock::start(),
            world: World::default(),
            memory: Memory::default(),
            said: Said::default(),
        };
        let mut pause = None;
        loop {
            run.hear(&mut heard, pause).await;
            pause = run.pass().await;
        }
    }
}

impl Run {
    /// Waits until something happens or the pause is over, and takes in what comes along with it.
    async fn hear(&mut self, heard: &mut SelectAll<Listening>, pause: Option<Duration>) {
        let first = match pause {
            Some(pause) => time::timeout(pause, heard.next()).await.ok().flatten(),
            None => heard.next().await,
        };
        let Some(first) = first else { return };
        self.take(first);
        let over = time::sleep(GATHER);
        let mut over = std::pin::pin!(over);
        for _ in 0..MOST_GATHERED {
            tokio::select! {
                biased;
                () = &mut over => break,
                next = heard.next() => match next {
                    Some(next) => self.take(next),
                    None => break,
                },
            }
        }
    }

    fn take(&mut self, heard: Heard) {
        let Heard { from, news, error } = heard;
        self.said.watch(from, &news, error.as_ref());
        self.world.take(news);
    }

    /// Decides, does, tells; answers how long to rest if nothing happens.
    async fn pass(&mut self) -> Option<Duration> {
        let now = self.clock.now();
        let seen = Seen { way: self.way, world: &self.world, memory: &self.memory, now };
        let plan = decide(&seen);
        let (words, more_words) = complain(&seen);
        if let Some(granted) = self.world.granted() {
            self.metrics.namespace_access.granted(granted);
        }
        self.said.blocked(&plan.blocked);
        let mut unknown: usize = 0;
        for step in &plan.steps {
            if unknown < MOST_UNKNOWN && self.step(step).await == Outcome::Unknown {
                unknown = unknown.saturating_add(1);
            }
        }
        for word in &words {
            if unknown < MOST_UNKNOWN && self.speak(word).await == Outcome::Unknown {
                unknown = unknown.saturating_add(1);
            }
        }
        let now = self.clock.now();
        self.memory.forget(&self.world.uids(), now);
        if unknown == 0 && (plan.more || more_words) {
            return Some(BREATH);
        }
        self.memory.wakes(now).map(|wakes| wakes.since(now))
    }
}

#[cfg(test)]
mod tests;
