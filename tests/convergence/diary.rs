//! What a real operator saw and did, page by page, told by the model: each page must follow from the one before by what
//! was decided then, done in full or in part, and by things that can happen. A model that had drifted away from etcd and
//! Kubernetes could not tell it. `make diary` writes it anew.

use std::collections::HashSet;

use quorate::etcd_cluster::decide::decide;
use quorate::etcd_cluster::plan::Plan;
use quorate::etcd_cluster::state::{MemberName, ObservedState, PodState, Reading};
use serde::Deserialize;

use crate::world::{Fault, World, calls};

const DIARY: &str = include_str!("diary.jsonl");
/// The clusters that it tells of.
const CLUSTERS: [&str; 2] = ["first", "second"];
/// More things than ever happened between two looks.
const MOST_FAULTS: usize = 2;
/// A real cluster can be thought of in a few ways at once, never in so many.
const MOST_WAYS: usize = 100_000;

#[derive(Clone, Deserialize)]
struct Page {
    /// Whose look it was.
    cluster: String,
    /// Whether the API server itself was asked. What watches tell is late.
    live: bool,
    state: ObservedState,
    plan: Plan,
}

/// What was seen of one cluster.
fn diary(of: &str) -> Vec<Page> {
    let pages = DIARY.lines().map(|line| serde_json::from_str::<Page>(line).unwrap());
    let pages: Vec<Page> = pages.filter(|page| page.cluster == of).collect();
    assert!(pages.len() > 50, "only {} pages", pages.len());
    pages
}

/// Tells the diary, and answers with how many things happened in it; or says which page cannot be.
fn told(pages: &[Page]) -> Result<usize, String> {
    let first = pages.first().ok_or("an empty diary")?;
    let world = World::new(first.state.desired.replicas, first.state.desired.persistent, &[0, 3]);
    let mut ways = HashSet::from([world]);
    let mut before: Option<&Page> = None;
    let mut happened = 0;
    for (number, page) in pages.iter().enumerate().filter(|(_, page)| page.live) {
        if let Some(before) = before {
            unbroken(&ways, before).map_err(|words| format!("page {number}: {words}"))?;
        }
        let (next, faults) = explained(&follow(&ways, before), &page.state)
            .map_err(|words| format!("page {number}: {words}\n{:?}", page.state))?;
        happened += faults;
        ways = next;
        before = Some(page);
    }
    let last = pages.last().ok_or("an empty diary")?;
    let ends = follow(&ways, before);
    let differs: Vec<String> =
        ends.iter().filter_map(|it| it.differs_at_rest(&last.state)).collect();
    if differs.len() == ends.len() { Err(format!("the end: {differs:?}")) } else { Ok(happened) }
}

/// Whether a plan is safe in at least one of the worlds that it may have been made in.
fn unbroken(ways: &HashSet<World>, page: &Page) -> Result<(), String> {
    let after = |it: &World| {
        let plan = it.translated(&page.plan, &page.state)?;
        it.clone().led_as(&page.state).after(&plan, usize::MAX).broken
    };
    let broken: Vec<String> = ways.iter().filter_map(after).collect();
    if broken.len() == ways.len() { Err(broken.join("; ")) } else { Ok(()) }
}

/// Every world that a plan may have left, whether it was carried out to its end or not.
fn follow(ways: &HashSet<World>, before: Option<&Page>) -> HashSet<World> {
    let Some(Page { state: seen, plan, .. }) = before else { return edited(ways) };
    let mut after = HashSet::new();
    for world in edited(ways) {
        let world = world.led_as(seen);
        after.insert(world.clone());
        let Some(plan) = world.translated(plan, seen) else { continue };
        after.extend((1..=calls(&plan)).map(|cut| world.after(&plan, cut)));
    }
    after.retain(|it| it.broken.is_none());
    edited(&after)
}

/// The user may have edited what pods are made of: nobody sees whether that is good before the next one is made.
fn edited(ways: &HashSet<World>) -> HashSet<World> {
    let changed = ways.iter().flat_map(|it| [it.clone(), it.struck(&Fault::Change)]);
    let all = changed.flat_map(|it| [&Fault::Spoil, &Fault::Mend].map(|edit| it.struck(edit)));
    all.collect()
}

/// The worlds that look like this, after as few faults as possible.
fn explained(
    from: &HashSet<World>,
    seen: &ObservedState,
) -> Result<(HashSet<World>, usize), String> {
    let mut ways = from.clone();
    for faults in 0..=MOST_FAULTS {
        let fit: HashSet<World> =
            ways.iter().filter(|it| it.differs(seen).is_none()).cloned().collect();
        if !fit.is_empty() {
            return Ok((fit, faults));
        }
        let struck = |world: &World| {
            let all = world.faults().into_iter().chain(by_hand(seen));
            all.map(|it| world.struck(&it)).chain([world.later()]).collect::<Vec<_>>()
        };
        ways = ways.iter().flat_map(struck).collect();
        assert!(ways.len() < MOST_WAYS, "{} ways to think of it", ways.len());
    }
    let words: Vec<String> = from.iter().filter_map(|it| it.differs(seen)).collect();
    Err(format!("it cannot be: {}", words.join("\n or ")))
}

fn by_hand(seen: &ObservedState) -> impl Iterator<Item = Fault> {
    seen.members.iter().map(|it| Fault::SendAway(it.name.clone()))
}

#[test]
fn the_model_can_tell_what_a_real_cluster_did() {
    for cluster in CLUSTERS {
        let pages = diary(cluster);
        for (number, Page { state: seen, plan, .. }) in pages.iter().enumerate() {
            assert_eq!(decide(seen), *plan, "{cluster}: page {number} is decided otherwise today");
        }
        let happened = told(&pages).unwrap_or_else(|words| panic!("{cluster}: {words}"));
        println!("{cluster}: {} pages, {happened} things happened", pages.len());
        // A member deleted, one lost, one sent away, sleep and waking; edits of what pods are made of do not count.
        assert!(happened >= 5, "only {happened} things happened");
    }
}

/// The index of a page at rest in the middle, that the API server was asked for.
fn a_page_with(pages: &[Page], is_it: impl Fn(&Page) -> bool) -> usize {
    pages.iter().position(|page| page.live && is_it(page)).unwrap()
}

#[test]
fn a_diary_in_which_a_member_appears_from_nowhere_cannot_be() {
    let mut pages = diary(CLUSTERS[0]);
    let at = a_page_with(&pages, |page| page.state.members.len() == 3);
    let mut stranger = pages[at].state.members[0].clone();
    stranger.name = MemberName("main-other".to_owned());
    pages[at].state.members.push(stranger);
    let words = told(&pages).unwrap_err();
    assert!(words.contains("main-other"), "{words}");
}

#[test]
fn a_diary_in_which_a_member_without_a_pod_is_well_cannot_be() {
    let mut pages = diary(CLUSTERS[0]);
    let lacks_pod = |page: &Page| {
        let is_well = |name: &MemberName| {
            let entry = page.state.etcd.known().and_then(|etcd| etcd.entry(name));
            entry.is_some_and(|it| !it.is_healthy())
        };
        let mut members = page.state.members.iter();
        members.any(|it| it.pod == Reading::Known(PodState::Missing) && is_well(&it.name))
    };
    let at = a_page_with(&pages, lacks_pod);
    let Reading::Known(etcd) = &mut pages[at].state.etcd else { panic!("nobody answers") };
    etcd.members.iter_mut().for_each(|it| it.healthy = Reading::Known(true));
    let words = told(&pages).unwrap_err();
    assert!(words.contains("should not be"), "{words}");
}
