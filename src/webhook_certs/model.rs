//! Model test of CA rotation: an API server with propagation lag, a slow and lossy network, and
//! replicas that are paused, disconnected, killed and lose the lead while other writers change the
//! targets. The replicas run the real rules. Three properties hold in every run: no API server ever
//! rejects a certificate that is valid and in use; targets are written twice per rotation and once
//! per foreign write; and, once the faults end, the CA is rotated.
#![expect(clippy::arithmetic_side_effects, reason = "the numbers of a model are small")]

mod replica;
mod server;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use replica::{Replica, Task};
use server::{Server, Write};

use super::Lifetimes;
use crate::api::test_rng::TestRng;
use crate::webhook_certs::apply::Outcome;
use crate::webhook_certs::lifetimes::later;
use crate::webhook_certs::state::{ReadFailure, TargetState};

/// One tick is one second. The tightest valid lifetimes: the previous CA has expired when it is
/// removed.
const TIGHT: Lifetimes = lifetimes(960, 240);
/// Closer to the defaults: the previous CA is valid for much longer than it is needed.
const WIDE: Lifetimes = lifetimes(1440, 120);
/// Maximum propagation lag of an API server: as long as the rules wait for it.
const LAG: u64 = 30;
/// Maximum duration of an API call.
const CALL_TIMEOUT: u64 = 10;
/// Maximum clock error of a replica, in both directions.
const MAX_CLOCK_SKEW: u64 = 9;
const TARGETS: usize = 3;

const fn lifetimes(ca: u64, leaf: u64) -> Lifetimes {
    Lifetimes {
        ca: Duration::from_secs(ca),
        leaf: Duration::from_secs(leaf),
        propagation_delay: Duration::from_secs(LAG),
    }
}

fn wall(now: u64, skew: i64) -> Timestamp {
    let start = Timestamp::from_second(1_800_000_000).unwrap();
    let time = SignedDuration::from_secs(i64::try_from(now).unwrap() + skew);
    start.checked_add(time).unwrap()
}

/// A write or its response, in flight.
struct Message {
    due: u64,
    process: u64,
    task: Task,
    payload: Payload,
}

enum Payload {
    Request(Box<Write>),
    Response(Outcome),
}

/// Event counts, to prove that the model was not idle.
#[derive(Default)]
struct Counts {
    rotations: u64,
    foreign_writes: u64,
    leaders: u64,
    kills: u64,
    leaves: u64,
    /// Ticks at which a replica, disconnected beyond `max_staleness`, had a valid leaf.
    stale: u64,
}

struct Model {
    now: u64,
    lifetimes: Lifetimes,
    server: Server,
    messages: Vec<Message>,
    replicas: Vec<Replica>,
    processes: u64,
    rng: TestRng,
    counts: Counts,
    /// Until when each target cannot be read.
    unreadable: [u64; TARGETS],
    /// Scheduled foreign writes: time, target, bundle.
    foreign_writes: Vec<(u64, usize, Vec<u8>)>,
}

impl Model {
    fn new(seed: u64, size: u64, lifetimes: Lifetimes) -> Self {
        let mut model = Self {
            now: 0,
            lifetimes,
            unreadable: [0; TARGETS],
            foreign_writes: Vec::new(),
            server: Server::new(TARGETS),
            messages: Vec::new(),
            replicas: Vec::new(),
            processes: 0,
            rng: TestRng::new(seed),
            counts: Counts::default(),
        };
        for _ in 0..size {
            let replica = model.start_process();
            model.replicas.push(replica);
        }
        model
    }

    fn start_process(&mut self) -> Replica {
        self.processes += 1;
        let skew = i64::try_from(self.rng.below(2 * MAX_CLOCK_SKEW + 1)).unwrap();
        let skew = skew - i64::try_from(MAX_CLOCK_SKEW).unwrap();
        Replica::new(self.processes, skew, self.lifetimes)
    }

