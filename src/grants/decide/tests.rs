//! The rules of the rights, one sentence each.

use std::time::Duration;

use super::*;
use crate::api::kinds;
use crate::api::monotonic::MonotonicTime;
use crate::grants::memory::{Memory, Outcome};
use crate::grants::seen::{News, Thing, Which, World};
use crate::grants::shelf::Change;
use crate::grants::walk::cluster::entry;

const OURS: Bond = Bond { ours: true, exact: true, gives: true, going: false };
const NOT_OURS: Bond = Bond { ours: false, ..OURS };
const DRIFTED: Bond = Bond { exact: false, gives: false, ..OURS };
const STRANGE: Bond = Bond { ours: false, exact: false, gives: false, going: false };

/// A world in which everything is known: objects of the first kind in some namespaces, and a
/// binding in some.
fn world(objects: &[&str], bindings: &[(&str, Bond)]) -> World {
    let mut world = World::default();
    for kind in kinds::ALL {
        world.take(News::Object(Which(kind), Change::Begun));
        world.take(News::Object(Which(kind), Change::Complete));
    }
    world.take(News::Binding(Change::Begun));
    for (namespace, bond) in bindings {
        let binding = entry(namespace, names::NAMESPACE_ROLE_BINDING, ("b1", 7), *bond);
        world.take(News::Binding(Change::Listed(binding)));
    }
    world.take(News::Binding(Change::Complete));
    for namespace in objects {
        let object = entry(namespace, "it", ("o1", 1), Thing { marked: false });
        world.take(News::Object(Which(&kinds::ETCD_CLUSTER), Change::Put(object)));
    }
    world
}

fn plan_in(way: NamespaceAccess, world: &World, memory: &Memory) -> Plan {
    decide(&Seen { way, world, memory, now: MonotonicTime::default() })
}

fn plan(world: &World) -> Plan {
    plan_in(NamespaceAccess::Auto, world, &Memory::default())
}

/// The only act of a plan.
fn act(world: &World) -> Option<Act> {
    let steps = plan(world).steps;
    assert!(steps.len() <= 1, "{steps:?}");
    steps.into_iter().next().map(|step| step.act)
}

fn target() -> Target {
    Target { uid: "b1".to_owned(), version: "7".to_owned() }
}

#[test]
fn a_namespace_is_granted_when_an_object_appears() {
    let plan = plan(&world(&["a"], &[]));
    let step =
        Step { namespace: "a".to_owned(), act: Act::Grant, because: Because::ObjectAppeared };
    assert_eq!(plan, Plan { steps: vec![step], ..Plan::default() });
}

#[test]
fn an_object_of_any_kind_will_do() {
    for kind in kinds::ALL {
        let mut world = world(&[], &[]);
        let object = entry("a", "it", ("o1", 1), Thing { marked: false });
        world.take(News::Object(Which(kind), Change::Put(object)));
        assert_eq!(act(&world), Some(Act::Grant), "{}", kind.name);
    }
}

#[test]
fn one_known_kind_is_enough_to_grant() {
    let mut world = world(&["a"], &[]);
    world.take(News::Object(Which(&kinds::EXAMPLE_APP), Change::Lost));
    assert_eq!(act(&world), Some(Act::Grant));
}

#[test]
fn a_granted_namespace_with_objects_is_left_alone() {
    for bond in [OURS, NOT_OURS] {
        assert_eq!(plan(&world(&["a"], &[("a", bond)])), Plan::default());
    }
}

#[test]
fn the_grant_goes_with_the_last_object() {
    assert_eq!(act(&world(&[], &[("a", OURS)])), Some(Act::Withdraw(target())));
    let steps = plan(&world(&["b"], &[("a", OURS), ("b", OURS)])).steps;
    assert_eq!(steps.len(), 1);
    assert_eq!((steps[0].namespace.as_str(), steps[0].because), ("a", Because::LastObjectGone));
}

#[test]
fn nothing_is_taken_while_one_kind_is_not_known() {
    for kind in kinds::ALL {
        for change in [Change::Lost, Change::Begun] {
            let mut world = world(&[], &[("a", OURS)]);
            world.take(News::Object(Which(kind), change));
            assert_eq!(plan(&world), Plan::default(), "{}", kind.name);
        }
    }
}

#[test]
fn nothing_is_done_while_the_bindings_are_not_known() {
    for change in [Change::Lost, Change::Begun] {
        let mut world = world(&["a"], &[("b", OURS), ("c", STRANGE)]);
        world.take(News::Binding(change));
        assert_eq!(plan(&world), Plan::default());
    }
}

#[test]
fn nobody_elses_binding_is_ever_touched() {
    for bond in [NOT_OURS, STRANGE, Bond { exact: false, ..NOT_OURS }] {
        for objects in [&["a"][..], &[]] {
            assert_eq!(plan(&world(objects, &[("a", bond)])).steps, []);
        }
    }
}

#[test]
fn a_binding_in_the_way_is_told_where_it_keeps_objects_waiting() {
    let blocked = plan(&world(&["a"], &[("a", STRANGE), ("b", STRANGE)])).blocked;
    assert_eq!(blocked, BTreeMap::from([("a".to_owned(), "b1".to_owned())]));
}

#[test]
fn our_binding_is_repaired_when_its_subjects_were_changed() {
    let wider = Bond { exact: false, ..OURS };
    for bond in [DRIFTED, wider] {
        for objects in [&["a"][..], &[]] {
            let act = act(&world(objects, &[("a", bond)]));
            assert_eq!(act, Some(Act::Repair(target())));
        }
    }
}

#[test]
fn a_binding_that_is_going_is_waited_for() {
    for bond in [OURS, DRIFTED] {
        for objects in [&["a"][..], &[]] {
            let going = Bond { going: true, ..bond };
            assert_eq!(plan(&world(objects, &[("a", going)])), Plan::default());
        }
    }
}

#[test]
fn strict_means_that_nothing_is_bound() {
    for bonds in [&[][..], &[("a", OURS)], &[("a", DRIFTED)], &[("a", STRANGE)]] {
        for objects in [&["a"][..], &[]] {
            let world = world(objects, bonds);
            assert_eq!(plan_in(NamespaceAccess::Manual, &world, &Memory::default()).steps, []);
        }
    }
}

#[test]
fn who_rests_is_left_alone_and_the_others_are_not() {
    let world = world(&["a", "b"], &[]);
    let mut memory = Memory::default();
    memory.settle(Who::Namespace("a".to_owned()), Outcome::NotNow, MonotonicTime::default());
    let steps = plan_in(NamespaceAccess::Auto, &world, &memory).steps;
    assert_eq!(steps.iter().map(|it| it.namespace.as_str()).collect::<Vec<_>>(), ["b"]);
    let later = MonotonicTime::new(Duration::from_secs(2));
    let seen = Seen { way: NamespaceAccess::Auto, world: &world, memory: &memory, now: later };
    assert_eq!(decide(&seen).steps.len(), 2);
    memory.settle(Who::Namespace("a".to_owned()), Outcome::Unknown, MonotonicTime::default());
    assert_eq!(plan_in(NamespaceAccess::Auto, &world, &memory).steps, []);
}

#[test]
fn a_long_plan_is_done_in_pieces() {
    let many: Vec<String> = (0..=MOST_STEPS).map(|number| format!("n{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let long = plan(&world(&many, &[]));
    assert!(long.more && long.steps.len() == MOST_STEPS);
    let just = plan(&world(&many[1..], &[]));
    assert!(!just.more && just.steps.len() == MOST_STEPS);
}
