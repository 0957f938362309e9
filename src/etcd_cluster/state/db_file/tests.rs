//! Tests of defragmentation, compaction and quota.
#![expect(clippy::needless_pass_by_value, reason = "JSON literals are passed by value")]

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::api::etcd_types;
use crate::etcd_cluster::render::tests::{blueprint, cluster, name};
use crate::etcd_cluster::state::build::tests::{NOW, member, object, objects, pod, probe};
use crate::etcd_cluster::state::{EtcdState, ObservedState};
use crate::etcd_cluster::version::UpgradePath;

const MEBI: i64 = 1 << 20;

/// The state of three voters with a quota of 100 MiB, from a spec, the recorded status, and the
/// size and the size in use of their database files in MiB.
fn state(spec: Value, recorded: Value, files: [(i64, i64); 3], full: bool) -> ObservedState {
    let spec = cluster(spec);
    let blueprint = blueprint(&spec);
    let names = ["main-a", "main-b", "main-c"];
    let quota = format!("--quota-backend-bytes={}", 100 * MEBI);
    let with_quota = |name: &&str| {
        let mut pod = pod(
            name,
            json!({"name": "etcd", "image": "", "imageID": "", "ready": true, "restartCount": 0}),
        );
        pod["spec"]["containers"] = json!([{"name": "etcd", "args": [quota]}]);
        pod
    };
    let unreachable = json!({"conditions": [{"type": "Reachable", "status": "False", "lastTransitionTime": "2026-11-16T11:00:00Z"}]});
    let members =
        names.iter().map(|name| member(name, "2026-11-16T10:00:00Z", unreachable.clone()));
    let mut objects = objects(members.collect(), names.iter().map(with_quota).collect(), vec![]);
    objects.cluster.status = Some(object(json!({"defragmentation": recorded})));
    let reachable = [("main-a", 1, 10, true), ("main-b", 2, 10, true), ("main-c", 3, 10, true)];
    let list = [(1, "main-a", false), (2, "main-b", false), (3, "main-c", false)];
    let mut probe = probe(&reachable, &list);
    for (member, (size, in_use)) in probe.members.values_mut().zip(files) {
        let status = member.status.as_mut().unwrap();
        (status.db_size, status.db_in_use) =
            (size.saturating_mul(MEBI), in_use.saturating_mul(MEBI));
        if size == 0 {
            member.status = None;
        }
    }
    let Reading::Known(view) = &mut probe.quorum else { panic!("no quorum") };
    view.revision = 5000;
    if full {
        view.alarms.push(etcd_types::Alarm { member: 1, alarm_type: "NOSPACE" });
    }
    StateInputs {
        blueprint: &blueprint,
        objects: &objects,
        probe: &probe,
        path: UpgradePath::new(spec.version, &objects, &probe),
        previous: None,
        now: NOW.parse().unwrap(),
        observing_since: Timestamp::UNIX_EPOCH,
        names: vec![name("main-z")],
        trust: None,
    }
    .build()
}

fn etcd(state: &ObservedState) -> &EtcdState {
    state.etcd.known().unwrap()
}

fn should_defragment(state: &ObservedState) -> Vec<bool> {
    etcd(state).members.iter().map(|entry| entry.should_defragment).collect()
}

const THRESHOLD: &str = "10Mi";

#[test]
fn member_is_defragmented_if_more_is_free_than_the_threshold() {
    let spec = json!({"defragment": {"reclaimAbove": THRESHOLD}});
    let state = state(spec, json!({}), [(30, 20), (31, 20), (90, 85)], false);
    assert_eq!(should_defragment(&state), [false, true, false]);
    assert_eq!(state.defragmentation.due, Some(DefragTrigger::Threshold));
}

#[test]
fn defragmentation_is_disabled_by_default() {
    let state = state(json!({}), json!({}), [(90, 10), (90, 10), (90, 10)], false);
    assert_eq!(should_defragment(&state), [false; 3]);
    assert_eq!(state.defragmentation, Defragmentation::default());
}

#[test]
fn member_with_almost_no_free_space_is_not_defragmented_however_low_the_threshold() {
    let spec = json!({"defragment": {"reclaimAbove": "1"}});
    let state = state(spec, json!({}), [(2, 1), (20, 19), (20, 20)], false);
    assert_eq!((should_defragment(&state), state.defragmentation.due), (vec![false; 3], None));
}

#[test]
fn threshold_triggers_at_most_one_run_an_hour() {
    let spec = || json!({"defragment": {"reclaimAbove": THRESHOLD}});
    let ended = |at: &str| {
        let recorded = json!({"trigger": "Threshold", "startTime": at, "completionTime": at});
        state(spec(), recorded, [(90, 10); 3], false).defragmentation.due
    };
    assert_eq!(ended("2026-11-16T11:00:01Z"), None);
    assert_eq!(ended("2026-11-16T11:00:00Z"), Some(DefragTrigger::Threshold));
}

