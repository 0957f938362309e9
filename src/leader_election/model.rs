//! Model test of leader election: an API server, a slow and lossy network, and replicas that are
//! paused, killed, stopped and started while the Lease is deleted or its holder cleared by hand. The
//! replicas run the real rules; time, network and API server are simulated. Two properties hold in
//! every run: never two leaders at once, and, once the faults end, soon exactly one.
#![expect(clippy::arithmetic_side_effects, reason = "the numbers of a model are small")]

mod replica;
mod server;

use std::time::Duration;

use replica::{Nature, Replica};
use server::{Answer, Call, Server};

use super::Timing;
use crate::api::test_rng::TestRng;

/// The tightest that `settings` takes: a renew deadline of four fifths of the lease duration.
const TIGHT: Timing = timing(15, 12, 2);
/// Replicas of two versions, while one replaces the other. A process that begins after a deletion
/// has never seen the leader of the deleted Lease, so no deadline may exceed the shortest lease
/// duration; docs/leader-election.md says so.
const MIXED: [Timing; 3] = [TIGHT, timing(20, 12, 3), timing(15, 10, 5)];
/// One step of the world, in milliseconds.
const TICK: u64 = 100;
const TROUBLE: u64 = 5 * 60_000;
/// Long enough for the last late message, an expiry and a probation, one after the other.
const CALM: u64 = 120_000;

const fn timing(lease: u64, renew: u64, retry: u64) -> Timing {
    Timing {
        lease_duration: Duration::from_secs(lease),
        renew_deadline: Duration::from_secs(renew),
        retry_period: Duration::from_secs(retry),
    }
}

/// What kind of world it is.
#[derive(Clone, Copy)]
struct Kind {
    size: u64,
    mixed: bool,
    /// Whether all processes were given the same name, against the rules.
    twins: bool,
}

/// A call or its answer, on its way.
struct Mail {
    due: u64,
    /// The process that asked. Its successor in the same place is another one.
    process: u64,
    call: u64,
    body: Body,
}

enum Body {
    Request(Call),
    Reply(Answer),
}

/// What has happened, to show that the walk was not idle.
#[derive(Default)]
struct Tally {
    began_to_lead: u64,
    deletions: u64,
    emptied: u64,
}

struct World {
    now: u64,
    kind: Kind,
    server: Server,
    mail: Vec<Mail>,
    replicas: Vec<Replica>,
    processes: u64,
    dice: TestRng,
    tally: Tally,
    leader: Option<u64>,
}

impl World {
    fn new(seed: u64, kind: Kind) -> Self {
        let mut world = Self {
            now: 0,
            kind,
            server: Server::default(),
            mail: Vec::new(),
            replicas: Vec::new(),
            processes: 0,
            dice: TestRng::new(seed),
            tally: Tally::default(),
            leader: None,
        };
        for _ in 0..kind.size {
            let replica = world.process();
            world.replicas.push(replica);
        }
        world
    }

    /// A process that begins now, with a clock of its own.
    fn process(&mut self) -> Replica {
        self.processes += 1;
        let process = self.processes;
        let timing = if self.kind.mixed { MIXED[self.dice.index(MIXED.len())] } else { TIGHT };
        let name = if self.kind.twins { 0 } else { process };
        let nature = Nature {
            process,
            identity: format!("replica-{name}"),
            timing,
            rate: 98 + self.dice.below(5),
            offset: self.dice.below(1_000_000),
        };
        Replica::new(nature, self.now)
    }

    fn tick(&mut self, trouble: bool) {
        self.now += TICK;
        if trouble {
            self.hurt();
        }
        self.deliver(trouble);
        for lease_ref in 0..self.replicas.len() {
            if let Some((call, body)) = self.replicas[lease_ref].tick(self.now) {
                let process = self.replicas[lease_ref].nature.process;
                self.post(process, call, Body::Request(body), trouble);
            }
            if self.replicas[lease_ref].is_gone() {
                self.replicas[lease_ref] = self.process();
            }
        }
        self.never_two_leaders();
    }

