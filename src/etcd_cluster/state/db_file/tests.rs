//! When files are worth rewriting, and when they have room, one sentence each.
#![expect(clippy::needless_pass_by_value, reason = "JSON is written where it is handed over")]

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::api::etcd_types;
use crate::etcd_cluster::render::tests::{blueprint, cluster, name};
use crate::etcd_cluster::state::build::tests::{NOW, heard, member, object, pod, stock};
use crate::etcd_cluster::state::{EtcdState, ObservedState};
use crate::etcd_cluster::version::UpgradePath;

const MEBI: i64 = 1 << 20;

/// One look at three voters with a quota of 100 MiB, at what is asked for, what was told, and files of so many MiB, with so many in use.
fn seen(spec: Value, upkeep: Value, files: [(i64, i64); 3], full: bool) -> ObservedState {
    let spec = cluster(spec);
    let blueprint = blueprint(&spec);
    let names = ["main-a", "main-b", "main-c"];
    let quota = format!("--quota-backend-bytes={}", 100 * MEBI);
    let of = |name: &&str| {
        let mut pod = pod(
            name,
            json!({"name": "etcd", "image": "", "imageID": "", "ready": true, "restartCount": 0}),
        );
        pod["spec"]["containers"] = json!([{"name": "etcd", "args": [quota]}]);
        pod
    };
    let unwell = json!({"conditions": [{"type": "Reachable", "status": "False", "lastTransitionTime": "2026-11-16T11:00:00Z"}]});
    let members = names.iter().map(|it| member(it, "2026-11-16T10:00:00Z", unwell.clone()));
    let mut stock = stock(members.collect(), names.iter().map(of).collect(), vec![]);
    stock.cluster.status = Some(object(json!({"defragmentation": upkeep})));
    let voices = [("main-a", 1, 10, true), ("main-b", 2, 10, true), ("main-c", 3, 10, true)];
    let list = [(1, "main-a", false), (2, "main-b", false), (3, "main-c", false)];
    let mut heard = heard(&voices, &list);
    for (voice, (size, in_use)) in heard.members.values_mut().zip(files) {
        let standing = voice.status.as_mut().unwrap();
        (standing.db_size, standing.db_in_use) =
            (size.saturating_mul(MEBI), in_use.saturating_mul(MEBI));
        if size == 0 {
            voice.status = None;
        }
    }
    let Reading::Known(council) = &mut heard.quorum else { panic!("nobody agrees") };
    council.revision = 5000;
    if full {
        council.alarms.push(etcd_types::Alarm { member: 1, alarm_type: "NOSPACE" });
    }
    StateInputs {
        blueprint: &blueprint,
        objects: &stock,
        probe: &heard,
        path: UpgradePath::new(spec.version, &stock, &heard),
        previous: None,
        now: NOW.parse().unwrap(),
        observing_since: Timestamp::UNIX_EPOCH,
        names: vec![name("main-z")],
        trust: None,
    }
    .build()
}

fn etcd(seen: &ObservedState) -> &EtcdState {
    seen.etcd.known().unwrap()
}

fn worth(seen: &ObservedState) -> Vec<bool> {
    etcd(seen).members.iter().map(|it| it.should_defragment).collect()
}

const THRESHOLD: &str = "10Mi";

#[test]
fn a_file_is_worth_it_when_more_is_free_than_was_asked_for() {
    let asked = json!({"defragment": {"reclaimAbove": THRESHOLD}});
    let seen = seen(asked, json!({}), [(30, 20), (31, 20), (90, 85)], false);
    assert_eq!(worth(&seen), [false, true, false]);
    assert_eq!(seen.defragmentation.due, Some(DefragTrigger::Threshold));
}

#[test]
fn nobody_who_did_not_ask_for_it_is_disturbed() {
    let seen = seen(json!({}), json!({}), [(90, 10), (90, 10), (90, 10)], false);
    assert_eq!(worth(&seen), [false; 3]);
    assert_eq!(seen.defragmentation, Defragmentation::default());
}

#[test]
fn what_gives_back_next_to_nothing_is_left_alone_however_little_was_asked_for() {
    let asked = json!({"defragment": {"reclaimAbove": "1"}});
    let seen = seen(asked, json!({}), [(2, 1), (20, 19), (20, 20)], false);
    assert_eq!((worth(&seen), seen.defragmentation.due), (vec![false; 3], None));
}

#[test]
fn free_space_is_a_reason_once_an_hour() {
    let asked = || json!({"defragment": {"reclaimAbove": THRESHOLD}});
    let ended = |at: &str| {
        let told = json!({"trigger": "Threshold", "startTime": at, "completionTime": at});
        seen(asked(), told, [(90, 10); 3], false).defragmentation.due
    };
    assert_eq!(ended("2026-11-16T11:00:01Z"), None);
    assert_eq!(ended("2026-11-16T11:00:00Z"), Some(DefragTrigger::Threshold));
}

