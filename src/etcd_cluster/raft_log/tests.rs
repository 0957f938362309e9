//! Who has written to the log, one sentence each.

use serde_json::json;

use super::*;
use crate::api::etcd_types::MemberEntry;
use crate::etcd_cluster::observe::etcd::{MemberProbe, QuorumView};
use crate::etcd_cluster::state::MemberName;

const THREE_SIX: Minor = Minor { major: 3, minor: 6 };

/// Members with their releases and how far each has acted on the log; nobody says anything where there is no release.
fn probe(members: &[(&str, u64)]) -> EtcdProbe {
    let id = |at: usize| u64::try_from(at).unwrap().saturating_add(1);
    let name = |at: usize| MemberName(format!("main-{at}"));
    let voice = |(at, (version, applied)): (usize, &(&str, u64))| {
        let standing = EndpointStatus {
            member: id(at),
            version: (*version).to_owned(),
            raft_index: *applied,
            applied_index: *applied,
            ..EndpointStatus::default()
        };
        let standing = (!version.is_empty()).then_some(standing);
        (name(at), MemberProbe { status: standing, linearizable_read_ok: true, error: None })
    };
    let listed = |at: usize| MemberEntry {
        id: id(at),
        peer_urls: vec![format!("https://main-{at}.space.svc:2380")],
        is_learner: false,
    };
    let council = QuorumView {
        queried_member: name(0),
        cluster_id: 7,
        leader: 1,
        members: (0..members.len()).map(listed).collect(),
        alarms: Vec::new(),
        revision: 1,
    };
    EtcdProbe {
        members: members.iter().enumerate().map(voice).collect(),
        quorum: Reading::Known(council),
        auth: crate::etcd_cluster::state::AuthState::InSync,
        data_hashes: std::collections::BTreeMap::new(),
    }
}

fn status(value: &serde_json::Value) -> EtcdClusterStatus {
    serde_json::from_value(value.clone()).unwrap()
}

fn recorded(writer: &str, since: u64) -> EtcdClusterStatus {
    status(
        &json!({"currentVersion": "3.5.35", "raftLog": {"oldestWriter": writer, "sinceIndex": since}}),
    )
}

fn now(before: &EtcdClusterStatus, members: &[(&str, u64)]) -> Option<(String, u64)> {
    OldestWriter::observe(before, &probe(members)).map(|it| (it.writer.to_string(), it.since))
}

fn need(next: &str, oldest_writer: Option<(u16, u64)>) -> RaftLogRequirement {
    let oldest_writer = oldest_writer
        .map(|(minor, since)| OldestWriter { writer: Minor { major: 3, minor }, since });
    RaftLogRequirement {
        next: Release::parse(next).unwrap(),
        snapshot_count: 10_000,
        oldest_writer,
    }
}

#[test]
fn founders_have_written_all_there_is() {
    let founding = status(&json!({"bootstrap": {"members": ["main-0", "main-1", "main-2"]}}));
    let one = [("3.6.16", 9), ("", 0), ("", 0)];
    assert_eq!(now(&founding, &one), Some(("3.6".to_owned(), 0)), "they are made of one release");
}

#[test]
fn of_a_log_that_nothing_is_known_of_only_what_comes_now_is_known() {
    let lost = status(&json!({}));
    let all = [("3.6.16", 90), ("3.6.16", 91), ("3.6.16", 88)];
    assert_eq!(now(&lost, &all), Some(("3.6".to_owned(), 91)));
    assert_eq!(now(&lost, &[("3.6.16", 90), ("", 0)]), None, "who is silent may be older");
}

#[test]
fn it_is_a_newer_one_when_the_last_of_the_older_has_gone() {
    let before = recorded("3.5", 0);
    let half = [("3.6.16", 90), ("3.6.16", 91), ("3.5.35", 88)];
    assert_eq!(now(&before, &half), Some(("3.5".to_owned(), 0)));
    let silent = [("3.6.16", 90), ("3.6.16", 91), ("", 0)];
    assert_eq!(now(&before, &silent), Some(("3.5".to_owned(), 0)));
    let all = [("3.6.16", 90), ("3.6.16", 91), ("3.6.16", 88)];
    assert_eq!(now(&before, &all), Some(("3.6".to_owned(), 91)));
    assert_eq!(now(&recorded("3.6", 91), &all), Some(("3.6".to_owned(), 91)), "it is said once");
}

