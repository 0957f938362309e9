//! Model tests of every decision: clusters of 1, 3 and 5 members, faults at every point, crashes
//! between any two calls, edits in flight.
//!
//! Checks five properties, and prints the shortest path to a violation: safety (an existing quorum
//! is never broken, the only copy never removed, one change at a time), progress (without further
//! faults the cluster converges, or stops at a named state that requires user action), a converged
//! cluster is stable, repetition is harmless, and unknown state causes no harm.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and prints the number of states"
)]

#[path = "convergence/defragmentation_cases.rs"]
mod defragmentation_cases;
#[path = "convergence/model.rs"]
mod model;
#[path = "convergence/replay.rs"]
mod replay;
#[path = "convergence/rollback_cases.rs"]
mod rollback_cases;
#[path = "convergence/transport_cases.rs"]
mod transport_cases;

use std::collections::{BTreeSet, HashMap, VecDeque};

use model::{AccessChange, Fault, Model};
use quorate::etcd_cluster::decide::decide;
use quorate::etcd_cluster::plan::{Plan, Reason, Step, Task};
use quorate::etcd_cluster::state::{MemberName, Reading};

/// More reconciliations than convergence ever takes.
const MAX_RECONCILES: usize = 200;

/// A state of the exploration: the model, and how many faults may still happen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    model: Model,
    faults: usize,
}

/// The predecessor of each state, and what led from there.
type Predecessors = HashMap<State, Option<(State, String)>>;

/// Explores every state that is reachable from here, and returns their number.
fn explore(start: Model, faults: usize) -> usize {
    let start = State { model: start, faults };
    let mut predecessors: Predecessors = HashMap::from([(start.clone(), None)]);
    let mut next = VecDeque::from([start]);
    while let Some(state) = next.pop_front() {
        for (action, model, faults) in successors(&state) {
            let after = State { model, faults };
            if let Some(violation) = after.model.violation.clone() {
                panic!("{violation}\n{}\n-> {action}\n{after:#?}", path_to(&predecessors, &state));
            }
            if !predecessors.contains_key(&after) {
                predecessors.insert(after.clone(), Some((state.clone(), action)));
                next.push_back(after);
            }
        }
        if let Err(error) = converge_from(state.model.clone().recovered()) {
            panic!("{error}\n{}", path_to(&predecessors, &state));
        }
    }
    predecessors.len()
}

/// Everything that can happen next.
fn successors(state: &State) -> Vec<(String, Model, usize)> {
    let State { model, faults } = state;
    let plan = decide_checked(model);
    let mut all = vec![("reconcile".to_owned(), model.apply(&plan, usize::MAX), *faults)];
    if *faults == 0 {
        return all;
    }
    let remaining = faults - 1;
    // Where the status matters, its update may also be lost.
    let has_status = model.has_releases() || model.has_access_changes() || model.has_db_files();
    let max_calls = model::call_count(&plan) + usize::from(has_status);
    for cut in 0..max_calls {
        all.push((format!("crash before call {cut}"), model.apply(&plan, cut), remaining));
    }
    if let Some(partial) = model.partially_applied(&plan) {
        all.push(("crash within the step".to_owned(), partial, remaining));
    }
    for fault in model.faults() {
        all.push((format!("{fault:?}"), model.with_fault(&fault), remaining));
    }
    all
}

/// The plan, with what must hold for every plan.
fn decide_checked(model: &Model) -> Plan {
    let state = model.state();
    let plan = decide(&state);
    if state.etcd == Reading::Unknown {
        // A step that is only recorded needs no quorum.
        let is_harmless = matches!(plan.step, Step::Wait | Step::RollBack(_));
        assert!(is_harmless, "a step without quorum: {plan:?}");
    }
    assert_eq!(plan, decide(&state), "the same state, another decision");
    plan
}

/// Without further faults the model converges: to the desired state, or to one that requires user
/// action.
fn converge_from(mut model: Model) -> Result<(), String> {
    for _ in 0..MAX_RECONCILES {
        let plan = decide_checked(&model);
        let after = model.apply(&plan, usize::MAX);
        if let Some(violation) = after.violation {
            return Err(violation);
        }
        if after != model {
            model = after;
            continue;
        }
        // Nothing changes any more but the time.
        let later = model.advance_time();
        if later != model {
            model = later;
            continue;
        }
        if !plan.tasks.is_empty() || plan.step != Step::Wait {
            return Err(format!("{plan:?}, although nothing changes\n{model:#?}"));
        }
        return check_idle(&model, plan.reason);
    }
    let plan = decide_checked(&model);
    Err(format!("no convergence within {MAX_RECONCILES} reconciliations: {plan:?}\n{model:#?}"))
}

