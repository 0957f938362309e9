//! What is recorded about defragmentation.

use serde_json::json;

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn weekly(zone: Option<&str>) -> Defragment {
    Defragment {
        schedule: Some("0 4 * * 0".to_owned()),
        time_zone: zone.map(str::to_owned),
        reclaim_above: None,
    }
}

/// A Tuesday.
const NOW: &str = "2026-11-17T12:00:00Z";
const SUNDAY: &str = "2026-11-22T04:00:00Z";

fn status(recorded: &Value) -> EtcdClusterStatus {
    serde_json::from_value(json!({
        "defragmentation": recorded,
        "members": [{"name": "main-a", "dbSize": 1_073_741_824_i64}],
    }))
    .unwrap()
}

fn recorded(recorded: &Value, due: Option<DefragTrigger>, event: DefragEvent<'_>) -> DefragStatus {
    let status = status(recorded);
    let observed = Defragmentation { due, ..Defragmentation::default() };
    let spec = weekly(None);
    let writer = DefragStatusWriter {
        status: &status,
        observed: &observed,
        spec: Some(&spec),
        now: at(NOW),
    };
    DefragStatus::parse(&serde_json::from_value(writer.record(event)).unwrap())
}

#[test]
fn new_schedule_has_no_missed_run() {
    let status = DefragStatus::default();
    assert_eq!(status.next_run(Some(&weekly(None)), at(NOW)), Some(at(SUNDAY)));
    assert_eq!(status.next_run(None, at(NOW)), None);
}

#[test]
fn missed_run_stays_due_until_it_is_made_up_for_once() {
    let missed = DefragStatus {
        next_schedule_time: Some(at("2026-11-01T04:00:00Z")),
        ..DefragStatus::default()
    };
    let due = missed.next_run(Some(&weekly(None)), at(NOW));
    assert_eq!(due, missed.next_schedule_time, "three missed Sundays are one run");
    let begun =
        recorded(&json!(missed.status()), Some(DefragTrigger::Schedule), DefragEvent::Finished);
    assert_eq!(begun.next_schedule_time, Some(at(SUNDAY)));
    assert_eq!((begun.start_time, begun.completion_time), (Some(at(NOW)), Some(at(NOW))));
}

#[test]
fn changed_schedule_or_time_zone_counts_from_now() {
    let status = DefragStatus { next_schedule_time: Some(at(SUNDAY)), ..DefragStatus::default() };
    let berlin = status.next_run(Some(&weekly(Some("Europe/Berlin"))), at(NOW));
    assert_eq!(berlin, Some(at("2026-11-22T03:00:00Z")));
    // A time that both schedules have in common, far in the future.
    let yearly = DefragStatus {
        next_schedule_time: Some(at("2027-01-01T00:00:00Z")),
        ..DefragStatus::default()
    };
    let hourly = Defragment { schedule: Some("@hourly".to_owned()), ..weekly(None) };
    assert_eq!(yearly.next_run(Some(&hourly), at(NOW)), Some(at("2026-11-17T13:00:00Z")));
    let daily = Defragment { schedule: Some("@daily".to_owned()), ..weekly(None) };
    assert_eq!(status.next_run(Some(&daily), at(NOW)), Some(at("2026-11-18T00:00:00Z")));
}

#[test]
fn defragmented_member_is_recorded_with_a_deadline() {
    let name = MemberName("main-a".to_owned());
    let status =
        recorded(&json!({}), Some(DefragTrigger::Threshold), DefragEvent::MemberStarted(&name));
    let round = DefragRun { trigger: DefragTrigger::Threshold, completed: vec![name.clone()] };
    assert_eq!(status.run(), Some(round));
    assert_eq!(
        status.deadline,
        Some(at("2026-11-17T12:05:16Z")),
        "a minute, and 256 seconds for 1Gi"
    );
    assert!(status.is_in_progress(at(NOW)) && !status.is_in_progress(at("2026-11-17T12:05:16Z")));
    // The same run continues.
    let again = recorded(&json!(status.status()), None, DefragEvent::MemberStarted(&name));
    assert_eq!(again.members, [name.clone(), name]);
    assert_eq!(again.start_time, status.start_time);
}

#[test]
fn database_of_unknown_size_gets_the_deadline_of_the_largest() {
    let status = recorded(
        &json!({}),
        Some(DefragTrigger::NoSpace),
        DefragEvent::MemberStarted(&MemberName("main-z".to_owned())),
    );
    assert_eq!(status.deadline, Some(at("2026-11-17T12:35:08Z")));
}

#[test]
fn compacted_revision_is_recorded_and_members_are_defragmented_again() {
    let before = json!({"trigger": "Threshold", "startTime": NOW, "members": ["main-a", "main-a"]});
    let status = recorded(&before, None, DefragEvent::Compacted(Revision(41)));
    assert_eq!(
        status.run(),
        Some(DefragRun { trigger: DefragTrigger::NoSpace, completed: Vec::new() })
    );
    assert_eq!(status.compacted_revision, Some(Revision(41)));
    assert!(status.is_in_progress(at(NOW)), "members have time to free the revisions");
    let over = recorded(&json!(status.status()), None, DefragEvent::Finished);
    assert_eq!((over.run(), over.compacted_revision), (None, Some(Revision(41))));
    let next = recorded(
        &json!(over.status()),
        Some(DefragTrigger::NoSpace),
        DefragEvent::MemberStarted(&MemberName("b".to_owned())),
    );
    assert_eq!(next.compacted_revision, Some(Revision(41)), "etcd does not report it");
}

#[test]
fn default_status_is_absent() {
    assert_eq!(DefragStatus::default().status(), Field::Absent);
}
