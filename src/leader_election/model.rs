//! Model test of leader election: an API server, a slow and lossy network, and replicas that are
//! paused, killed, stopped and started while the Lease is deleted or its holder cleared by hand.
//! The replicas run the real rules; time, network and API server are simulated. Two properties hold
//! in every run: never two leaders at once, and exactly one within two minutes after the faults
//! end.
#![expect(clippy::arithmetic_side_effects, reason = "the numbers of a model are small")]

mod replica;
mod server;

use std::time::Duration;

use replica::{Process, Replica};
use server::{Request, Response, Server};

use super::Timing;
use crate::api::test_rng::TestRng;

/// The tightest valid timing: a renew deadline of four fifths of the lease duration.
const TIGHT: Timing = timing(15, 12, 2);
/// Replicas of two versions during a rolling update. A process that starts after a deletion has
/// never seen the leader of the deleted Lease, so no deadline may exceed the shortest lease
/// duration; see docs/leader-election.md.
const MIXED: [Timing; 3] = [TIGHT, timing(20, 12, 3), timing(15, 10, 5)];
/// Duration of one tick, in milliseconds.
const TICK: u64 = 100;
/// Duration with faults, in milliseconds.
const FAULTS: u64 = 5 * 60_000;
/// Duration without faults: the last late message, an expiry and a probation, one after the other.
const RECOVERY: u64 = 120_000;

const fn timing(lease: u64, renew: u64, retry: u64) -> Timing {
    Timing {
        lease_duration: Duration::from_secs(lease),
        renew_deadline: Duration::from_secs(renew),
        retry_period: Duration::from_secs(retry),
    }
}

/// Parameters of a run.
#[derive(Clone, Copy)]
struct ModelConfig {
    replicas: u64,
    mixed_timing: bool,
    /// Whether all processes have the same identity, which the settings do not permit.
    same_identity: bool,
}

/// A request or its response, in flight.
struct Message {
    due: u64,
    /// The process that sent the request. The process that replaces it has another number.
    process: u64,
    request_id: u64,
    payload: Payload,
}

enum Payload {
    Request(Request),
    Response(Response),
}

/// Event counts, to prove that the model was not idle.
#[derive(Default)]
struct Counts {
    terms: u64,
    deletions: u64,
    cleared_holders: u64,
}

struct Model {
    now: u64,
    config: ModelConfig,
    server: Server,
    messages: Vec<Message>,
    replicas: Vec<Replica>,
    processes: u64,
    rng: TestRng,
    counts: Counts,
    leader: Option<u64>,
}

impl Model {
    fn new(seed: u64, config: ModelConfig) -> Self {
        let mut model = Self {
            now: 0,
            config,
            server: Server::default(),
            messages: Vec::new(),
            replicas: Vec::new(),
            processes: 0,
            rng: TestRng::new(seed),
            counts: Counts::default(),
            leader: None,
        };
        for _ in 0..config.replicas {
            let replica = model.start_process();
            model.replicas.push(replica);
        }
        model
    }

    /// A process that starts now, with a clock of its own.
    fn start_process(&mut self) -> Replica {
        self.processes += 1;
        let number = self.processes;
        let timing =
            if self.config.mixed_timing { MIXED[self.rng.index(MIXED.len())] } else { TIGHT };
        let name = if self.config.same_identity { 0 } else { number };
        let process = Process {
            number,
            identity: format!("replica-{name}"),
            timing,
            clock_rate: 98 + self.rng.below(5),
            clock_offset: self.rng.below(1_000_000),
        };
        Replica::new(process, self.now)
    }

    fn tick(&mut self, faults: bool) {
        self.now += TICK;
        if faults {
            self.inject_faults();
        }
        self.deliver(faults);
        for index in 0..self.replicas.len() {
            if let Some((id, request)) = self.replicas[index].tick(self.now) {
                let process = self.replicas[index].process.number;
                self.send(process, id, Payload::Request(request), faults);
            }
            if self.replicas[index].is_stopped() {
                self.replicas[index] = self.start_process();
            }
        }
        self.check_single_leader();
    }