fn check_idle(model: &Model, reason: Reason) -> Result<(), String> {
    let fine = match reason {
        Reason::Healthy | Reason::Hibernated => model.is_as_desired(),
        // Only if the faults themselves broke it.
        Reason::QuorumLost => model.has_lost_quorum(),
        // The only member has the only copy in memory.
        Reason::RollingUpdateBlocked => model.has_single_in_memory_copy(),
        // No data has a majority.
        Reason::CorruptionUnresolved => model.has_no_majority(),
        Reason::Paused
        | Reason::BootstrapFailed
        | Reason::RetainedVolumesExist
        | Reason::PreviousClusterTerminating
        | Reason::CreatingMembers
        | Reason::Bootstrapping
        | Reason::ClusterIdMismatch
        | Reason::UnknownMember
        | Reason::RemovingMember
        | Reason::RemovalBlocked
        | Reason::AddingMember
        | Reason::LearnerFailed
        | Reason::ReplacingMember
        | Reason::ReplacementBlocked
        | Reason::RollingUpdate
        | Reason::UpdateFailed
        | Reason::RolledBack
        | Reason::TlsTransition
        | Reason::ConfiguringAuth
        | Reason::RootPasswordMissing
        | Reason::PreparingVersionChange
        | Reason::NoUpgradePath
        | Reason::Defragmenting
        | Reason::NoSpace
        | Reason::NoSpaceUnresolved
        | Reason::CorruptMember
        | Reason::ScalingUp
        | Reason::ScalingDown
        | Reason::MemberUnhealthy => false,
    };
    if fine { Ok(()) } else { Err(format!("converged to {reason:?}\n{model:#?}")) }
}

/// The shortest path to a state.
fn path_to(predecessors: &Predecessors, state: &State) -> String {
    let mut actions = Vec::new();
    let mut here = state;
    while let Some(Some((previous, action))) = predecessors.get(here) {
        actions.push(action.clone());
        here = previous;
    }
    actions.reverse();
    actions.join("\n-> ")
}

fn explore_cluster(replicas: usize, persistent: bool, sizes: &'static [usize], faults: usize) {
    let states = explore(Model::new(replicas, persistent, sizes), faults);
    println!("{replicas} members, persistent {persistent}, {faults} faults: {states} states");
    assert!(states > 20, "only {states} states: the exploration shows nothing");
}

#[test]
fn one_member_converges_from_every_state() {
    explore_cluster(1, true, &[1, 3], 3);
    explore_cluster(1, false, &[1], 2);
}

#[test]
fn three_members_converge_from_every_state() {
    explore_cluster(3, true, &[3, 1], 2);
    explore_cluster(3, false, &[3], 3);
}

#[test]
fn five_members_converge_from_every_state() {
    explore_cluster(5, true, &[5], 1);
}

#[test]
fn upgrade_completes_step_by_step_under_any_faults() {
    for (replicas, faults) in [(1, 3), (3, 2)] {
        let model = Model::new(replicas, true, &[]).with_releases(&[0, 1, 2]);
        let states = explore(model, faults);
        println!("{replicas} members, three versions, {faults} faults: {states} states");
    }
}

#[test]
fn downgrade_completes_or_is_reverted_under_any_fault() {
    let model = reconciled(Model::new(3, true, &[]).with_releases(&[0, 1]), 20);
    let (upgraded, reason, _) = converge(&model.with_fault(&Fault::SetVersion(1)), None);
    assert_eq!(reason, Reason::Healthy);
    let states = explore(upgraded.with_fault(&Fault::SetVersion(0)), 1);
    println!("3 members, downgrade and upgrade, 1 fault: {states} states");
}

#[test]
fn version_may_be_changed_again_and_again() {
    let model = reconciled(Model::new(3, true, &[]).with_releases(&[0, 1, 2]).quiet(), 20);
    let states = explore(model, 5);
    println!("3 members, three versions, 5 edits and crashes: {states} states");
}

/// Takes minutes: `make convergence-long`.
#[test]
#[ignore = "takes minutes; run by make convergence-long"]
fn cluster_converges_under_any_three_faults() {
    explore_cluster(3, true, &[3, 5], 3);
    explore_cluster(5, true, &[5, 3], 2);
    explore_cluster(5, true, &[5], 3);
}

#[test]
fn paused_cluster_is_not_touched() {
    let mut model = Model::new(3, true, &[3]);
    model.paused = true;
    let plan = decide_checked(&model);
    assert!(plan.tasks.is_empty());
    assert_eq!((plan.step, plan.reason), (Step::Wait, Reason::Paused));
}

/// A healthy cluster of three members.
fn healthy_cluster() -> Model {
    reconciled(Model::new(3, true, &[3, 5]), 20)
}

/// The model after this many reconciliations.
fn reconciled(mut model: Model, count: usize) -> Model {
    for _ in 0..count {
        model = model.apply(&decide_checked(&model), usize::MAX);
    }
    model
}

