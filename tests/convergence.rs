//! Every decision about a cluster, walked through a model world to the end: clusters of 1, 3 and 5, faults at every
//! point, crashes between any two calls, edits in flight.
//! Comes in: the decision, which is a function. Goes out: five properties, or the shortest way to where one breaks:
//! safety (a standing quorum is never broken, the only copy never removed, one change at a time), progress (when faults
//! stop it comes to rest, or stands at a named state that needs a person), rest is stable, repeating is harmless, and
//! what is unknown is treated with care.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and tells how far it walked"
)]

#[path = "convergence/called.rs"]
mod called;
#[path = "convergence/diary.rs"]
mod diary;
#[path = "convergence/judged.rs"]
mod judged;
#[path = "convergence/tended.rs"]
mod tended;
#[path = "convergence/world.rs"]
mod world;

use std::collections::{BTreeSet, HashMap, VecDeque};

use quorate::etcd_cluster::decide::decide;
use quorate::etcd_cluster::plan::{Plan, Reason, Step, Task};
use quorate::etcd_cluster::state::{MemberName, Reading};
use world::{Fault, Turn, World};

/// More passes than any way to rest takes.
const MOST_PASSES: usize = 200;

/// A state of the walk: the world, and how many faults may still happen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    world: World,
    faults: usize,
}

/// How a state was come to.
type Trail = HashMap<State, Option<(State, String)>>;

/// Walks every way from here, and answers with how many states there were.
fn walk(start: World, faults: usize) -> usize {
    let start = State { world: start, faults };
    let mut trail: Trail = HashMap::from([(start.clone(), None)]);
    let mut next = VecDeque::from([start]);
    while let Some(state) = next.pop_front() {
        for (word, world, faults) in ways(&state) {
            let after = State { world, faults };
            if let Some(broken) = after.world.broken.clone() {
                panic!("{broken}\n{}\n-> {word}\n{after:#?}", told(&trail, &state));
            }
            if !trail.contains_key(&after) {
                trail.insert(after.clone(), Some((state.clone(), word)));
                next.push_back(after);
            }
        }
        if let Err(why) = comes_to_rest(state.world.clone().mended()) {
            panic!("{why}\n{}", told(&trail, &state));
        }
    }
    trail.len()
}

/// Everything that can happen next.
fn ways(state: &State) -> Vec<(String, World, usize)> {
    let State { world, faults } = state;
    let plan = checked(world);
    let mut ways = vec![("pass".to_owned(), world.after(&plan, usize::MAX), *faults)];
    if *faults == 0 {
        return ways;
    }
    let left = faults - 1;
    // Where releases or doors matter, what was done may also not have been told.
    let tells = world.has_releases() || world.has_doors() || world.has_files();
    let most = world::calls(&plan) + usize::from(tells);
    for cut in 0..most {
        ways.push((format!("crash before call {cut}"), world.after(&plan, cut), left));
    }
    if let Some(half) = world.half_done(&plan) {
        ways.push(("crash within the step".to_owned(), half, left));
    }
    for fault in world.faults() {
        ways.push((format!("{fault:?}"), world.struck(&fault), left));
    }
    ways
}

/// The plan, with what must hold for each.
fn checked(world: &World) -> Plan {
    let seen = world.seen();
    let plan = decide(&seen);
    if seen.etcd == Reading::Unknown {
        // What is only written down needs no word from etcd.
        let is_harmless = matches!(plan.step, Step::Wait | Step::RollBack(_));
        assert!(is_harmless, "a step without a word from etcd: {plan:?}");
    }
    assert_eq!(plan, decide(&seen), "the same look, another decision");
    plan
}

/// When nothing more happens to it, the world comes to rest: as it is wanted, or where a person is needed.
fn comes_to_rest(mut world: World) -> Result<(), String> {
    for _ in 0..MOST_PASSES {
        let plan = checked(&world);
        let after = world.after(&plan, usize::MAX);
        if let Some(broken) = after.broken {
            return Err(broken);
        }
        if after != world {
            world = after;
            continue;
        }
        // Nothing changes any more but the time.
        let later = world.later();
        if later != world {
            world = later;
            continue;
        }
        if !plan.tasks.is_empty() || plan.step != Step::Wait {
            return Err(format!("at rest it still does {plan:?}\n{world:#?}"));
        }
        return rested(&world, plan.reason);
    }
    Err(format!("no rest within {MOST_PASSES} passes: {:?}\n{world:#?}", checked(&world)))
}

