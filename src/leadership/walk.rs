//! A model world for the election: an API server, a slow and lossy network, and replicas that are
//! paused, killed, stopped and started while someone deletes the Lease. The replicas run the real
//! rules; only time and the world are made up. Two things must hold: never two leaders at once,
//! and, once the trouble ends, soon exactly one.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "the numbers of a model are small"
)]

mod dice;
mod replica;
mod server;

use std::time::Duration;

use dice::Dice;
use replica::Replica;
use server::{Answer, Call, Server};

use super::Timing;

const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
};
/// One step of the world, in milliseconds.
const TICK: u64 = 100;
const TROUBLE: u64 = 5 * 60_000;
/// Long enough for the last late message, an expiry and a probation, one after the other.
const CALM: u64 = 90_000;

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
}

struct World {
    now: u64,
    server: Server,
    mail: Vec<Mail>,
    replicas: Vec<Replica>,
    processes: u64,
    dice: Dice,
    tally: Tally,
    leader: Option<u64>,
}

impl World {
    fn new(seed: u64, size: u64) -> Self {
        let mut world = Self {
            now: 0,
            server: Server::default(),
            mail: Vec::new(),
            replicas: Vec::new(),
            processes: 0,
            dice: Dice::new(seed),
            tally: Tally::default(),
            leader: None,
        };
        for _ in 0..size {
            let replica = world.process();
            world.replicas.push(replica);
        }
        world
    }

    /// A process that begins now, with a clock of its own.
    fn process(&mut self) -> Replica {
        self.processes += 1;
        let rate = 98 + self.dice.below(5);
        let offset = self.dice.below(1_000_000);
        Replica::new(self.processes, rate, offset, self.now)
    }

    fn tick(&mut self, trouble: bool) {
        self.now += TICK;
        if trouble {
            self.hurt();
        }
        self.deliver(trouble);
        for place in 0..self.replicas.len() {
            if let Some((call, body)) = self.replicas[place].tick(self.now, &TIMING) {
                let process = self.replicas[place].process;
                self.post(process, call, Body::Request(body), trouble);
            }
        }
        self.never_two_leaders();
    }

    /// The adversary.
    fn hurt(&mut self) {
        if self.dice.one_in(200) && self.server.lease.take().is_some() {
            self.tally.deletions += 1;
        }
        let place = self.dice.place(self.replicas.len());
        if self.dice.one_in(150) {
            let until = self.now + self.dice.below(25_000);
            self.replicas[place].paused_until = until;
        }
        if self.dice.one_in(400) {
            // Killed: nothing is said, its messages stay on their way.
            self.replicas[place] = self.process();
        } else if self.dice.one_in(300) {
            let free = self.replicas[place].farewell(self.now, self.server.lease.as_ref());
            if let Some(lease) = free {
                let process = self.replicas[place].process;
                self.post(
                    process,
                    0,
                    Body::Request(Call::Replace(Box::new(lease))),
                    true,
                );
            }
            self.replicas[place] = self.process();
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
        self.mail.push(Mail {
            due: self.now + delay,
            process,
            call,
            body,
        });
    }

    fn deliver(&mut self, trouble: bool) {
        let now = self.now;
        let due: Vec<Mail> = self.mail.extract_if(.., |mail| mail.due <= now).collect();
        for Mail {
            due: _,
            process,
            call,
            body,
        } in due
        {
            match body {
                Body::Request(request) => {
                    let answer = self.server.answer(request);
                    self.post(process, call, Body::Reply(answer), trouble);
                }
                Body::Reply(answer) => {
                    let asker = self.replicas.iter_mut().find(|it| it.process == process);
                    if let Some(replica) = asker {
                        replica.inbox.push((call, answer));
                    }
                }
            }
        }
    }

    fn leaders(&self) -> Vec<u64> {
        let leading = self
            .replicas
            .iter()
            .filter(|replica| replica.leads_at(self.now));
        leading.map(|replica| replica.process).collect()
    }

    fn never_two_leaders(&mut self) {
        let leaders = self.leaders();
        assert!(
            leaders.len() <= 1,
            "two leaders at {} ms: {leaders:?}",
            self.now
        );
        let leader = leaders.first().copied();
        if leader.is_some() && leader != self.leader {
            self.tally.began_to_lead += 1;
        }
        self.leader = leader;
    }
}

fn walk(seed: u64, size: u64) -> Tally {
    let mut world = World::new(seed, size);
    while world.now < TROUBLE {
        world.tick(true);
    }
    while world.now < TROUBLE + CALM {
        world.tick(false);
    }
    assert_eq!(
        world.leaders().len(),
        1,
        "seed {seed}: nobody leads after the trouble ended"
    );
    world.tally
}

#[test]
fn there_are_never_two_leaders_and_after_trouble_there_is_one() {
    let mut sum = Tally::default();
    for seed in 1..=600 {
        let Tally {
            began_to_lead,
            deletions,
        } = walk(seed, 2 + seed % 2);
        sum.began_to_lead += began_to_lead;
        sum.deletions += deletions;
    }
    assert!(
        sum.began_to_lead > 2400,
        "only {} terms: the walk is too tame",
        sum.began_to_lead
    );
    assert!(
        sum.deletions > 1200,
        "only {} deletions: the walk is too tame",
        sum.deletions
    );
}

#[test]
fn a_replica_that_is_told_to_stop_is_followed_without_waiting_for_its_lease_to_expire() {
    let mut world = World::new(7, 2);
    while world.leaders().is_empty() {
        world.tick(false);
    }
    let place = world
        .replicas
        .iter()
        .position(|it| it.leads_at(world.now))
        .unwrap();
    let free = world.replicas[place]
        .farewell(world.now, world.server.lease.as_ref())
        .unwrap();
    world.server.answer(Call::Replace(Box::new(free)));
    world.replicas.remove(place);
    let stopped = world.now;
    while world.leaders().is_empty() {
        world.tick(false);
    }
    assert!(
        world.now - stopped < 3_000,
        "it took {} ms",
        world.now - stopped
    );
}