#[test]
fn with_a_schedule_files_are_looked_at_then_and_not_before() {
    let asked = || json!({"defragment": {"schedule": "@hourly", "reclaimAbove": THRESHOLD}});
    let due = |next: &str| {
        seen(asked(), json!({"nextScheduleTime": next}), [(90, 10); 3], false).defragmentation.due
    };
    assert_eq!(due("2026-11-16T13:00:00Z"), None);
    assert_eq!(due("2026-11-16T12:00:00Z"), Some(DefragTrigger::Schedule));
    assert_eq!(due("2026-11-15T07:00:00Z"), Some(DefragTrigger::Schedule), "it was missed");
    assert_eq!(
        seen(asked(), json!({}), [(90, 10); 3], false).defragmentation.due,
        None,
        "it was just set"
    );
    // Without a threshold a tenth of the file is enough.
    let plain = json!({"defragment": {"schedule": "@hourly"}});
    assert_eq!(
        worth(&seen(plain, json!({}), [(90, 82), (90, 80), (90, 90)], false)),
        [false, true, false]
    );
}

#[test]
fn a_member_whose_turn_it_is_may_be_silent_for_its_time_and_not_longer() {
    let told = |until: &str| {
        let told = json!({"trigger": "Threshold", "startTime": NOW, "members": ["main-b", "main-c"], "deadline": until});
        let seen = seen(json!({}), told, [(30, 20), (30, 20), (0, 0)], false);
        let given_up = seen.member(&name("main-c")).unwrap().replacement_due;
        (seen.defragmentation.in_progress, given_up)
    };
    assert_eq!(told("2026-11-16T12:00:01Z"), (Some(name("main-c")), false));
    assert_eq!(told("2026-11-16T12:00:00Z"), (None, true));
}

#[test]
fn where_free_space_fills_a_file_no_history_is_given_up() {
    let seen = seen(json!({}), json!({}), [(100, 70), (97, 70), (75, 70)], true);
    assert_eq!(etcd(&seen).quota, Quota::Exceeded);
    assert_eq!(worth(&seen), [true, true, false], "more than a twentieth of the quota");
    assert_eq!(
        (seen.defragmentation.due, seen.defragmentation.compact_to),
        (Some(DefragTrigger::NoSpace), None)
    );
}

#[test]
fn where_what_is_in_use_fills_a_file_history_is_given_up_once() {
    let full = [(100, 99), (100, 99), (100, 99)];
    let none = seen(json!({}), json!({}), full, true);
    assert_eq!(none.defragmentation.compact_to, Some(Revision(5000)));
    let by_count =
        json!({"options": {"autoCompaction": {"mode": "Revision", "retentionRevisions": 3000}}});
    assert_eq!(
        seen(by_count, json!({}), full, true).defragmentation.compact_to,
        Some(Revision(2000))
    );
    let by_age = json!({"options": {"autoCompaction": {"retentionSeconds": 86400}}});
    assert_eq!(
        seen(by_age, json!({}), full, true).defragmentation.compact_to,
        None,
        "it was asked for"
    );
    let done = json!({"compactedRevision": 5000});
    let after = seen(json!({}), done, full, true);
    assert_eq!(
        (after.defragmentation.compact_to, after.defragmentation.due),
        (None, None),
        "there is nothing to be done"
    );
    let round = json!({"trigger": "NoSpace", "startTime": NOW, "compactedRevision": 3000});
    assert_eq!(
        seen(json!({}), round, full, true).defragmentation.compact_to,
        None,
        "once in a round"
    );
}

#[test]
fn room_that_did_not_last_is_made_again_after_a_while() {
    let ended = |at: &str| {
        let told = json!({"trigger": "NoSpace", "startTime": at, "completionTime": at});
        seen(json!({}), told, [(100, 20); 3], true).defragmentation.due
    };
    assert_eq!(ended("2026-11-16T11:55:01Z"), None);
    assert_eq!(ended("2026-11-16T11:55:00Z"), Some(DefragTrigger::NoSpace));
}

#[test]
fn there_is_room_when_a_fifth_of_every_quota_is_free_and_nobody_is_silent() {
    let room = |files| etcd(&seen(json!({}), json!({}), files, true)).quota == Quota::Recovered;
    assert!(room([(80, 20), (10, 10), (80, 80)]));
    assert!(!room([(80, 20), (10, 10), (81, 80)]));
    assert!(!room([(80, 20), (0, 0), (80, 80)]), "nobody knows");
}