fn rested(world: &World, because: Reason) -> Result<(), String> {
    let fine = match because {
        Reason::Healthy | Reason::Hibernated => world.is_as_wanted(),
        // It is true only where the faults themselves took too much.
        Reason::QuorumLost => world.has_lost_its_quorum(),
        // The only copy is in the memory of the only member.
        Reason::RollingUpdateBlocked => world.has_one_copy_in_memory(),
        // No data is in as many places as must agree.
        Reason::CorruptionUnresolved => world.has_no_majority(),
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
    if fine { Ok(()) } else { Err(format!("it rests at {because:?}\n{world:#?}")) }
}

/// The way to a state, in words.
fn told(trail: &Trail, state: &State) -> String {
    let mut words = Vec::new();
    let mut here = state;
    while let Some(Some((before, word))) = trail.get(here) {
        words.push(word.clone());
        here = before;
    }
    words.reverse();
    words.join("\n-> ")
}

fn walked(replicas: usize, durable: bool, sizes: &'static [usize], faults: usize) {
    let states = walk(World::new(replicas, durable, sizes), faults);
    println!("{replicas} members, durable {durable}, {faults} faults: {states} states");
    assert!(states > 20, "only {states} states: the walk shows nothing");
}

#[test]
fn one_member_comes_to_rest_from_everywhere() {
    walked(1, true, &[1, 3], 3);
    walked(1, false, &[1], 2);
}

#[test]
fn three_members_come_to_rest_from_everywhere() {
    walked(3, true, &[3, 1], 2);
    walked(3, false, &[3], 3);
}

#[test]
fn five_members_come_to_rest_from_everywhere() {
    walked(5, true, &[5], 1);
}

#[test]
fn a_cluster_goes_up_step_by_step_whatever_happens() {
    for (replicas, faults) in [(1, 3), (3, 2)] {
        let world = World::new(replicas, true, &[]).with_releases(&[0, 1, 2]);
        let states = walk(world, faults);
        println!("{replicas} members, three releases, {faults} faults: {states} states");
    }
}

#[test]
fn a_cluster_goes_down_a_step_and_changes_its_mind_whatever_happens() {
    let mut world = World::new(3, true, &[]).with_releases(&[0, 1]);
    for _ in 0..20 {
        world = world.after(&checked(&world), usize::MAX);
    }
    let (above, because, _) = ends_at(&world.struck(&Fault::Ask(1)), None);
    assert_eq!(because, Reason::Healthy);
    let states = walk(above.struck(&Fault::Ask(0)), 1);
    println!("3 members, down and up again, 1 fault: {states} states");
}

#[test]
fn users_may_change_their_mind_about_releases_again_and_again() {
    let world = after(World::new(3, true, &[]).with_releases(&[0, 1, 2]).calm(), 20);
    let states = walk(world, 5);
    println!("3 members, three releases, 5 edits and crashes: {states} states");
}

/// What takes minutes: `make convergence-long`.
#[test]
#[ignore = "minutes; make convergence-long walks it"]
fn three_faults_are_survived_from_everywhere() {
    walked(3, true, &[3, 5], 3);
    walked(5, true, &[5, 3], 2);
    walked(5, true, &[5], 3);
}

#[test]
fn who_is_paused_is_left_alone() {
    let mut world = World::new(3, true, &[3]);
    world.paused = true;
    let plan = checked(&world);
    assert!(plan.tasks.is_empty());
    assert_eq!((plan.step, plan.reason), (Step::Wait, Reason::Paused));
}

/// A cluster of three that is well.
fn settled() -> World {
    after(World::new(3, true, &[3, 5]), 20)
}

/// So many passes later.
fn after(mut world: World, passes: usize) -> World {
    for _ in 0..passes {
        world = world.after(&checked(&world), usize::MAX);
    }
    world
}

/// The world after a member was made anew.
fn touched(world: &World) -> World {
    after(world.clone(), 3)
}

/// Passes until nothing changes any more, with a crash in one of them: what is the case then, and whose pods were made anew.
fn ends_at(world: &World, crash: Option<(usize, usize)>) -> (World, Reason, BTreeSet<MemberName>) {
    let mut world = world.clone();
    let mut renewed = BTreeSet::new();
    for pass in 0..MOST_PASSES {
        let plan = checked(&world);
        if let Step::RecreatePod(name) = &plan.step {
            renewed.insert(name.clone());
        }
        let most = crash.filter(|it| it.0 == pass).map_or(usize::MAX, |it| it.1);
        let after = world.after(&plan, most);
        assert_eq!(after.broken, None);
        let later = after.later();
        let is_still = after == world && most == usize::MAX;
        if is_still && later == world {
            return (world, plan.reason, renewed);
        }
        world = if is_still { later } else { after };
    }
    panic!("no rest: {world:#?}")
}

#[test]
fn a_change_that_nobody_starts_with_is_taken_back_wherever_somebody_crashes() {
    for asked in [0, 1] {
        let bad = settled().with_releases(&[0, 1]).struck(&Fault::Ask(asked)).struck(&Fault::Spoil);
        let crashes = (0..12).flat_map(|pass| (0..4).map(move |call| Some((pass, call))));
        for crash in crashes.chain([None]) {
            let (rest, because, renewed) = ends_at(&bad, crash);
            assert_eq!(because, Reason::RolledBack, "{crash:?}: {rest:#?}");
            assert_eq!(renewed.len(), 1, "{crash:?}: {renewed:?} were touched");
            // It stays so, until the spec is changed.
            let still = (rest.clone(), Reason::RolledBack, BTreeSet::new());
            assert_eq!(ends_at(&rest, None), still);
            let (mended, because, _) = ends_at(&rest.struck(&Fault::Mend), None);
            assert_eq!(because, Reason::Healthy, "{crash:?}: {mended:#?}");
            assert!(mended.is_as_wanted(), "{mended:#?}");
        }
    }
}

/// Stories let the operator die in each deed that has a word; so each has one, and happens here, too.
#[test]
fn every_deed_is_done_somewhere_and_has_its_word() {
    let all: BTreeSet<&str> = Task::NAMES.into_iter().chain(Step::NAMES).collect();
    let mut done = tended::deeds_of_a_full_cluster();
    let mut next = VecDeque::from([World::new(3, true, &[3, 1, 0])]);
    // The leader goes only where somebody sends it away.
    let away = |name: &str| Fault::SendAway(MemberName(name.to_owned()));
    next.extend(["a", "b", "c"].map(|name| settled().struck(&away(name))));
    next.push_back(touched(&settled().struck(&Fault::Spoil)).later());
    next.push_back(settled().with_releases(&[0, 1, 2]).struck(&Fault::Ask(2)));
    let above = ends_at(&settled().with_releases(&[0, 1]).struck(&Fault::Ask(1)), None).0;
    next.push_back(above.struck(&Fault::Ask(0)));
    let turned = |turn| settled().with_doors().struck(&Fault::Turn(turn));
    next.push_back(turned(Turn::Peers));
    next.push_back(ends_at(&turned(Turn::Users), None).0.struck(&Fault::Turn(Turn::Users)));
    next.push_back(turned(Turn::Users));
    let mut next: VecDeque<_> = next.into_iter().map(|world| State { world, faults: 2 }).collect();
    let mut trail: Trail = next.iter().map(|state| (state.clone(), None)).collect();
    while let Some(state) = next.pop_front().filter(|_| done != all) {
        done.extend(checked(&state.world).action_names());
        for (word, world, faults) in ways(&state) {
            let after = State { world, faults };
            if !trail.contains_key(&after) {
                trail.insert(after.clone(), Some((state.clone(), word)));
                next.push_back(after);
            }
        }
    }
    assert_eq!(done, all);
}

#[test]
fn every_fault_can_happen_somewhere() {
    let world = settled();
    let names: Vec<String> = world.faults().iter().map(|it| format!("{it:?}")).collect();
    for word in
        ["LosePod", "LoseDisk", "EmptyDisk", "LoseAllPods", "Unmake", "Erase", "Edit", "Change"]
    {
        assert!(names.iter().any(|it| it.starts_with(word)), "{word} is not in {names:?}");
    }
    assert!(matches!(world.faults().first(), Some(Fault::LosePod(_))));
    let asked = world.with_releases(&[0, 1]).faults();
    assert!(asked.contains(&Fault::Ask(1)), "{asked:?}");
}
