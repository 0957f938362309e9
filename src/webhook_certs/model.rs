//! A model world for the authorities: an API server that lags behind itself, a slow and lossy network,
//! and replicas that are paused, cut off, killed and deposed while someone meddles with the targets.
//! The replicas run the real rules. Three things must hold in every world that is tried: no API server
//! ever distrusts a certificate that is valid and in use; targets are written twice for each rotation,
//! and once for each meddling; and, once the trouble ends, authorities are rotated.
#![expect(clippy::arithmetic_side_effects, reason = "the numbers of a model are small")]

mod replica;
mod server;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use replica::{Corridor, Replica};
use server::{Server, Write};

use super::Lifetimes;
use crate::api::test_rng::TestRng;
use crate::webhook_certs::apply::Outcome;
use crate::webhook_certs::lifetimes::later;
use crate::webhook_certs::state::{ReadFailure, TargetState};

/// One step of the world is one second. The tightest that the settings take: what signed before has
/// expired when it is dropped.
const TIGHT: Lifetimes = times(960, 240);
/// More like what everybody uses: what signed before would be good for much longer.
const WIDE: Lifetimes = times(1440, 120);
/// How far an API server may lag behind: as long as the rules wait for it.
const LAG: u64 = 30;
/// The longest that a call takes.
const LIMIT: u64 = 10;
/// How far the clocks of replicas are off at most, to either side.
const CLOCK_SKEW: u64 = 9;
const TARGETS: usize = 3;

const fn times(ca: u64, leaf: u64) -> Lifetimes {
    Lifetimes {
        ca: Duration::from_secs(ca),
        leaf: Duration::from_secs(leaf),
        settle: Duration::from_secs(LAG),
    }
}

fn wall(now: u64, skew: i64) -> Timestamp {
    let start = Timestamp::from_second(1_800_000_000).unwrap();
    let time = SignedDuration::from_secs(i64::try_from(now).unwrap() + skew);
    start.checked_add(time).unwrap()
}

/// A write or its end, on its way.
struct Mail {
    due: u64,
    process: u64,
    corridor: Corridor,
    body: Body,
}

enum Body {
    Request(Box<Write>),
    Reply(Outcome),
}

/// What has happened, to show that the walk was not idle.
#[derive(Default)]
struct Tally {
    promotions: u64,
    meddling: u64,
    leaders: u64,
    kills: u64,
    signed: u64,
    /// Replicas whose certificate was valid although they had been cut off beyond `max_staleness`.
    cut_off: u64,
}

struct World {
    now: u64,
    times: Lifetimes,
    server: Server,
    mail: Vec<Mail>,
    replicas: Vec<Replica>,
    processes: u64,
    dice: TestRng,
    tally: Tally,
    /// Until when each target cannot be read.
    hidden: [u64; TARGETS],
    /// What someone will put into a target, and when.
    meddling: Vec<(u64, usize, Vec<u8>)>,
}

impl World {
    fn new(seed: u64, size: u64, times: Lifetimes) -> Self {
        let mut world = Self {
            now: 0,
            times,
            hidden: [0; TARGETS],
            meddling: Vec::new(),
            server: Server::new(TARGETS),
            mail: Vec::new(),
            replicas: Vec::new(),
            processes: 0,
            dice: TestRng::new(seed),
            tally: Tally::default(),
        };
        for _ in 0..size {
            let replica = world.process();
            world.replicas.push(replica);
        }
        world
    }

    fn process(&mut self) -> Replica {
        self.processes += 1;
        let skew = i64::try_from(self.dice.below(2 * CLOCK_SKEW + 1)).unwrap();
        let skew = skew - i64::try_from(CLOCK_SKEW).unwrap();
        Replica::new(self.processes, skew, self.times)
    }

