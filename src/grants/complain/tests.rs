//! Which objects are spoken to, one sentence each.

use super::*;
use crate::api::kinds;
use crate::api::monotonic::MonotonicTime;
use crate::grants::memory::{Memory, Outcome, Told};
use crate::grants::seen::{News, World};
use crate::grants::shelf::Change;
use crate::grants::walk::cluster::entry;

const GIVES: Bond = Bond { ours: false, exact: true, gives: true, going: false };
const STRANGE: Bond = Bond { ours: false, exact: false, gives: false, going: false };

fn world(objects: &[(&str, bool)], binding: Option<Bond>) -> World {
    let mut world = World::default();
    world.take(News::Object(Which(&kinds::EXAMPLE_APP), Change::Begun));
    for (uid, marked) in objects {
        let object = entry("a", uid, (uid, 5), Thing { marked: *marked });
        world.take(News::Object(Which(&kinds::EXAMPLE_APP), Change::Listed(object)));
    }
    world.take(News::Object(Which(&kinds::EXAMPLE_APP), Change::Complete));
    world.take(News::Binding(Change::Begun));
    world.take(News::Binding(Change::Complete));
    if let Some(bond) = binding {
        world.take(News::Binding(Change::Put(entry(
            "a",
            names::NAMESPACE_ROLE_BINDING,
            ("b1", 7),
            bond,
        ))));
    }
    world
}

fn words(way: NamespaceAccess, world: &World, memory: &Memory) -> Vec<Says> {
    let (words, _) = complain(&Seen { way, world, memory, now: MonotonicTime::default() });
    words.into_iter().map(|word| word.says).collect()
}

fn strict(world: &World) -> Vec<Says> {
    words(NamespaceAccess::Manual, world, &Memory::default())
}

fn told(says: Says) -> Told {
    Told { says, before: "4".to_owned(), after: "5".to_owned() }
}

const MISSING: Says = Says::NotGranted(Lack::NoBinding);

#[test]
fn an_object_in_a_namespace_that_is_not_granted_says_so() {
    assert_eq!(strict(&world(&[("o1", false)], None)), [MISSING]);
}

#[test]
fn a_binding_that_does_not_grant_is_another_matter_than_none() {
    let says = strict(&world(&[("o1", false)], Some(STRANGE)));
    assert_eq!(says, [Says::NotGranted(Lack::OtherBinding)]);
}

#[test]
fn where_it_is_granted_only_a_mark_is_taken_back() {
    let world = world(&[("o1", false), ("o2", true)], Some(GIVES));
    for way in [NamespaceAccess::Manual, NamespaceAccess::Auto] {
        let (words, _) = complain(&Seen {
            way,
            world: &world,
            memory: &Memory::default(),
            now: MonotonicTime::default(),
        });
        let said: Vec<_> = words.iter().map(|it| (it.uid.as_str(), it.says)).collect();
        assert_eq!(said, [("o2", Says::Nothing)]);
    }
}

#[test]
fn an_operator_that_binds_itself_does_not_complain() {
    let world = world(&[("o1", false), ("o2", true)], None);
    assert_eq!(words(NamespaceAccess::Auto, &world, &Memory::default()), []);
}

#[test]
fn nobody_complains_while_the_bindings_are_not_known() {
    for change in [Change::Lost, Change::Begun] {
        let mut world = world(&[("o1", false)], None);
        world.take(News::Binding(change));
        assert_eq!(strict(&world), []);
    }
}

#[test]
fn an_object_is_spoken_to_once_and_again_when_it_or_the_truth_has_changed() {
    let ungranted = world(&[("o1", true)], None);
    let mut memory = Memory::default();
    memory.tell("o1", told(MISSING));
    assert_eq!(words(NamespaceAccess::Manual, &ungranted, &memory), []);
    // The watch has not yet told of our own write.
    let before = Told { before: "5".to_owned(), after: "6".to_owned(), ..told(MISSING) };
    memory.tell("o1", before);
    assert_eq!(words(NamespaceAccess::Manual, &ungranted, &memory), []);
    // Someone wrote to it since.
    memory.tell("o1", Told { after: "4".to_owned(), ..told(MISSING) });
    assert_eq!(words(NamespaceAccess::Manual, &ungranted, &memory), [MISSING]);
    memory.tell("o1", told(MISSING));
    let granted = world(&[("o1", true)], Some(GIVES));
    assert_eq!(words(NamespaceAccess::Manual, &granted, &memory), [Says::Nothing]);
}

#[test]
fn few_are_spoken_to_at_a_time_and_who_rests_is_left_alone() {
    let uids: Vec<String> = (0..=MOST_WORDS).map(|number| format!("o{number}")).collect();
    let objects: Vec<(&str, bool)> = uids.iter().map(|uid| (uid.as_str(), false)).collect();
    let world = world(&objects, None);
    let mut memory = Memory::default();
    let now = MonotonicTime::default();
    let seen = Seen { way: NamespaceAccess::Manual, world: &world, memory: &memory, now };
    let (words, more) = complain(&seen);
    assert!(more && words.len() == MOST_WORDS);
    memory.settle(Who::Object("o0".to_owned()), Outcome::Refused, now);
    let seen = Seen { way: NamespaceAccess::Manual, world: &world, memory: &memory, now };
    let (words, more) = complain(&seen);
    assert!(!more && words.len() == MOST_WORDS && words.iter().all(|word| word.uid != "o0"));
    memory.settle(Who::Object("o0".to_owned()), Outcome::Unknown, now);
    let seen = Seen { way: NamespaceAccess::Manual, world: &world, memory: &memory, now };
    assert_eq!(complain(&seen), (Vec::new(), false));
}