    /// The adversary.
    fn hurt(&mut self) {
        if self.dice.one_in(200) && self.server.delete() {
            self.tally.deletions += 1;
        }
        if self.dice.one_in(200) && self.server.empty_the_holder() {
            self.tally.emptied += 1;
        }
        let lease_ref = self.dice.index(self.replicas.len());
        if self.dice.one_in(150) {
            let until = self.now + self.dice.below(25_000);
            self.replicas[lease_ref].paused_until = until;
        }
        if self.dice.one_in(400) {
            // Killed: nothing is said, its messages stay on their way.
            self.replicas[lease_ref] = self.process();
        } else if self.dice.one_in(300) {
            self.replicas[lease_ref].stop();
        }
    }

    fn post(&mut self, process: u64, call: u64, body: Body, trouble: bool) {
        if trouble && self.dice.one_in(20) {
            return;
        }
        let delay = match self.dice.below(20) {
            0 if trouble => self.dice.below(20_000),
            1..4 if trouble => self.dice.below(4_000),
            _ => self.dice.below(100),
        };
        self.mail.push(Mail { due: self.now + delay, process, call, body });
    }

    fn deliver(&mut self, trouble: bool) {
        let now = self.now;
        let due: Vec<Mail> = self.mail.extract_if(.., |mail| mail.due <= now).collect();
        for Mail { due: _, process, call, body } in due {
            match body {
                Body::Request(request) => {
                    let answer = self.server.answer(request);
                    self.post(process, call, Body::Reply(answer), trouble);
                }
                Body::Reply(answer) => {
                    let mut replicas = self.replicas.iter_mut();
                    if let Some(asker) = replicas.find(|it| it.nature.process == process) {
                        asker.inbox.push((call, answer));
                    }
                }
            }
        }
    }

    fn leaders(&self) -> Vec<u64> {
        let leading = self.replicas.iter().filter(|it| it.leads_at(self.now));
        leading.map(|replica| replica.nature.process).collect()
    }

    fn never_two_leaders(&mut self) {
        let leaders = self.leaders();
        assert!(leaders.len() <= 1, "two leaders at {} ms: {leaders:?}", self.now);
        let leader = leaders.first().copied();
        if leader.is_some() && leader != self.leader {
            self.tally.began_to_lead += 1;
        }
        self.leader = leader;
    }
}

fn walk(seed: u64, kind: Kind) -> Tally {
    let mut world = World::new(seed, kind);
    while world.now < TROUBLE {
        world.tick(true);
    }
    while world.now < TROUBLE + CALM {
        world.tick(false);
    }
    assert_eq!(world.leaders().len(), 1, "seed {seed}: nobody leads after the trouble ended");
    world.tally
}

/// Worlds of two or three replicas, with one timing or a mix of three.
fn walk_all(seeds: u64, twins: bool) -> Tally {
    let mut sum = Tally::default();
    for seed in 1..=seeds {
        let kind = Kind { size: 2 + seed % 2, mixed: seed % 4 < 2, twins };
        let Tally { began_to_lead, deletions, emptied } = walk(seed, kind);
        sum.began_to_lead += began_to_lead;
        sum.deletions += deletions;
        sum.emptied += emptied;
    }
    sum
}

#[test]
fn there_are_never_two_leaders_and_one_leader_once_faults_end() {
    let sum = walk_all(600, false);
    for (what, count) in [
        ("terms", sum.began_to_lead),
        ("deletions", sum.deletions),
        ("emptied holders", sum.emptied),
    ] {
        assert!(count > 1200, "only {count} {what}: the walk is too tame");
    }
}

#[test]
fn processes_that_share_one_name_do_not_lead_together_either() {
    let sum = walk_all(200, true);
    let count = sum.began_to_lead;
    assert!(count > 400, "only {count} terms: the walk is too tame");
}

#[test]
fn a_stopped_replica_is_succeeded_without_waiting_for_its_lease_to_expire() {
    let kind = Kind { size: 2, mixed: false, twins: false };
    let mut world = World::new(7, kind);
    while world.leaders().is_empty() {
        world.tick(false);
    }
    let leads = |it: &Replica| it.leads_at(world.now);
    let lease_ref = world.replicas.iter().position(leads).unwrap();
    world.replicas[lease_ref].stop();
    let (stopped, first) = (world.now, world.leaders());
    while world.leaders().is_empty() || world.leaders() == first {
        world.tick(false);
    }
    let took = world.now - stopped;
    assert!(took < 3_000, "it took {took} ms");
}
