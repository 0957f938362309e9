//! What is decided about stored objects, rule by rule.

use jiff::Timestamp;

use super::*;
use crate::api::kinds;
use crate::storage_migration::memory::Memory;
use crate::storage_migration::record;
use crate::storage_migration::settle::{Beginning, begun};

const SETTLED: MonotonicTime = MonotonicTime::new(Duration::from_mins(1));

fn definition(stored: &[&str]) -> StoredCrd {
    let text = |text: &&str| (*text).to_owned();
    StoredCrd {
        name: "etcdclusters.etcd.appdelivery.cncf.io".to_owned(),
        uid: "uid".to_owned(),
        resource_version: "1".to_owned(),
        storage: "v1".to_owned(),
        versions: ["v1", "v1beta1", "v1alpha1"].map(|name| (name.to_owned(), true)).to_vec(),
        stored: stored.iter().map(text).collect(),
        established: true,
        converted: true,
        paused: false,
        spec_fingerprint: "kubectl".to_owned(),
    }
}

fn run(definition: &StoredCrd, phase: Phase) -> Record {
    let beginning = Beginning {
        goal: Goal::Storage,
        way: Way::Own,
        threshold: 7,
        total: 3,
        now: Timestamp::UNIX_EPOCH,
    };
    Record { phase, owners_speak: definition.served(), ..begun(definition, None, &beginning) }
}

struct World {
    definition: StoredCrd,
    record: Option<Record>,
    way: Way,
    others: Reading<bool>,
    errand: Errand,
    asked: Option<String>,
    memory: Memory,
}

impl World {
    fn new(stored: &[&str], phase: Option<Phase>) -> Self {
        let definition = definition(stored);
        let mut memory = Memory::default();
        memory.see(&definition, MonotonicTime::default());
        Self {
            record: phase.map(|phase| run(&definition, phase)),
            definition,
            way: Way::Own,
            others: Reading::Known(false),
            errand: Errand::Absent,
            asked: None,
            memory,
        }
    }

    fn decide_at(&self, now: MonotonicTime) -> Plan {
        decide(&Seen {
            kind: kinds::by_name("EtcdCluster").unwrap(),
            way: self.way,
            definition: Reading::Known(Some(self.definition.clone())),
            record: Reading::Known(self.record.clone()),
            asked: self.asked.clone(),
            others: self.others.clone(),
            errand: Reading::Known(self.errand.clone()),
            memory: &self.memory,
            now,
        })
    }

    fn decide(&self) -> (Step, Because) {
        let Plan { step, because, wake: _ } = self.decide_at(SETTLED);
        (step, because)
    }
}

#[test]
fn nothing_is_done_about_objects_that_are_stored_as_they_should_be() {
    let world = World::new(&["v1"], Some(Phase::Done));
    let plan = world.decide_at(SETTLED);
    assert_eq!((plan.step, plan.because, plan.wake), (Step::Wait, Because::NothingStale, None));
}

#[test]
fn a_definition_that_has_just_changed_is_left_alone_for_a_while() {
    let world = World::new(&["v1alpha1", "v1"], None);
    let plan = world.decide_at(MonotonicTime::new(Duration::from_secs(1)));
    assert_eq!((plan.step, plan.because), (Step::Wait, Because::Settling));
    assert_eq!(plan.wake, Some(MonotonicTime::new(SETTLE)));
    assert_eq!(world.decide(), (Step::Begin(Goal::Storage), Because::VersionsStale));
}

#[test]
fn a_run_goes_on_where_it_stood() {
    for (phase, step) in [
        (Phase::Writing, Step::Page(Phase::Writing)),
        (Phase::Verifying, Step::Page(Phase::Verifying)),
        (Phase::Proven, Step::Trim),
        (Phase::Owners, Step::Page(Phase::Owners)),
    ] {
        assert_eq!(World::new(&["v1alpha1", "v1"], Some(phase)).decide().0, step);
    }
}

#[test]
fn a_proof_that_was_made_under_another_definition_proves_nothing() {
    let changes: [fn(&mut StoredCrd); 4] = [
        |it| it.spec_fingerprint = "kubectl, later".to_owned(),
        |it| it.storage = "v1beta1".to_owned(),
        |it| it.uid = "another".to_owned(),
        |it| it.versions.truncate(2),
    ];
    for change in changes {
        let mut world = World::new(&["v1alpha1", "v1"], Some(Phase::Proven));
        change(&mut world.definition);
        assert_eq!(world.decide(), (Step::Begin(Goal::Storage), Because::VersionsStale));
        world.memory.see(&world.definition, SETTLED);
        let (step, because) = world.decide();
        // The list of versions is no part of what has to settle: what is stored is.
        let waits = world.definition.versions.len() == 3;
        assert_eq!(step == Step::Wait && because == Because::Settling, waits, "{because:?}");
    }
}

#[test]
fn authorities_that_are_put_in_meanwhile_do_not_begin_a_run_anew() {
    let mut world = World::new(&["v1alpha1", "v1"], Some(Phase::Proven));
    world.definition.resource_version = "2".to_owned();
    assert_eq!(world.decide(), (Step::Trim, Because::Proven));
}

