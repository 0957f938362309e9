//! A leader of the model world: the real rules between watches and calls that are made up.
//! Comes in: the cluster's log, late. Goes out: one call at a tick, so that the world moves between
//! two calls of one step.
//! May touch: the types of the wing.

use std::collections::VecDeque;
use std::time::Duration;

use super::Tally;
use super::cluster::{Answer, BINDINGS, Cluster};
use crate::api::monotonic::MonotonicTime;
use crate::api::namespace_access::NamespaceAccess;
use crate::api::test_rng::TestRng;
use crate::api::{kinds, names};
use crate::grants::complain::{Word, complain};
use crate::grants::decide::{Act, Step, decide};
use crate::grants::memory::{Memory, Outcome, Told, Who};
use crate::grants::seen::{News, Seen, Which, World};
use crate::grants::shelf::Change;

/// One watch: what is on its way, and how far into the cluster's log it is.
struct Watch {
    place: usize,
    mail: VecDeque<News>,
    read: usize,
}

/// What is still to do of a pass.
enum Task {
    Step(Step),
    /// The looks before a withdrawal: the next kind to look at, and when the first look was.
    Look(Step, usize, u64),
    Word(Word),
}

pub(super) struct Leader {
    way: NamespaceAccess,
    world: World,
    memory: Memory,
    watches: Vec<Watch>,
    tasks: VecDeque<Task>,
}

impl Leader {
    pub(super) fn begin(way: NamespaceAccess, cluster: &Cluster) -> Self {
        let mut leader = Self {
            way,
            world: World::default(),
            memory: Memory::default(),
            watches: Vec::new(),
            tasks: VecDeque::new(),
        };
        for place in 0..=BINDINGS {
            leader.watches.push(Watch { place, mail: VecDeque::new(), read: 0 });
            leader.list(cluster, place);
        }
        leader
    }

    /// A list of what is true now, and everything after it.
    fn list(&mut self, cluster: &Cluster, place: usize) {
        let watch = &mut self.watches[place];
        watch.mail = VecDeque::from([marker(place, Mark::Begun)]);
        watch.mail.extend(cluster.list(place));
        watch.mail.push_back(marker(place, Mark::Complete));
        watch.read = cluster.log.len();
    }

    pub(super) fn break_a_watch(&mut self, cluster: &Cluster, place: usize) {
        self.world.take(marker(place, Mark::Lost));
        self.list(cluster, place);
    }

    pub(super) fn hear(&mut self, cluster: &mut Cluster, dice: &mut TestRng, trouble: bool) {
        for watch in &mut self.watches {
            let log = cluster.log.iter().skip(watch.read);
            let here = log.filter(|(place, _)| *place == watch.place);
            watch.mail.extend(here.map(|(_, news)| news.clone()));
            watch.read = cluster.log.len();
            let heard = if trouble { dice.below(3) } else { 100 };
            for _ in 0..heard {
                if let Some(news) = watch.mail.pop_front() {
                    self.world.take(news);
                }
            }
        }
    }

    fn now(cluster: &Cluster) -> MonotonicTime {
        MonotonicTime::new(Duration::from_millis(cluster.now * 100))
    }

    fn seen(&self, cluster: &Cluster) -> Seen<'_> {
        let now = Self::now(cluster);
        Seen { way: self.way, world: &self.world, memory: &self.memory, now }
    }

    /// How much there is to do.
    pub(super) fn plans(&self, cluster: &Cluster) -> usize {
        let seen = self.seen(cluster);
        decide(&seen).steps.len() + complain(&seen).0.len()
    }

    pub(super) fn act(
        &mut self,
        cluster: &mut Cluster,
        dice: &mut TestRng,
        tally: &mut Tally,
        trouble: bool,
    ) {
        let Some(task) = self.tasks.pop_front() else {
            let seen = self.seen(cluster);
            let steps = decide(&seen).steps.into_iter().map(Task::Step);
            self.tasks = steps.chain(complain(&seen).0.into_iter().map(Task::Word)).collect();
            return;
        };
        // The call is not made, or it is made and its answer is lost.
        let lost = trouble && dice.one_in(20);
        if lost && dice.one_in(2) {
            self.settle(cluster, &task, Outcome::Unknown);
            return;
        }
        let outcome = match &task {
            Task::Word(word) => self.speak(cluster, word, tally, lost),
            Task::Step(step) => match &step.act {
                Act::Grant => {
                    let answer = cluster.create(&step.namespace);
                    self.landed(answer, &mut tally.granted, lost)
                }
                Act::Repair(target) => {
                    let answer = cluster.repair(&step.namespace, target);
                    self.landed(answer, &mut tally.repaired, lost)
                }
                Act::Withdraw(_) => {
                    self.tasks.push_front(Task::Look(step.clone(), 0, cluster.now));
                    return;
                }
            },
            Task::Look(step, kind, looked) if *kind < kinds::ALL.len() => {
                if !cluster.has(*kind, &step.namespace) {
                    self.tasks.push_front(Task::Look(step.clone(), kind + 1, *looked));
                    return;
                }
                tally.saved_by_the_last_look += 1;
                Outcome::NotNow
            }
            Task::Look(step, _, looked) => {
                let Act::Withdraw(target) = &step.act else { panic!("{step:?}") };
                let answer = cluster.delete(&step.namespace, target, *looked);
                if matches!(answer, Answer::Done(_)) && !lost {
                    self.world.bindings.remove(
                        &step.namespace,
                        names::NAMESPACE_ROLE_BINDING,
                        &target.uid,
                    );
                }
                self.landed(answer, &mut tally.withdrawn, lost)
            }
        };
        self.settle(cluster, &task, if lost { Outcome::Unknown } else { outcome });
    }

    fn landed(&mut self, answer: Answer, count: &mut u64, lost: bool) -> Outcome {
        match answer {
            Answer::Done(news) => {
                *count += 1;
                if let Some(News::Binding(Change::Put(entry))) = news
                    && !lost
                {
                    self.world.bindings.put(entry);
                }
                Outcome::Done
            }
            Answer::Conflict => Outcome::NotNow,
        }
    }

    fn speak(
        &mut self,
        cluster: &mut Cluster,
        word: &Word,
        tally: &mut Tally,
        lost: bool,
    ) -> Outcome {
        let Some(version) = cluster.speak(word) else { return Outcome::NotNow };
        tally.spoken += 1;
        let (before, after) = (word.version.clone(), version.to_string());
        if !lost {
            self.memory.tell(&word.uid, Told { says: word.says, before, after });
        }
        Outcome::Done
    }

    fn settle(&mut self, cluster: &Cluster, task: &Task, outcome: Outcome) {
        let who = match task {
            Task::Step(step) | Task::Look(step, _, _) => Who::Namespace(step.namespace.clone()),
            Task::Word(word) => Who::Object(word.uid.clone()),
        };
        let now = Self::now(cluster);
        self.memory.settle(who, outcome, now);
        self.memory.forget(&self.world.uids(), now);
    }
}

#[derive(Clone, Copy)]
enum Mark {
    Begun,
    Complete,
    Lost,
}

fn marker(place: usize, mark: Mark) -> News {
    fn change<T>(mark: Mark) -> Change<T> {
        match mark {
            Mark::Begun => Change::Begun,
            Mark::Complete => Change::Complete,
            Mark::Lost => Change::Lost,
        }
    }
    match kinds::ALL.get(place) {
        Some(kind) => News::Object(Which(kind), change(mark)),
        None => News::Binding(change(mark)),
    }
}