#[test]
fn schedule_triggers_a_run_at_its_time_and_not_before() {
    let spec = || json!({"defragment": {"schedule": "@hourly", "reclaimAbove": THRESHOLD}});
    let due = |next: &str| {
        state(spec(), json!({"nextScheduleTime": next}), [(90, 10); 3], false).defragmentation.due
    };
    assert_eq!(due("2026-11-16T13:00:00Z"), None);
    assert_eq!(due("2026-11-16T12:00:00Z"), Some(DefragTrigger::Schedule));
    assert_eq!(due("2026-11-15T07:00:00Z"), Some(DefragTrigger::Schedule), "missed");
    assert_eq!(
        state(spec(), json!({}), [(90, 10); 3], false).defragmentation.due,
        None,
        "only just set"
    );
    // Without a threshold a tenth of the file is enough.
    let schedule = json!({"defragment": {"schedule": "@hourly"}});
    assert_eq!(
        should_defragment(&state(schedule, json!({}), [(90, 82), (90, 80), (90, 90)], false)),
        [false, true, false]
    );
}

#[test]
fn member_may_be_unreachable_until_the_deadline_of_its_defragmentation() {
    let result = |deadline: &str| {
        let recorded = json!({"trigger": "Threshold", "startTime": NOW, "members": ["main-b", "main-c"], "deadline": deadline});
        let state = state(json!({}), recorded, [(30, 20), (30, 20), (0, 0)], false);
        let replacement_due = state.member(&name("main-c")).unwrap().replacement_due;
        (state.defragmentation.in_progress, replacement_due)
    };
    assert_eq!(result("2026-11-16T12:00:01Z"), (Some(name("main-c")), false));
    assert_eq!(result("2026-11-16T12:00:00Z"), (None, true));
}

#[test]
fn quota_filled_by_free_space_needs_no_compaction() {
    let state = state(json!({}), json!({}), [(100, 70), (97, 70), (75, 70)], true);
    assert_eq!(etcd(&state).quota, Quota::Exceeded);
    assert_eq!(should_defragment(&state), [true, true, false], "more than a twentieth");
    assert_eq!(
        (state.defragmentation.due, state.defragmentation.compact_to),
        (Some(DefragTrigger::NoSpace), None)
    );
}

#[test]
fn quota_filled_by_space_in_use_needs_one_compaction() {
    let full = [(100, 99), (100, 99), (100, 99)];
    let unset = state(json!({}), json!({}), full, true);
    assert_eq!(unset.defragmentation.compact_to, Some(Revision(5000)));
    let by_count =
        json!({"options": {"autoCompaction": {"mode": "Revision", "retentionRevisions": 3000}}});
    assert_eq!(
        state(by_count, json!({}), full, true).defragmentation.compact_to,
        Some(Revision(2000))
    );
    let by_age = json!({"options": {"autoCompaction": {"retentionSeconds": 86400}}});
    assert_eq!(
        state(by_age, json!({}), full, true).defragmentation.compact_to,
        None,
        "the spec retains them"
    );
    let done = json!({"compactedRevision": 5000});
    let after = state(json!({}), done, full, true);
    assert_eq!(
        (after.defragmentation.compact_to, after.defragmentation.due),
        (None, None),
        "nothing is left to compact"
    );
    let run = json!({"trigger": "NoSpace", "startTime": NOW, "compactedRevision": 3000});
    assert_eq!(state(json!({}), run, full, true).defragmentation.compact_to, None, "once in a run");
}

#[test]
fn nospace_that_returns_triggers_another_run_after_a_delay() {
    let ended = |at: &str| {
        let recorded = json!({"trigger": "NoSpace", "startTime": at, "completionTime": at});
        state(json!({}), recorded, [(100, 20); 3], true).defragmentation.due
    };
    assert_eq!(ended("2026-11-16T11:55:01Z"), None);
    assert_eq!(ended("2026-11-16T11:55:00Z"), Some(DefragTrigger::NoSpace));
}

#[test]
fn quota_is_recovered_when_every_voter_is_reachable_and_has_a_fifth_free() {
    let recovered =
        |files| etcd(&state(json!({}), json!({}), files, true)).quota == Quota::Recovered;
    assert!(recovered([(80, 20), (10, 10), (80, 80)]));
    assert!(!recovered([(80, 20), (10, 10), (81, 80)]));
    assert!(!recovered([(80, 20), (0, 0), (80, 80)]), "one is unreachable");
}
