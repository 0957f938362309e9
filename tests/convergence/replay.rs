//! Replays the trace of a real run in the model: each entry must follow from the previous one by
//! its plan, applied in full or in part, and by faults. A model that deviates from etcd and
//! Kubernetes could not replay it. `make record-trace` records it again.

use std::collections::HashSet;

use quorate::etcd_cluster::decide::decide;
use quorate::etcd_cluster::plan::Plan;
use quorate::etcd_cluster::state::{Member, MemberName, ObservedState, PodState, Reading};
use serde::Deserialize;

use crate::model::{Fault, Model, call_count};

const TRACE: &str = include_str!("trace.jsonl");
/// The clusters in the trace.
const CLUSTERS: [&str; 2] = ["first", "second"];
/// No more faults happened between two observations.
const MAX_FAULTS: usize = 2;
/// Few models match a real cluster at a time, and never this many.
const MAX_CANDIDATES: usize = 100_000;

#[derive(Clone, Deserialize)]
struct TraceEntry {
    /// The cluster that was reconciled.
    cluster: String,
    /// Whether the API server was read directly. Watch caches lag.
    live: bool,
    state: ObservedState,
    plan: Plan,
}

/// The entries of one cluster.
fn trace(cluster: &str) -> Vec<TraceEntry> {
    let entries = TRACE.lines().map(|line| serde_json::from_str::<TraceEntry>(line).unwrap());
    let entries: Vec<TraceEntry> = entries.filter(|entry| entry.cluster == cluster).collect();
    assert!(entries.len() > 50, "only {} entries", entries.len());
    entries
}

/// Replays a trace, and returns the number of faults in it, or the entry that cannot be replayed.
fn replay(entries: &[TraceEntry]) -> Result<usize, String> {
    let first = entries.first().ok_or("an empty trace")?;
    let model = Model::new(first.state.desired.replicas, first.state.desired.persistent, &[0, 3]);
    let mut candidates = HashSet::from([model]);
    let mut previous: Option<&TraceEntry> = None;
    let mut total = 0;
    for (number, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.live) {
        if let Some(previous) = previous {
            check_safe(&candidates, previous)
                .map_err(|violation| format!("entry {number}: {violation}"))?;
        }
        let (next, faults) = explain(&apply_plan(&candidates, previous), &entry.state)
            .map_err(|difference| format!("entry {number}: {difference}\n{:?}", entry.state))?;
        total += faults;
        candidates = next;
        previous = Some(entry);
    }
    let last = entries.last().ok_or("an empty trace")?;
    let ends = apply_plan(&candidates, previous);
    let differences: Vec<String> =
        ends.iter().filter_map(|model| model.idle_difference(&last.state)).collect();
    if differences.len() == ends.len() {
        Err(format!("at the end: {differences:?}"))
    } else {
        Ok(total)
    }
}

/// Whether a plan is safe in at least one of the models that match.
fn check_safe(candidates: &HashSet<Model>, entry: &TraceEntry) -> Result<(), String> {
    let violation = |model: &Model| {
        let plan = model.with_model_ids(&entry.plan, &entry.state)?;
        model.clone().with_leader_of(&entry.state).apply(&plan, usize::MAX).violation
    };
    let violations: Vec<String> = candidates.iter().filter_map(violation).collect();
    if violations.len() == candidates.len() { Err(violations.join("; ")) } else { Ok(()) }
}

/// Every model that a plan may lead to, whether it was applied in full or in part.
fn apply_plan(candidates: &HashSet<Model>, previous: Option<&TraceEntry>) -> HashSet<Model> {
    let Some(TraceEntry { state, plan, .. }) = previous else { return with_edits(candidates) };
    let mut after = HashSet::new();
    for model in with_edits(candidates) {
        let model = model.with_leader_of(state);
        after.insert(model.clone());
        let Some(plan) = model.with_model_ids(plan, state) else { continue };
        after.extend((1..=call_count(&plan)).map(|cut| model.apply(&plan, cut)));
    }
    after.retain(|model| model.violation.is_none());
    with_edits(&after)
}

