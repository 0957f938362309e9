//! A model world for the rights: objects come and go, watches are late and are rebuilt, leaders die
//! between two calls, administrators bind, unbind and meddle. The leader runs the real rules; only
//! time and the world are made up. In every world that is tried: nothing is taken where an object
//! was, nobody else's binding is touched, and once the trouble ends all is as it should be and
//! nothing is written any more.
#![expect(clippy::arithmetic_side_effects, reason = "the numbers of a model are small")]

pub(super) mod cluster;
mod leader;

use super::complain::{Lack, Says};
use crate::api::namespace_access::NamespaceAccess;
use crate::api::test_rng::TestRng;
use cluster::{Cluster, NAMESPACES, Owner};
use leader::Leader;

const TROUBLE: u64 = 1000;
/// Long enough for the longest rest, twice.
const CALM: u64 = 1300;
/// After that nothing may be written any more.
const REST: u64 = 100;

/// What has happened, to show that the walk was not idle.
#[derive(Debug, Default)]
struct Tally {
    granted: u64,
    repaired: u64,
    withdrawn: u64,
    saved_by_the_last_look: u64,
    spoken: u64,
    rebuilt: u64,
    killed: u64,
}

struct Walk {
    cluster: Cluster,
    leader: Leader,
    dice: TestRng,
    tally: Tally,
    way: NamespaceAccess,
}

impl Walk {
    fn tick(&mut self, trouble: bool) {
        self.cluster.now += 1;
        if trouble {
            self.hurt();
        }
        self.leader.hear(&mut self.cluster, &mut self.dice, trouble);
        self.leader.act(&mut self.cluster, &mut self.dice, &mut self.tally, trouble);
    }

    /// The adversary.
    fn hurt(&mut self) {
        let namespace = NAMESPACES[self.dice.index(NAMESPACES.len())];
        let cluster = &mut self.cluster;
        match self.dice.below(60) {
            0..6 => cluster.make(self.dice.index(5), namespace),
            6..18 => cluster.end(self.dice.index(5), namespace),
            18 => cluster.bind(namespace, Owner::Administrator),
            19 => cluster.bind(namespace, Owner::Stranger),
            20 => cluster.meddle(namespace),
            21 | 22 => cluster.unbind(namespace),
            23 => cluster.change(self.dice.index(5), namespace),
            24..27 => {
                self.tally.rebuilt += 1;
                self.leader.break_a_watch(cluster, self.dice.index(6));
            }
            27 => {
                self.tally.killed += 1;
                self.leader = Leader::begin(self.way, cluster);
            }
            _ => {}
        }
    }

    /// Whether all is as it should be.
    fn judge(&self, seed: u64) {
        for namespace in NAMESPACES {
            let used = self.cluster.is_used(namespace);
            let owner = self.cluster.owner(namespace);
            let settled = match (self.way, used, owner) {
                (NamespaceAccess::Auto, true, None)
                | (NamespaceAccess::Auto, false, Some(Owner::Operator)) => false,
                (NamespaceAccess::Auto | NamespaceAccess::Manual, _, _) => true,
            };
            assert!(settled, "seed {seed}: {namespace}: used {used}, bound by {owner:?}");
            assert!(self.cluster.is_intact(namespace), "seed {seed}: {namespace} was not repaired");
        }
        for (namespace, says, marked) in self.cluster.words() {
            let wanted = match (self.way, self.cluster.grants(namespace)) {
                (_, true) | (NamespaceAccess::Auto, false) => Says::Nothing,
                (NamespaceAccess::Manual, false) if self.cluster.owner(namespace).is_some() => {
                    Says::NotGranted(Lack::OtherBinding)
                }
                (NamespaceAccess::Manual, false) => Says::NotGranted(Lack::NoBinding),
            };
            assert_eq!(says, wanted, "seed {seed}: {namespace}");
            assert_eq!(marked, wanted != Says::Nothing, "seed {seed}: {namespace}");
        }
    }
}

fn walk(seed: u64, way: NamespaceAccess) -> Tally {
    let mut cluster = Cluster::default();
    let leader = Leader::begin(way, &cluster);
    if way == NamespaceAccess::Manual {
        cluster.bind(NAMESPACES[0], Owner::Administrator);
    }
    let (dice, tally) = (TestRng::new(seed), Tally::default());
    let mut walk = Walk { cluster, leader, dice, tally, way };
    for _ in 0..TROUBLE {
        walk.tick(true);
    }
    for _ in 0..CALM {
        walk.tick(false);
    }
    walk.judge(seed);
    let writes = walk.cluster.writes;
    for _ in 0..REST {
        walk.tick(false);
    }
    assert_eq!(walk.cluster.writes, writes, "seed {seed}: something is written at rest");
    let planned = walk.leader.plans(&walk.cluster);
    assert_eq!(planned, 0, "seed {seed}: something is planned at rest");
    if way == NamespaceAccess::Manual {
        let Tally { granted, repaired, withdrawn, .. } = &walk.tally;
        assert_eq!(
            (0, 0, 0),
            (*granted, *repaired, *withdrawn),
            "seed {seed}: strict means strict"
        );
    }
    walk.tally
}

fn walk_all(seeds: u64, way: NamespaceAccess) -> Tally {
    let mut sum = Tally::default();
    for seed in 1..=seeds {
        let tally = walk(seed, way);
        let Tally { granted, repaired, withdrawn, saved_by_the_last_look, .. } = tally;
        sum.granted += granted;
        sum.repaired += repaired;
        sum.withdrawn += withdrawn;
        sum.saved_by_the_last_look += saved_by_the_last_look;
        sum.spoken += tally.spoken;
        sum.rebuilt += tally.rebuilt;
        sum.killed += tally.killed;
    }
    sum
}

#[test]
fn rights_follow_the_objects_and_are_never_taken_where_one_is() {
    let sum = walk_all(60, NamespaceAccess::Auto);
    for (what, count, least) in [
        ("grants", sum.granted, 300),
        ("repairs", sum.repaired, 30),
        ("withdrawals", sum.withdrawn, 300),
        ("last looks that found an object", sum.saved_by_the_last_look, 5),
        ("rebuilt watches", sum.rebuilt, 1000),
        ("killed leaders", sum.killed, 300),
    ] {
        assert!(count > least, "only {count} {what}: the walk is too tame");
    }
}

#[test]
fn where_an_administrator_binds_objects_say_what_is_missing_and_nothing_is_bound() {
    let sum = walk_all(60, NamespaceAccess::Manual);
    assert!(sum.spoken > 1000, "only {} words: the walk is too tame", sum.spoken);
}