/// Reconciles until nothing changes, with a crash in one reconciliation: the final model, its
/// reason, and the recreated members.
fn converge(model: &Model, crash: Option<(usize, usize)>) -> (Model, Reason, BTreeSet<MemberName>) {
    let mut model = model.clone();
    let mut recreated = BTreeSet::new();
    for round in 0..MAX_RECONCILES {
        let plan = decide_checked(&model);
        if let Step::RecreatePod(name) = &plan.step {
            recreated.insert(name.clone());
        }
        let max_calls = crash.filter(|(at, _)| *at == round).map_or(usize::MAX, |(_, calls)| calls);
        let after = model.apply(&plan, max_calls);
        assert_eq!(after.violation, None);
        let later = after.advance_time();
        let is_idle = after == model && max_calls == usize::MAX;
        if is_idle && later == model {
            return (model, plan.reason, recreated);
        }
        model = if is_idle { later } else { after };
    }
    panic!("no convergence: {model:#?}")
}

#[test]
fn bad_update_is_rolled_back_wherever_the_operator_crashes() {
    for version in [0, 1] {
        let updated =
            healthy_cluster().with_releases(&[0, 1]).with_fault(&Fault::SetVersion(version));
        let bad = updated.with_fault(&Fault::BadSpec);
        let crashes = (0..12).flat_map(|round| (0..4).map(move |call| Some((round, call))));
        for crash in crashes.chain([None]) {
            let (end, reason, recreated) = converge(&bad, crash);
            assert_eq!(reason, Reason::RolledBack, "{crash:?}: {end:#?}");
            assert_eq!(recreated.len(), 1, "{crash:?}: {recreated:?} were recreated");
            // The rollback holds until the spec changes.
            let unchanged = (end.clone(), Reason::RolledBack, BTreeSet::new());
            assert_eq!(converge(&end, None), unchanged);
            let (fixed, reason, _) = converge(&end.with_fault(&Fault::FixSpec), None);
            assert_eq!(reason, Reason::Healthy, "{crash:?}: {fixed:#?}");
            assert!(fixed.is_as_desired(), "{fixed:#?}");
        }
    }
}

/// End-to-end tests crash the operator at each named action; so each action has a name, and occurs
/// here.
#[test]
fn every_action_is_named_and_occurs() {
    let all: BTreeSet<&str> = Task::NAMES.into_iter().chain(Step::NAMES).collect();
    let mut done = defragmentation_cases::actions_of_a_full_cluster();
    let mut next = VecDeque::from([Model::new(3, true, &[3, 1, 0])]);
    // The leader is removed only if the user marks it.
    let leave = |name: &str| Fault::MarkLeaving(MemberName(name.to_owned()));
    next.extend(["a", "b", "c"].map(|name| healthy_cluster().with_fault(&leave(name))));
    let bad = healthy_cluster().with_fault(&Fault::BadSpec);
    next.push_back(reconciled(bad, 3).advance_time());
    next.push_back(healthy_cluster().with_releases(&[0, 1, 2]).with_fault(&Fault::SetVersion(2)));
    let upgrading = healthy_cluster().with_releases(&[0, 1]).with_fault(&Fault::SetVersion(1));
    next.push_back(converge(&upgrading, None).0.with_fault(&Fault::SetVersion(0)));
    let changed =
        |change| healthy_cluster().with_access_changes().with_fault(&Fault::ChangeAccess(change));
    next.push_back(changed(AccessChange::PeerTls));
    let with_auth = converge(&changed(AccessChange::Auth), None).0;
    next.push_back(with_auth.with_fault(&Fault::ChangeAccess(AccessChange::Auth)));
    next.push_back(changed(AccessChange::Auth));
    let mut next: VecDeque<_> = next.into_iter().map(|model| State { model, faults: 2 }).collect();
    let mut predecessors: Predecessors = next.iter().map(|state| (state.clone(), None)).collect();
    while let Some(state) = next.pop_front().filter(|_| done != all) {
        done.extend(decide_checked(&state.model).action_names());
        for (action, model, faults) in successors(&state) {
            let after = State { model, faults };
            if !predecessors.contains_key(&after) {
                predecessors.insert(after.clone(), Some((state.clone(), action)));
                next.push_back(after);
            }
        }
    }
    assert_eq!(done, all);
}

#[test]
fn every_fault_can_occur() {
    let model = healthy_cluster();
    let faults: Vec<String> = model.faults().iter().map(|fault| format!("{fault:?}")).collect();
    for name in [
        "LosePod(",
        "LoseDisk(",
        "EmptyDisk(",
        "LoseAllPods",
        "DeleteMember(",
        "DeleteMemberAndVolume(",
        "SetReplicas(",
        "ChangeTemplate",
    ] {
        assert!(faults.iter().any(|fault| fault.starts_with(name)), "{name}: {faults:?}");
    }
    assert!(matches!(model.faults().first(), Some(Fault::LosePod(_))));
    let faults = model.with_releases(&[0, 1]).faults();
    assert!(faults.contains(&Fault::SetVersion(1)), "{faults:?}");
}
