//! What is written down about files, one sentence each.

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

fn status(upkeep: &Value) -> EtcdClusterStatus {
    serde_json::from_value(json!({
        "upkeep": upkeep,
        "members": [{"name": "main-a", "dbSize": 1_073_741_824_i64}],
    }))
    .unwrap()
}

fn written(upkeep: &Value, due: Option<Occasion>, note: Note<'_>) -> Told {
    let status = status(upkeep);
    let upkeep = Upkeep { due, ..Upkeep::default() };
    let asked = weekly(None);
    let scribe = Scribe { status: &status, upkeep: &upkeep, asked: Some(&asked), now: at(NOW) };
    Told::read(&serde_json::from_value(scribe.record(note)).unwrap())
}

#[test]
fn a_schedule_that_was_just_set_makes_up_for_nothing() {
    let told = Told::default();
    assert_eq!(told.next_look(Some(&weekly(None)), at(NOW)), Some(at(SUNDAY)));
    assert_eq!(told.next_look(None, at(NOW)), None);
}

#[test]
fn a_time_that_was_missed_stays_due_until_it_is_made_up_for_once() {
    let missed = Told { next: Some(at("2026-11-01T04:00:00Z")), ..Told::default() };
    let due = missed.next_look(Some(&weekly(None)), at(NOW));
    assert_eq!(due, missed.next, "three Sundays are one time");
    let begun = written(&json!(missed.status()), Some(Occasion::Schedule), Note::Ended);
    assert_eq!(begun.next, Some(at(SUNDAY)));
    assert_eq!((begun.began, begun.ended), (Some(at(NOW)), Some(at(NOW))));
}

#[test]
fn another_schedule_or_zone_counts_from_now() {
    let told = Told { next: Some(at(SUNDAY)), ..Told::default() };
    let berlin = told.next_look(Some(&weekly(Some("Europe/Berlin"))), at(NOW));
    assert_eq!(berlin, Some(at("2026-11-22T03:00:00Z")));
    // A time that both have in common, and that is far away.
    let yearly = Told { next: Some(at("2027-01-01T00:00:00Z")), ..Told::default() };
    let hourly = Defragment { schedule: Some("@hourly".to_owned()), ..weekly(None) };
    assert_eq!(yearly.next_look(Some(&hourly), at(NOW)), Some(at("2026-11-17T13:00:00Z")));
    let daily = Defragment { schedule: Some("@daily".to_owned()), ..weekly(None) };
    assert_eq!(told.next_look(Some(&daily), at(NOW)), Some(at("2026-11-18T00:00:00Z")));
}

#[test]
fn a_turn_is_written_down_with_how_long_it_may_take() {
    let name = Name("main-a".to_owned());
    let told = written(&json!({}), Some(Occasion::Threshold), Note::Turn(&name));
    let round = Round { occasion: Occasion::Threshold, turns: vec![name.clone()] };
    assert_eq!(told.round(), Some(round));
    assert_eq!(told.until, Some(at("2026-11-17T12:05:16Z")), "a minute, and 256 seconds for 1Gi");
    assert!(told.is_under_way(at(NOW)) && !told.is_under_way(at("2026-11-17T12:05:16Z")));
    // The same round goes on, and does not begin anew.
    let again = written(&json!(told.status()), None, Note::Turn(&name));
    assert_eq!(again.turns, [name.clone(), name]);
    assert_eq!(again.began, told.began);
}

#[test]
fn a_file_of_a_size_that_was_not_told_has_the_time_of_the_largest() {
    let told = written(&json!({}), Some(Occasion::NoSpace), Note::Turn(&Name("main-z".to_owned())));
    assert_eq!(told.until, Some(at("2026-11-17T12:35:08Z")));
}

#[test]
fn history_that_was_given_up_is_remembered_and_turns_begin_anew() {
    let before = json!({"occasion": "Threshold", "began": NOW, "turns": ["main-a", "main-a"]});
    let told = written(&before, None, Note::Compacted(Revision(41)));
    assert_eq!(told.round(), Some(Round { occasion: Occasion::NoSpace, turns: Vec::new() }));
    assert_eq!(told.compacted, Some(Revision(41)));
    assert!(told.is_under_way(at(NOW)), "members have a moment to let go of it");
    let over = written(&json!(told.status()), None, Note::Ended);
    assert_eq!((over.round(), over.compacted), (None, Some(Revision(41))));
    let next =
        written(&json!(over.status()), Some(Occasion::NoSpace), Note::Turn(&Name("b".to_owned())));
    assert_eq!(next.compacted, Some(Revision(41)), "etcd does not tell it");
}

#[test]
fn what_nobody_asked_for_says_nothing() {
    assert_eq!(Told::default().status(), Field::Absent);
}