    /// The adversary.
    fn inject_faults(&mut self) {
        if self.rng.one_in(200) && self.server.delete() {
            self.counts.deletions += 1;
        }
        if self.rng.one_in(200) && self.server.clear_holder() {
            self.counts.cleared_holders += 1;
        }
        let index = self.rng.index(self.replicas.len());
        if self.rng.one_in(150) {
            let until = self.now + self.rng.below(25_000);
            self.replicas[index].paused_until = until;
        }
        if self.rng.one_in(400) {
            // Killed without a release; its messages stay in flight.
            self.replicas[index] = self.start_process();
        } else if self.rng.one_in(300) {
            self.replicas[index].stop();
        }
    }

    fn send(&mut self, process: u64, request_id: u64, payload: Payload, faults: bool) {
        if faults && self.rng.one_in(20) {
            return;
        }
        let delay = match self.rng.below(20) {
            0 if faults => self.rng.below(20_000),
            1..4 if faults => self.rng.below(4_000),
            _ => self.rng.below(100),
        };
        self.messages.push(Message { due: self.now + delay, process, request_id, payload });
    }

    fn deliver(&mut self, faults: bool) {
        let now = self.now;
        let due: Vec<Message> =
            self.messages.extract_if(.., |message| message.due <= now).collect();
        for Message { due: _, process, request_id, payload } in due {
            match payload {
                Payload::Request(request) => {
                    let response = self.server.handle(request);
                    self.send(process, request_id, Payload::Response(response), faults);
                }
                Payload::Response(response) => {
                    let mut replicas = self.replicas.iter_mut();
                    let sender = replicas.find(|replica| replica.process.number == process);
                    if let Some(sender) = sender {
                        sender.inbox.push((request_id, response));
                    }
                }
            }
        }
    }

    fn leaders(&self) -> Vec<u64> {
        let leading = self.replicas.iter().filter(|replica| replica.leads_at(self.now));
        leading.map(|replica| replica.process.number).collect()
    }

    fn check_single_leader(&mut self) {
        let leaders = self.leaders();
        assert!(leaders.len() <= 1, "two leaders at {} ms: {leaders:?}", self.now);
        let leader = leaders.first().copied();
        if leader.is_some() && leader != self.leader {
            self.counts.terms += 1;
        }
        self.leader = leader;
    }
}

fn run_model(seed: u64, config: ModelConfig) -> Counts {
    let mut model = Model::new(seed, config);
    while model.now < FAULTS {
        model.tick(true);
    }
    while model.now < FAULTS + RECOVERY {
        model.tick(false);
    }
    assert_eq!(model.leaders().len(), 1, "seed {seed}: no leader after the faults ended");
    model.counts
}

/// Runs with two or three replicas, with one timing or a mix of three.
fn run_models(seeds: u64, same_identity: bool) -> Counts {
    let mut sum = Counts::default();
    for seed in 1..=seeds {
        let mixed_timing = seed % 4 < 2;
        let config = ModelConfig { replicas: 2 + seed % 2, mixed_timing, same_identity };
        let Counts { terms, deletions, cleared_holders } = run_model(seed, config);
        sum.terms += terms;
        sum.deletions += deletions;
        sum.cleared_holders += cleared_holders;
    }
    sum
}

#[test]
fn there_are_never_two_leaders_and_one_leader_once_faults_end() {
    let sum = run_models(600, false);
    for (event, count) in [
        ("terms", sum.terms),
        ("deletions", sum.deletions),
        ("cleared holders", sum.cleared_holders),
    ] {
        assert!(count > 1200, "only {count} {event}: too few faults");
    }
}

#[test]
fn processes_with_the_same_identity_do_not_lead_together() {
    let sum = run_models(200, true);
    let count = sum.terms;
    assert!(count > 400, "only {count} terms: too few faults");
}

#[test]
fn next_leader_does_not_wait_for_expiry_after_a_shutdown() {
    let config = ModelConfig { replicas: 2, mixed_timing: false, same_identity: false };
    let mut model = Model::new(7, config);
    while model.leaders().is_empty() {
        model.tick(false);
    }
    let leads = |replica: &Replica| replica.leads_at(model.now);
    let index = model.replicas.iter().position(leads).unwrap();
    model.replicas[index].stop();
    let (stopped, first) = (model.now, model.leaders());
    while model.leaders().is_empty() || model.leaders() == first {
        model.tick(false);
    }
    let elapsed = model.now - stopped;
    assert!(elapsed < 3_000, "{elapsed} ms without a leader");
}
