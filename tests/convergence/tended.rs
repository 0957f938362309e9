//! Files that are full or half empty, and data that differs, whatever else happens.

use std::collections::BTreeSet;

use quorate::etcd_cluster::plan::{Reason, Step};
use quorate::etcd_cluster::state::MemberName;

use super::world::{Fault, Mishap, World};
use super::{MOST_PASSES, checked, ends_at, settled, walk};

fn name(text: &str) -> MemberName {
    MemberName(text.to_owned())
}

fn befallen(mishaps: &[Mishap]) -> World {
    let world = settled().with_files();
    mishaps.iter().fold(world, |world, it| world.struck(&Fault::Befall(it.clone())))
}

#[test]
fn files_are_rewritten_whatever_happens() {
    let free = ["a", "b", "c"].map(|it| Mishap::Free(name(it)));
    println!("3 members, all files, 1 fault: {} states", walk(befallen(&free), 1));
    println!("3 members, from rest, 2 faults: {} states", walk(settled().with_files(), 2));
}

#[test]
fn room_is_made_whatever_happens() {
    for mishap in [Mishap::Full, Mishap::Stuffed] {
        let states = walk(befallen(std::slice::from_ref(&mishap)), 1);
        println!("3 members, {mishap:?}, 1 fault: {states} states");
    }
}

#[test]
fn data_is_the_same_again_whatever_happens() {
    for lost in ["a", "b", "c"] {
        let states = walk(befallen(&[Mishap::Differ(name(lost))]), 1);
        println!("3 members, {lost} differs, 1 fault: {states} states");
    }
}

#[test]
fn an_only_member_rewrites_its_file_and_makes_room_whatever_happens() {
    let mut world = World::new(1, true, &[1]).with_files();
    for _ in 0..20 {
        world = world.after(&checked(&world), usize::MAX);
    }
    println!("1 member, files, 3 faults: {} states", walk(world, 3));
}

/// What takes minutes: `make convergence-long`.
#[test]
#[ignore = "minutes; make convergence-long walks it"]
fn files_and_data_survive_two_faults_more() {
    for mishap in
        [Mishap::Full, Mishap::Stuffed, Mishap::Differ(name("a")), Mishap::Free(name("a"))]
    {
        let states = walk(befallen(std::slice::from_ref(&mishap)), 2);
        println!("3 members, {mishap:?}, 2 faults: {states} states");
    }
}

/// What is done about a cluster that is full: one way, and a long one.
pub(super) fn deeds_of_a_full_cluster() -> BTreeSet<&'static str> {
    let mut world = befallen(&[Mishap::Full]);
    let mut done = BTreeSet::new();
    for _ in 0..20 {
        let plan = checked(&world);
        done.extend(plan.action_names());
        world = world.after(&plan, usize::MAX);
    }
    done
}

/// Every step from here until nothing more is done.
fn steps(world: &World) -> (World, Vec<Step>, Reason) {
    let mut world = world.clone();
    let mut done = Vec::new();
    for _ in 0..MOST_PASSES {
        let plan = checked(&world);
        let after = world.after(&plan, usize::MAX);
        assert_eq!(after.broken, None);
        if plan.step != Step::Wait {
            done.push(plan.step.clone());
        }
        if after == world {
            return (world, done, plan.reason);
        }
        world = after;
    }
    panic!("no rest: {world:#?}")
}

#[test]
fn one_member_after_the_other_rewrites_its_file_and_the_leader_is_last() {
    let free = ["a", "b", "c"].map(|it| Mishap::Free(name(it)));
    let world = befallen(&free);
    let leader = world.seen().etcd.known().and_then(|etcd| {
        let leads = etcd.members.iter().find(|it| etcd.leads(it.id));
        leads.map(|it| it.name.clone())
    });
    let (_, done, because) = steps(&world);
    assert_eq!(because, Reason::Healthy);
    let turns: Vec<&MemberName> = done
        .iter()
        .filter_map(|it| if let Step::Defragment(of) = it { Some(of) } else { None })
        .collect();
    assert_eq!(turns.len(), 3, "{done:?}");
    assert_eq!(turns.last().copied(), leader.as_ref(), "{done:?}");
    assert!(done.iter().any(|it| matches!(it, Step::MoveLeader(_))), "{done:?}");
    assert_eq!(done.last(), Some(&Step::FinishDefragmentation));
}

#[test]
fn what_fills_the_files_for_good_is_told_and_not_tried_for_ever() {
    let (rest, because, _) = ends_at(&befallen(&[Mishap::Stuffed]), None);
    assert_eq!(because, Reason::NoSpaceUnresolved, "{rest:#?}");
    let (_, done, _) = steps(&rest.later());
    assert!(done.is_empty(), "{done:?}");
}

#[test]
fn one_that_differs_is_replaced_and_three_that_differ_are_left_alone() {
    let before: BTreeSet<MemberName> =
        settled().seen().members.into_iter().map(|it| it.name).collect();
    for wrong in &before {
        let (rest, because, _) = ends_at(&befallen(&[Mishap::Differ(wrong.clone())]), None);
        assert_eq!(because, Reason::Healthy, "{rest:#?}");
        let after: BTreeSet<MemberName> =
            rest.seen().members.into_iter().map(|it| it.name).collect();
        let gone: Vec<&MemberName> = before.difference(&after).collect();
        assert_eq!(gone, [wrong]);
    }
    let mut five = World::new(5, true, &[5]).with_files();
    for _ in 0..30 {
        five = five.after(&checked(&five), usize::MAX);
    }
    let two = ["a", "d"].map(|it| Fault::Befall(Mishap::Differ(name(it))));
    let (rest, because, _) = ends_at(&two.iter().fold(five, |world, it| world.struck(it)), None);
    let names: Vec<String> = rest.seen().members.into_iter().map(|it| it.name.0).collect();
    assert_eq!((because, names.join(" ")), (Reason::Healthy, "b c e f g".to_owned()));
    let all = befallen(&[Mishap::Differ(name("a")), Mishap::Differ(name("b"))]);
    // Somebody wants something else as well.
    let (rest, done, because) = steps(&all.struck(&Fault::Change).struck(&Fault::Edit(5)));
    assert_eq!((because, done), (Reason::CorruptionUnresolved, Vec::new()), "{rest:#?}");
}
