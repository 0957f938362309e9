//! Model test of the migration: an API server, users, and leaders that crash.
//!
//! Every fault is injected at every call of a migration: a crash, an edit, a deletion, another
//! storage version; and pairs of faults at two calls. After each reconciliation `storedVersions`
//! must contain every version that is stored; in the end all objects must be stored in the storage
//! version, and `storedVersions` must contain only that.
#![expect(clippy::arithmetic_side_effects, reason = "the numbers of a model are small")]

mod leader;
mod server;

use leader::ModelLeader;
use server::{Fault, ModelServer};

use super::record::Phase;

/// More than any of the modelled migrations needs.
const MAX_RECONCILIATIONS: usize = 400;

/// Runs a migration with these faults, each at its call; returns the number of calls.
fn run(faults: &[(usize, Fault)]) -> usize {
    let mut server = ModelServer::new(faults);
    let mut leader = ModelLeader::default();
    let mut idle = 0;
    for _ in 0..MAX_RECONCILIATIONS {
        match leader.reconcile(&mut server) {
            // A fault may have happened after the first read of the first idle reconciliation.
            Ok(true) if server.is_quiet() && idle > 0 => break,
            Ok(true) if server.is_quiet() => idle += 1,
            Ok(_) => idle = 0,
            // The next leader has an empty cache.
            Err(server::Crash) => leader = leader.successor(),
        }
        server.check(faults);
    }
    server.check(faults);
    let context = format!("{faults:?}\n{server:?}");
    assert!(server.is_quiet(), "the migration does not converge: {context}");
    let storage = &server.crd.storage;
    assert!(server.objects.values().all(|object| object.stored == *storage), "{context}");
    assert_eq!(server.crd.stored, std::slice::from_ref(storage), "{context}");
    assert_eq!(
        server.record.as_ref().map(|record| record.phase),
        Some(Phase::Complete),
        "{context}"
    );
    assert_eq!(server.needless_writes, 0, "an object known to be current was written: {context}");
    server.calls
}

#[test]
fn every_object_is_migrated_and_stored_versions_is_trimmed() {
    let calls = run(&[]);
    assert!(calls > 20, "the migration has {calls} calls");
}

#[test]
fn migration_completes_under_any_single_fault_at_any_call() {
    let calls = run(&[]);
    for at in 0..calls + 3 {
        for fault in Fault::ALL {
            run(&[(at, fault)]);
        }
    }
}

/// Runs every `stride`-th pair of faults at two calls.
fn run_pairs(stride: usize) {
    let calls = run(&[]);
    let mut count: usize = 0;
    for first in 0..=calls {
        for second in first..calls + 8 {
            for one in Fault::ALL {
                for other in Fault::ALL {
                    count += 1;
                    if count.is_multiple_of(stride) {
                        run(&[(first, one), (second, other)]);
                    }
                }
            }
        }
    }
}

#[test]
fn migration_completes_under_sampled_pairs_of_faults() {
    // Not a divisor of the number of pairs at two calls, so that every pair is sampled somewhere.
    run_pairs(37);
}

#[test]
#[ignore = "takes minutes; run by make convergence-long"]
fn migration_completes_under_any_pair_of_faults_at_any_two_calls() {
    run_pairs(1);
}