/// The user may have changed the template; whether it works shows only with the next pod.
fn with_edits(candidates: &HashSet<Model>) -> HashSet<Model> {
    let changed = candidates
        .iter()
        .flat_map(|model| [model.clone(), model.with_fault(&Fault::ChangeTemplate)]);
    changed
        .flat_map(|model| [&Fault::BadSpec, &Fault::FixSpec].map(|edit| model.with_fault(edit)))
        .collect()
}

/// The models that match a state, after as few faults as possible.
fn explain(
    from: &HashSet<Model>,
    state: &ObservedState,
) -> Result<(HashSet<Model>, usize), String> {
    let mut candidates = from.clone();
    for faults in 0..=MAX_FAULTS {
        let matching = candidates.iter().filter(|model| model.difference(state).is_none());
        let matching: HashSet<Model> = matching.cloned().collect();
        if !matching.is_empty() {
            return Ok((matching, faults));
        }
        let with_faults = |model: &Model| {
            let all = model.faults().into_iter().chain(manual_removals(state));
            let changed = all.map(|fault| model.with_fault(&fault));
            changed.chain([model.advance_time()]).collect::<Vec<_>>()
        };
        candidates = candidates.iter().flat_map(with_faults).collect();
        assert!(candidates.len() < MAX_CANDIDATES, "{} candidates", candidates.len());
    }
    let differences: Vec<String> =
        from.iter().filter_map(|model| model.difference(state)).collect();
    Err(format!("no model matches: {}", differences.join("\n or ")))
}

fn manual_removals(state: &ObservedState) -> impl Iterator<Item = Fault> {
    state.members.iter().map(|member| Fault::MarkLeaving(member.name.clone()))
}

#[test]
fn model_can_replay_the_trace_of_a_real_cluster() {
    for cluster in CLUSTERS {
        let entries = trace(cluster);
        for (number, TraceEntry { state, plan, .. }) in entries.iter().enumerate() {
            assert_eq!(decide(state), *plan, "{cluster}: entry {number} is decided differently");
        }
        let faults = replay(&entries).unwrap_or_else(|error| panic!("{cluster}: {error}"));
        println!("{cluster}: {} entries, {faults} faults", entries.len());
        // A deleted member, a lost one, a manual removal, hibernation and resumption; edits of the
        // template do not count.
        assert!(faults >= 5, "only {faults} faults");
    }
}

/// The index of the first live entry that matches.
fn find_entry(entries: &[TraceEntry], matches: impl Fn(&TraceEntry) -> bool) -> usize {
    entries.iter().position(|entry| entry.live && matches(entry)).unwrap()
}

#[test]
fn trace_with_a_member_from_nowhere_cannot_be_replayed() {
    let mut entries = trace(CLUSTERS[0]);
    let at = find_entry(&entries, |entry| entry.state.members.len() == 3);
    let mut unknown = entries[at].state.members[0].clone();
    unknown.name = MemberName("main-other".to_owned());
    entries[at].state.members.push(unknown);
    let error = replay(&entries).unwrap_err();
    assert!(error.contains("main-other"), "{error}");
}

#[test]
fn trace_with_a_healthy_member_without_a_pod_cannot_be_replayed() {
    let mut entries = trace(CLUSTERS[0]);
    let lacks_pod = |entry: &TraceEntry| {
        let is_unhealthy = |name: &MemberName| {
            let listed = entry.state.etcd.known().and_then(|etcd| etcd.entry(name));
            listed.is_some_and(|listed| !listed.is_healthy())
        };
        let is_missing = |member: &Member| member.pod == Reading::Known(PodState::Missing);
        entry.state.members.iter().any(|member| is_missing(member) && is_unhealthy(&member.name))
    };
    let at = find_entry(&entries, lacks_pod);
    let Reading::Known(etcd) = &mut entries[at].state.etcd else { panic!("no quorum") };
    etcd.members.iter_mut().for_each(|entry| entry.healthy = Reading::Known(true));
    let error = replay(&entries).unwrap_err();
    assert!(error.contains("should not be"), "{error}");
}