    fn tick(&mut self, trouble: bool) {
        self.now += 1;
        if trouble {
            self.hurt();
        }
        // Who is cut off does not lead for long.
        let leads = |it: &Replica| it.leads && self.now >= it.cut_until;
        if !self.replicas.iter().any(leads) && self.dice.one_in(10) {
            let place = self.dice.index(self.replicas.len());
            self.lead(place);
        }
        self.deliver(trouble);
        for place in 0..self.replicas.len() {
            let (server, dice, hidden, now) = (&self.server, &mut self.dice, self.hidden, self.now);
            let mut look = || {
                let slow = trouble && dice.one_in(5);
                let mut view = server.view();
                for (state, until) in view.targets_state.iter_mut().zip(hidden) {
                    if now < until {
                        *state = TargetState::Unknown(ReadFailure::NoResponse);
                    }
                }
                (view, if slow { dice.below(LIMIT) } else { 0 })
            };
            let writes = self.replicas[place].tick(self.now, &mut look);
            let process = self.replicas[place].process;
            for (corridor, write) in writes {
                self.post(process, corridor, Body::Request(Box::new(write)), trouble);
            }
        }
        self.nobody_is_distrusted();
    }

    fn lead(&mut self, leader: usize) {
        self.tally.leaders += 1;
        for (place, replica) in self.replicas.iter_mut().enumerate() {
            replica.lead(place == leader, self.now);
        }
    }

    /// The adversary.
    fn hurt(&mut self) {
        let (now, place) = (self.now, self.dice.index(self.replicas.len()));
        let target = self.dice.index(TARGETS);
        if self.dice.one_in(300) {
            self.tally.kills += 1;
            self.replicas[place] = self.process();
        }
        if self.dice.one_in(150) {
            self.lead(place);
        }
        if self.dice.one_in(250) {
            self.replicas[place].paused_until = now + self.dice.below(60);
        }
        // The worst time to be cut off is when an authority is about to be promoted.
        let rotating = self.server.ca_set.as_ref().is_some_and(|ca_set| ca_set.next.is_some());
        if self.dice.one_in(if rotating { 30 } else { 250 }) {
            let until = now + self.dice.below(500);
            let replica = &mut self.replicas[place];
            replica.cut_until = replica.cut_until.max(until);
        }
        if self.dice.one_in(if rotating { 60 } else { 250 }) {
            self.replicas[place].deaf_until = now + self.dice.below(300);
        }
        if self.dice.one_in(if rotating { 60 } else { 250 }) {
            self.tally.meddling += 1;
            match self.dice.below(5) {
                0 => self.server.meddle(target, Vec::new(), now),
                1 => self.server.delete(target),
                2 => self.server.put_back(target, now),
                // Put back, and put right again before anybody has seen it.
                _ => self.flap(target),
            }
            self.wake();
        }
        if self.dice.one_in(if rotating { 60 } else { 250 }) {
            self.hidden[target] = now + self.dice.below(100);
        }
        let due: Vec<_> = self.meddling.extract_if(.., |(due, _, _)| *due <= now).collect();
        for (_, target, bundle) in due {
            self.server.meddle(target, bundle, now);
            self.wake();
        }
    }

    fn flap(&mut self, target: usize) {
        if let TargetState::Managed { bundles, .. } = &self.server.view().targets_state[target] {
            let due = self.now + 1 + self.dice.below(4);
            self.meddling.push((due, target, bundles.concat()));
            self.server.put_back(target, self.now);
        }
    }

    fn wake(&mut self) {
        let now = self.now;
        self.replicas.iter_mut().for_each(|replica| replica.wake(now));
    }

    fn post(&mut self, process: u64, corridor: Corridor, body: Body, trouble: bool) {
        if trouble && self.dice.one_in(15) {
            return;
        }
        let slow = trouble && self.dice.one_in(4);
        let delay = if slow { self.dice.below(LIMIT) } else { 0 };
        self.mail.push(Mail { due: self.now + delay, process, corridor, body });
    }

    fn deliver(&mut self, trouble: bool) {
        let now = self.now;
        let due: Vec<Mail> = self.mail.extract_if(.., |mail| mail.due <= now).collect();
        for Mail { due: _, process, corridor, body } in due {
            match body {
                // It lands, whether or not the one who sent it still lives or leads.
                Body::Request(write) => {
                    let promotes = self.server.promotes(&write);
                    if trouble && promotes && self.dice.one_in(2) {
                        // It will not hear of this, and may sign with what it knows.
                        let place = self.dice.index(self.replicas.len());
                        self.replicas[place].cut_until = now + 100 + self.dice.below(300);
                    }
                    let outcome = self.server.write(*write, now);
                    self.post(process, corridor, Body::Reply(outcome), trouble);
                    self.wake();
                }
                Body::Reply(outcome) => {
                    let asker = self.replicas.iter_mut().find(|it| it.process == process);
                    let answered = asker.filter(|it| !it.is_paused(now) && now >= it.cut_until);
                    if let Some(asker) = answered {
                        asker.answer(corridor, outcome, now);
                    }
                }
            }
        }
    }

