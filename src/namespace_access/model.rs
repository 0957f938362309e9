//! Model test of namespace access: objects are created and deleted, watches lag and list again,
//! leaders stop between two requests, administrators create, change and delete bindings.
//!
//! The leader runs the real rules; only time and the API server are simulated. For every seed: no
//! binding is deleted where an object existed, no unmanaged binding is written, and once the faults
//! end the state converges and nothing is written any more.
#![expect(clippy::arithmetic_side_effects, reason = "the numbers of a model are small")]

pub(super) mod cluster;
mod leader;

use super::conditions::{AccessCondition, MissingAccess};
use crate::api::namespace_access::NamespaceAccess;
use crate::api::test_rng::TestRng;
use cluster::{Cluster, NAMESPACES, Owner};
use leader::Leader;

const FAULT_TICKS: u64 = 1000;
/// Twice the longest backoff delay.
const CONVERGENCE_TICKS: u64 = 1300;
/// Nothing may be written during these.
const STEADY_TICKS: u64 = 100;

/// What happened, to prove that the model covers the cases.
#[derive(Debug, Default)]
struct Counts {
    created: u64,
    repaired: u64,
    deleted: u64,
    kept_by_live_list: u64,
    updated: u64,
    relisted: u64,
    leader_changes: u64,
}

struct Model {
    cluster: Cluster,
    leader: Leader,
    rng: TestRng,
    counts: Counts,
    mode: NamespaceAccess,
}

impl Model {
    fn tick(&mut self, faults: bool) {
        self.cluster.now += 1;
        if faults {
            self.inject_fault();
        }
        self.leader.receive(&mut self.cluster, &mut self.rng, faults);
        self.leader.act(&mut self.cluster, &mut self.rng, &mut self.counts, faults);
    }

    fn inject_fault(&mut self) {
        let namespace = NAMESPACES[self.rng.index(NAMESPACES.len())];
        let cluster = &mut self.cluster;
        match self.rng.below(60) {
            0..6 => cluster.create_object(self.rng.index(5), namespace),
            6..18 => cluster.delete_object(self.rng.index(5), namespace),
            18 => cluster.create_binding(namespace, Owner::Administrator),
            19 => cluster.create_binding(namespace, Owner::Unrelated),
            20 => cluster.change_subjects(namespace),
            21 | 22 => cluster.delete_binding(namespace),
            23 => cluster.change_object(self.rng.index(5), namespace),
            24..27 => {
                self.counts.relisted += 1;
                self.leader.fail_watch(cluster, self.rng.index(6));
            }
            27 => {
                self.counts.leader_changes += 1;
                self.leader = Leader::new(self.mode, cluster);
            }
            _ => {}
        }
    }

    fn assert_converged(&self, seed: u64) {
        for namespace in NAMESPACES {
            let used = self.cluster.is_used(namespace);
            let owner = self.cluster.owner(namespace);
            let converged = match (self.mode, used, owner) {
                (NamespaceAccess::Auto, true, None)
                | (NamespaceAccess::Auto, false, Some(Owner::Operator)) => false,
                (NamespaceAccess::Auto | NamespaceAccess::Manual, _, _) => true,
            };
            assert!(converged, "seed {seed}: {namespace}: used {used}, bound by {owner:?}");
            assert!(self.cluster.is_intact(namespace), "seed {seed}: {namespace} was not repaired");
        }
        for (namespace, condition, has_condition) in self.cluster.conditions() {
            let desired = match (self.mode, self.cluster.grants_role(namespace)) {
                (_, true) | (NamespaceAccess::Auto, false) => AccessCondition::Absent,
                (NamespaceAccess::Manual, false) if self.cluster.owner(namespace).is_some() => {
                    AccessCondition::NotGranted(MissingAccess::BindingMismatch)
                }
                (NamespaceAccess::Manual, false) => {
                    AccessCondition::NotGranted(MissingAccess::NoBinding)
                }
            };
            assert_eq!(condition, desired, "seed {seed}: {namespace}");
            let set = desired != AccessCondition::Absent;
            assert_eq!(has_condition, set, "seed {seed}: {namespace}");
        }
    }
}

fn run(seed: u64, mode: NamespaceAccess) -> Counts {
    let mut cluster = Cluster::default();
    let leader = Leader::new(mode, &cluster);
    if mode == NamespaceAccess::Manual {
        cluster.create_binding(NAMESPACES[0], Owner::Administrator);
    }
    let (rng, counts) = (TestRng::new(seed), Counts::default());
    let mut model = Model { cluster, leader, rng, counts, mode };
    for _ in 0..FAULT_TICKS {
        model.tick(true);
    }
    for _ in 0..CONVERGENCE_TICKS {
        model.tick(false);
    }
    model.assert_converged(seed);
    let writes = model.cluster.writes;
    for _ in 0..STEADY_TICKS {
        model.tick(false);
    }
    assert_eq!(model.cluster.writes, writes, "seed {seed}: writes in the steady state");
    let planned = model.leader.planned(&model.cluster);
    assert_eq!(planned, 0, "seed {seed}: steps planned in the steady state");
    if mode == NamespaceAccess::Manual {
        let Counts { created, repaired, deleted, .. } = &model.counts;
        assert_eq!(
            (0, 0, 0),
            (*created, *repaired, *deleted),
            "seed {seed}: bindings were written in manual mode"
        );
    }
    model.counts
}

fn run_all(seeds: u64, mode: NamespaceAccess) -> Counts {
    let mut sum = Counts::default();
    for seed in 1..=seeds {
        let counts = run(seed, mode);
        let Counts { created, repaired, deleted, kept_by_live_list, .. } = counts;
        sum.created += created;
        sum.repaired += repaired;
        sum.deleted += deleted;
        sum.kept_by_live_list += kept_by_live_list;
        sum.updated += counts.updated;
        sum.relisted += counts.relisted;
        sum.leader_changes += counts.leader_changes;
    }
    sum
}

#[test]
fn bindings_follow_the_objects_and_are_never_deleted_where_one_exists() {
    let sum = run_all(60, NamespaceAccess::Auto);
    for (what, count, min) in [
        ("created bindings", sum.created, 300),
        ("repaired bindings", sum.repaired, 30),
        ("deleted bindings", sum.deleted, 300),
        ("bindings kept by a live list", sum.kept_by_live_list, 5),
        ("repeated lists", sum.relisted, 1000),
        ("leader changes", sum.leader_changes, 300),
    ] {
        assert!(count > min, "only {count} {what}: the model covers too little");
    }
}

#[test]
fn manual_mode_sets_conditions_and_writes_no_binding() {
    let sum = run_all(60, NamespaceAccess::Manual);
    assert!(sum.updated > 1000, "only {} updates: the model covers too little", sum.updated);
}