#[test]
fn each_obstacle_is_named_and_nothing_is_written_meanwhile() {
    let meddle = |change: fn(&mut World), because| {
        for phase in [None, Some(Phase::Writing), Some(Phase::Verifying), Some(Phase::Proven)] {
            let mut world = World::new(&["v1alpha1", "v1"], phase);
            change(&mut world);
            assert_eq!(world.decide(), (Step::Wait, because), "{phase:?}");
        }
    };
    meddle(|it| it.way = Way::Off, Because::SwitchedOff);
    meddle(|it| it.definition.stored.push("v2".to_owned()), Because::Stranded);
    meddle(|it| it.definition.established = false, Because::NotServed);
    meddle(|it| it.definition.versions[0].1 = false, Because::NotServed);
    meddle(|it| it.definition.converted = false, Because::NotConverted);
    meddle(|it| it.definition.paused = true, Because::Paused);
    meddle(|it| it.others = Reading::Known(true), Because::OtherReleases);
    meddle(|it| it.others = Reading::Unknown, Because::Unread);
    meddle(|it| it.memory.unwell(SETTLED), Because::BackedOff);
}

#[test]
fn what_could_not_be_read_is_waited_for() {
    let world = World::new(&["v1alpha1", "v1"], Some(Phase::Proven));
    let seen = |definition, record| Seen {
        kind: kinds::by_name("EtcdCluster").unwrap(),
        way: Way::Own,
        definition,
        record,
        asked: None,
        others: Reading::Known(false),
        errand: Reading::Unknown,
        memory: &world.memory,
        now: SETTLED,
    };
    let known = || Reading::Known(Some(world.definition.clone()));
    for seen in [
        seen(Reading::Unknown, Reading::Known(None)),
        seen(known(), Reading::Unknown),
        seen(Reading::Unknown, Reading::Unknown),
    ] {
        assert_eq!(decide(&seen).because, Because::Unread);
    }
}

#[test]
fn what_was_refused_is_tried_again_later_or_when_somebody_asks() {
    let mut world = World::new(&["v1alpha1", "v1"], Some(Phase::Held));
    world.memory.held(SETTLED);
    assert_eq!(world.decide(), (Step::Wait, Because::ObjectsRefused));
    let later = world.decide_at(SETTLED.plus(FIRST_REPEAT));
    assert_eq!((later.step, later.because), (Step::Note(Phase::Writing), Because::TriedAgain));
    world.asked = Some("now".to_owned());
    assert_eq!(world.decide(), (Step::Note(Phase::Writing), Because::TriedAgain));
    world.memory.answer(world.asked.clone());
    assert_eq!(world.decide(), (Step::Wait, Because::ObjectsRefused));
}

#[test]
fn owners_are_looked_at_once_for_the_versions_that_are_served() {
    let mut world = World::new(&["v1"], Some(Phase::Done));
    world.definition.versions[2].1 = false;
    assert_eq!(world.decide(), (Step::Begin(Goal::Owners), Because::OwnersStale));
    let served = world.definition.served();
    world.record.as_mut().unwrap().owners_speak = served;
    assert_eq!(world.decide(), (Step::Wait, Because::NothingStale));
}

#[test]
fn a_definition_that_somebody_else_trimmed_ends_the_run() {
    for phase in [Phase::Writing, Phase::Verifying, Phase::Proven, Phase::Held] {
        let world = World::new(&["v1"], Some(phase));
        assert_eq!(world.decide(), (Step::Note(Phase::Done), Because::TrimmedElsewhere));
    }
}

#[test]
fn kubernetes_own_migrator_is_asked_and_never_believed() {
    let mut world = World::new(&["v1alpha1", "v1"], Some(Phase::Delegated));
    world.way = Way::Kubernetes;
    assert_eq!(world.decide().0, Step::Send);
    let there = |uid: &str, end| Errand::There { uid: uid.to_owned(), end };
    world.errand = there("old", Some(End::Succeeded));
    let old = Step::Clear { uid: "old".to_owned(), failed: false };
    assert_eq!(world.decide().0, old, "an errand of an earlier run");
    let errand = record::Errand { uid: "mine".to_owned(), failed: 0 };
    world.record.as_mut().unwrap().errand = Some(errand);
    world.errand = there("mine", None);
    assert_eq!(world.decide(), (Step::Wait, Because::ErrandUnderWay));
    world.errand = there("mine", Some(End::Succeeded));
    assert_eq!(world.decide(), (Step::Note(Phase::Verifying), Because::ErrandDone));
    world.errand = there("mine", Some(End::Failed));
    assert_eq!(world.decide().0, Step::Clear { uid: "mine".to_owned(), failed: true });
    world.record.as_mut().unwrap().errand.as_mut().unwrap().failed = MOST_ERRANDS;
    assert_eq!(world.decide(), (Step::Note(Phase::Writing), Because::ErrandFailed));
    world.record.as_mut().unwrap().errand = None;
    world.errand = Errand::Unserved;
    assert_eq!(world.decide(), (Step::Note(Phase::Writing), Because::ErrandUnserved));
}