    fn tick(&mut self, faults: bool) {
        self.now += 1;
        if faults {
            self.inject_faults();
        }
        // A disconnected replica loses the lead.
        let leads = |replica: &Replica| replica.leads && self.now >= replica.disconnected_until;
        if !self.replicas.iter().any(leads) && self.rng.one_in(10) {
            let index = self.rng.index(self.replicas.len());
            self.elect(index);
        }
        self.deliver(faults);
        for index in 0..self.replicas.len() {
            let (server, rng) = (&self.server, &mut self.rng);
            let (unreadable, now) = (self.unreadable, self.now);
            let mut read = || {
                let slow = faults && rng.one_in(5);
                let mut view = server.view();
                for (state, until) in view.target_states.iter_mut().zip(unreadable) {
                    if now < until {
                        *state = TargetState::Unknown(ReadFailure::NoResponse);
                    }
                }
                (view, if slow { rng.below(CALL_TIMEOUT) } else { 0 })
            };
            let writes = self.replicas[index].tick(self.now, &mut read);
            let process = self.replicas[index].process;
            for (task, write) in writes {
                self.send(process, task, Payload::Request(Box::new(write)), faults);
            }
        }
        self.check_trust();
    }

    fn elect(&mut self, leader: usize) {
        self.counts.leaders += 1;
        for (index, replica) in self.replicas.iter_mut().enumerate() {
            replica.set_leading(index == leader, self.now);
        }
    }

    /// The adversary.
    fn inject_faults(&mut self) {
        let (now, index) = (self.now, self.rng.index(self.replicas.len()));
        let target = self.rng.index(TARGETS);
        if self.rng.one_in(300) {
            self.counts.kills += 1;
            self.replicas[index] = self.start_process();
        }
        if self.rng.one_in(150) {
            self.elect(index);
        }
        if self.rng.one_in(250) {
            self.replicas[index].paused_until = now + self.rng.below(60);
        }
        // The worst time to lose the connection is shortly before an activation.
        let rotating = self.server.ca_set.as_ref().is_some_and(|ca_set| ca_set.next.is_some());
        if self.rng.one_in(if rotating { 30 } else { 250 }) {
            let until = now + self.rng.below(500);
            let replica = &mut self.replicas[index];
            replica.disconnected_until = replica.disconnected_until.max(until);
        }
        if self.rng.one_in(if rotating { 60 } else { 250 }) {
            self.replicas[index].watch_broken_until = now + self.rng.below(300);
        }
        if self.rng.one_in(if rotating { 60 } else { 250 }) {
            self.counts.foreign_writes += 1;
            match self.rng.below(5) {
                0 => self.server.foreign_write(target, Vec::new(), now),
                1 => self.server.delete(target),
                2 => self.server.revert(target, now),
                // Reverted, and restored before any replica has observed it.
                _ => self.revert_and_restore(target),
            }
            self.notify();
        }
        if self.rng.one_in(if rotating { 60 } else { 250 }) {
            self.unreadable[target] = now + self.rng.below(100);
        }
        let due: Vec<_> = self.foreign_writes.extract_if(.., |(due, _, _)| *due <= now).collect();
        for (_, target, bundle) in due {
            self.server.foreign_write(target, bundle, now);
            self.notify();
        }
    }

    fn revert_and_restore(&mut self, target: usize) {
        if let TargetState::Managed { bundles, .. } = &self.server.view().target_states[target] {
            let due = self.now + 1 + self.rng.below(4);
            self.foreign_writes.push((due, target, bundles.concat()));
            self.server.revert(target, self.now);
        }
    }

    fn notify(&mut self) {
        let now = self.now;
        self.replicas.iter_mut().for_each(|replica| replica.notify(now));
    }

    fn send(&mut self, process: u64, task: Task, payload: Payload, faults: bool) {
        if faults && self.rng.one_in(15) {
            return;
        }
        let slow = faults && self.rng.one_in(4);
        let delay = if slow { self.rng.below(CALL_TIMEOUT) } else { 0 };
        self.messages.push(Message { due: self.now + delay, process, task, payload });
    }

    fn deliver(&mut self, faults: bool) {
        let now = self.now;
        let due: Vec<Message> =
            self.messages.extract_if(.., |message| message.due <= now).collect();
        for Message { due: _, process, task, payload } in due {
            match payload {
                // Stored, whether or not the sender still runs or leads.
                Payload::Request(write) => {
                    let activates = self.server.activates(&write);
                    if faults && activates && self.rng.one_in(2) {
                        // This replica does not observe the activation, and may issue from its
                        // old CA set.
                        let index = self.rng.index(self.replicas.len());
                        self.replicas[index].disconnected_until = now + 100 + self.rng.below(300);
                    }
                    let outcome = self.server.write(*write, now);
                    self.send(process, task, Payload::Response(outcome), faults);
                    self.notify();
                }
                Payload::Response(outcome) => {
                    let mut replicas = self.replicas.iter_mut();
                    let sender = replicas.find(|replica| replica.process == process);
                    let receives = |replica: &&mut Replica| {
                        !replica.is_paused(now) && now >= replica.disconnected_until
                    };
                    if let Some(sender) = sender.filter(receives) {
                        sender.respond(task, outcome, now);
                    }
                }
            }
        }
    }