    fn nobody_is_distrusted(&mut self) {
        let time = wall(self.now, 0);
        for replica in &self.replicas {
            let Some(leaf) = replica.state.leaf.as_ref().filter(|_| replica.opened) else {
                continue;
            };
            if time < leaf.from || leaf.until <= time {
                continue;
            }
            if let Some((_, asked)) = &replica.state.ca_set
                && asked.wall.duration_since(wall(self.now, replica.skew)).abs()
                    > SignedDuration::try_from(self.times.max_staleness()).unwrap()
            {
                self.tally.cut_off += 1;
            }
            let why = self.server.distrust(&leaf.authority, self.now);
            assert_eq!(why, None, "replica {} is distrusted at {}", replica.process, self.now);
        }
    }

    /// Twice for each rotation, and once for each time that someone meddled.
    fn targets_are_written_sparingly(&self) {
        let Server { bundles, promotions, replaced, .. } = self.server;
        let most = 2 * promotions + replaced + 2;
        assert!(bundles <= most, "{bundles} bundles in {promotions} rotations");
        for object in &self.server.objects {
            let most = bundles + object.foreign;
            assert!(object.injections <= most, "{} injections, {most} needed", object.injections);
        }
    }
}

fn walk(seed: u64, times: Lifetimes) -> Tally {
    let mut world = World::new(seed, 2 + seed % 2, times);
    let trouble = 5 * times.ca.as_secs();
    while world.now < trouble {
        world.tick(true);
    }
    let before = world.server.promotions;
    while world.now < trouble + 2 * times.ca.as_secs() {
        world.tick(false);
    }
    world.targets_are_written_sparingly();
    assert!(world.server.promotions > before, "seed {seed}: nothing was rotated after the trouble");
    let ca_set = world.server.ca_set.as_ref().unwrap();
    let current = &ca_set.current.as_ref().unwrap().certificate;
    let time = wall(world.now, 0);
    for replica in &world.replicas {
        let leaf = replica.state.leaf.as_ref().unwrap();
        assert!(replica.opened && leaf.from <= time && time < leaf.until, "seed {seed}");
        let just_promoted =
            ca_set.promoted.is_some_and(|promoted| time < later(promoted, RETRY_DELAY));
        assert!(leaf.authority == *current || just_promoted, "seed {seed}");
        world.tally.signed += replica.signed;
    }
    world.tally.promotions = world.server.promotions;
    world.tally
}

/// When everybody has heard of a promotion, clocks that are off included.
const RETRY_DELAY: Duration = Duration::from_secs(2 * LIMIT + CLOCK_SKEW);

fn walk_all(seeds: u64, times: Lifetimes) {
    let mut sum = Tally::default();
    for seed in 1..=seeds {
        let Tally { promotions, meddling, leaders, kills, signed, cut_off } = walk(seed, times);
        sum.promotions += promotions;
        sum.meddling += meddling;
        sum.leaders += leaders;
        sum.kills += kills;
        sum.signed += signed;
        sum.cut_off += cut_off;
    }
    for (what, count, least) in [
        ("rotations", sum.promotions, 5),
        ("meddlings", sum.meddling, 20),
        ("leaders", sum.leaders, 20),
        ("kills", sum.kills, 10),
        ("certificates", sum.signed, 10),
        ("certificates beyond max_staleness", sum.cut_off, 50),
    ] {
        assert!(count >= least * seeds, "only {count} {what}: the walk is too tame");
    }
}

#[test]
fn no_api_server_ever_distrusts_a_certificate_and_rotation_goes_on() {
    walk_all(100, WIDE);
}

#[test]
fn the_tightest_times_are_no_worse() {
    walk_all(30, TIGHT);
}