#[test]
fn whoever_is_older_counts_at_once() {
    let one = [("3.6.16", 900), ("", 0), ("3.5.35", 890)];
    assert_eq!(now(&recorded("3.6", 91), &one), Some(("3.5".to_owned(), 91)));
}

#[test]
fn whoever_is_about_to_come_counts_before_it_is_heard() {
    let lowered = |target: &str| {
        status(
            &json!({"currentVersion": "3.6.16", "targetVersion": target, "raftLog": {"oldestWriter": "3.6", "sinceIndex": 40}}),
        )
    };
    let all = [("3.6.16", 90), ("3.6.16", 90)];
    assert_eq!(now(&lowered("3.6.16"), &all), Some(("3.6".to_owned(), 40)));
    assert_eq!(now(&lowered("3.7.3"), &all), Some(("3.6".to_owned(), 40)));
    assert_eq!(now(&lowered("3.5.35"), &all), Some(("3.5".to_owned(), 40)));
    let oldest_writer = json!({"currentVersion": "3.6.16", "targetVersion": "3.5.35", "raftLog": {"oldestWriter": "3.5", "sinceIndex": 40}});
    assert_eq!(now(&status(&oldest_writer), &all), Some(("3.5".to_owned(), 40)), "it stays so");
    let back = json!({"currentVersion": "3.6.16", "targetVersion": "3.6.16", "raftLog": {"oldestWriter": "3.5", "sinceIndex": 40}});
    assert_eq!(
        now(&status(&back), &all),
        Some(("3.6".to_owned(), 90)),
        "until all are asked again"
    );
}

#[test]
fn nothing_is_said_while_nobody_agrees() {
    assert_eq!(OldestWriter::observe(&recorded("3.5", 4), &EtcdProbe::none()).unwrap().since, 4);
    assert_eq!(OldestWriter::observe(&status(&json!({})), &EtcdProbe::none()), None);
}

#[test]
fn what_is_told_can_be_read_again() {
    let oldest_writer = OldestWriter { writer: THREE_SIX, since: 91 };
    let status = EtcdClusterStatus {
        raft_log: Field::Known(oldest_writer.status()),
        ..EtcdClusterStatus::default()
    };
    assert_eq!(OldestWriter::recorded(&status), Some(oldest_writer));
}

#[test]
fn only_a_release_that_does_not_read_everything_needs_more_of_the_log() {
    let few = probe(&[("3.5.35", 20), ("3.5.35", 20)]);
    assert!(need("3.6.16", Some((5, 9))).is_met(&few));
    assert!(need("3.6.16", None).is_met(&few));
    assert_eq!(need("3.6.16", Some((5, 9))).missing_entries(&few), 0);
}

#[test]
fn a_log_that_began_with_the_release_before_needs_nothing() {
    assert!(need("3.7.3", Some((6, 0))).is_met(&probe(&[("3.6.16", 20)])));
}

#[test]
fn a_snapshot_must_lie_beyond_what_an_older_release_wrote() {
    let need = need("3.7.3", Some((6, 500)));
    let short = probe(&[("3.6.16", 11_499), ("3.6.16", 11_500), ("3.6.16", 11_500)]);
    assert!(!need.is_met(&short), "one has not acted on enough");
    assert_eq!(need.missing_entries(&short), 0, "and enough was oldest_writer");
    assert_eq!(need.missing_entries(&probe(&[("3.6.16", 510)])), 10_990);
    let enough = probe(&[("3.6.16", 11_500), ("3.6.16", 11_500), ("3.6.16", 11_500)]);
    assert!(need.is_met(&enough));
    assert!(!need.is_met(&probe(&[("3.6.16", 11_500), ("", 0)])), "who is silent may lack it");
}

#[test]
fn a_leader_must_have_forgotten_it_however_often_snapshots_are_made() {
    let need = RaftLogRequirement { snapshot_count: 1000, ..need("3.7.3", Some((6, 500))) };
    assert_eq!(need.missing_entries(&probe(&[("3.6.16", 500)])), 6_100);
}

#[test]
fn while_it_is_not_known_nothing_is_written_and_nothing_begins() {
    for oldest_writer in [None, Some((5, 0))] {
        let need = need("3.7.3", oldest_writer);
        let probe = probe(&[("3.6.16", 20)]);
        assert!(!need.is_met(&probe));
        assert_eq!(need.missing_entries(&probe), 0);
    }
}