    /// No API server rejects a leaf that is valid and in use.
    fn check_trust(&mut self) {
        let time = wall(self.now, 0);
        for replica in &self.replicas {
            let Some(leaf) = replica.state.leaf.as_ref().filter(|_| replica.gate_open) else {
                continue;
            };
            if time < leaf.from || leaf.until <= time {
                continue;
            }
            if let Some((_, sent)) = &replica.state.ca_set
                && sent.wall.duration_since(wall(self.now, replica.skew)).abs()
                    > SignedDuration::try_from(self.lifetimes.max_staleness()).unwrap()
            {
                self.counts.stale += 1;
            }
            let rejected = self.server.rejects(&leaf.ca, self.now);
            assert_eq!(rejected, None, "replica {} at {}", replica.process, self.now);
        }
    }

    /// Targets are written twice per rotation and once per foreign write.
    fn check_write_counts(&self) {
        let Server { bundles, rotations, replaced, .. } = self.server;
        let max = 2 * rotations + replaced + 2;
        assert!(bundles <= max, "{bundles} bundles in {rotations} rotations");
        for object in &self.server.objects {
            let max = bundles + object.foreign_writes;
            assert!(object.injections <= max, "{} injections, {max} needed", object.injections);
        }
    }
}

fn run_model(seed: u64, lifetimes: Lifetimes) -> Counts {
    let mut model = Model::new(seed, 2 + seed % 2, lifetimes);
    let fault_end = 5 * lifetimes.ca.as_secs();
    while model.now < fault_end {
        model.tick(true);
    }
    let before = model.server.rotations;
    while model.now < fault_end + 2 * lifetimes.ca.as_secs() {
        model.tick(false);
    }
    model.check_write_counts();
    assert!(model.server.rotations > before, "seed {seed}: no rotation after the faults ended");
    let ca_set = model.server.ca_set.as_ref().unwrap();
    let current = &ca_set.current.as_ref().unwrap().certificate;
    let time = wall(model.now, 0);
    for replica in &model.replicas {
        let leaf = replica.state.leaf.as_ref().unwrap();
        assert!(replica.gate_open && leaf.from <= time && time < leaf.until, "seed {seed}");
        let just_rotated =
            ca_set.rotated_at.is_some_and(|rotated_at| time < later(rotated_at, SWITCH_GRACE));
        assert!(leaf.ca == *current || just_rotated, "seed {seed}");
        model.counts.leaves += replica.leaves;
    }
    model.counts.rotations = model.server.rotations;
    model.counts
}

/// Time in which every replica switches to a new current CA, clock errors included.
const SWITCH_GRACE: Duration = Duration::from_secs(2 * CALL_TIMEOUT + MAX_CLOCK_SKEW);

fn run_models(seeds: u64, lifetimes: Lifetimes) {
    let mut sum = Counts::default();
    for seed in 1..=seeds {
        let Counts { rotations, foreign_writes, leaders, kills, leaves, stale } =
            run_model(seed, lifetimes);
        sum.rotations += rotations;
        sum.foreign_writes += foreign_writes;
        sum.leaders += leaders;
        sum.kills += kills;
        sum.leaves += leaves;
        sum.stale += stale;
    }
    for (event, count, min) in [
        ("rotations", sum.rotations, 5),
        ("foreign writes", sum.foreign_writes, 20),
        ("leaders", sum.leaders, 20),
        ("kills", sum.kills, 10),
        ("leaves", sum.leaves, 10),
        ("leaves beyond max_staleness", sum.stale, 50),
    ] {
        assert!(count >= min * seeds, "only {count} {event}: too few faults");
    }
}

#[test]
fn api_server_trusts_every_leaf_in_use_and_rotation_continues_after_faults() {
    run_models(100, WIDE);
}

#[test]
fn tightest_lifetimes_keep_every_leaf_trusted() {
    run_models(30, TIGHT);
}
