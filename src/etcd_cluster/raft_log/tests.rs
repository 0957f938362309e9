//! Tests of the oldest writer and of the requirement.

use serde_json::json;

use super::*;
use crate::api::etcd_types::MemberEntry;
use crate::etcd_cluster::observe::etcd::{MemberProbe, QuorumView};
use crate::etcd_cluster::state::MemberName;

const THREE_SIX: Minor = Minor { major: 3, minor: 6 };

/// Members with their version and applied index; one without a version is unreachable.
fn probe(members: &[(&str, u64)]) -> EtcdProbe {
    let id = |at: usize| u64::try_from(at).unwrap().saturating_add(1);
    let name = |at: usize| MemberName(format!("main-{at}"));
    let member_probe = |(at, (version, applied)): (usize, &(&str, u64))| {
        let status = EndpointStatus {
            member: id(at),
            version: (*version).to_owned(),
            raft_index: *applied,
            applied_index: *applied,
            ..EndpointStatus::default()
        };
        let status = (!version.is_empty()).then_some(status);
        (name(at), MemberProbe { status, linearizable_read_ok: true, error: None })
    };
    let listed = |at: usize| MemberEntry {
        id: id(at),
        peer_urls: vec![format!("https://main-{at}.space.svc:2380")],
        is_learner: false,
    };
    let view = QuorumView {
        queried_member: name(0),
        cluster_id: 7,
        leader: 1,
        members: (0..members.len()).map(listed).collect(),
        alarms: Vec::new(),
        revision: 1,
    };
    EtcdProbe {
        members: members.iter().enumerate().map(member_probe).collect(),
        quorum: Reading::Known(view),
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

fn observe(recorded: &EtcdClusterStatus, members: &[(&str, u64)]) -> Option<(String, u64)> {
    OldestWriter::observe(recorded, &probe(members))
        .map(|oldest| (oldest.writer.to_string(), oldest.since))
}

fn requirement(next: &str, oldest_writer: Option<(u16, u64)>) -> RaftLogRequirement {
    let oldest_writer = oldest_writer
        .map(|(minor, since)| OldestWriter { writer: Minor { major: 3, minor }, since });
    RaftLogRequirement {
        next: Release::parse(next).unwrap(),
        snapshot_count: 10_000,
        oldest_writer,
    }
}

#[test]
fn initial_members_wrote_the_whole_log() {
    let initial = status(&json!({"bootstrap": {"members": ["main-0", "main-1", "main-2"]}}));
    let one = [("3.6.16", 9), ("", 0), ("", 0)];
    assert_eq!(observe(&initial, &one), Some(("3.6".to_owned(), 0)), "all have the same version");
}

#[test]
fn without_a_record_only_later_entries_are_known() {
    let lost = status(&json!({}));
    let all = [("3.6.16", 90), ("3.6.16", 91), ("3.6.16", 88)];
    assert_eq!(observe(&lost, &all), Some(("3.6".to_owned(), 91)));
    assert_eq!(observe(&lost, &[("3.6.16", 90), ("", 0)]), None, "unreachable, may be older");
}

#[test]
fn newer_version_is_recorded_when_no_older_member_is_left() {
    let before = recorded("3.5", 0);
    let half = [("3.6.16", 90), ("3.6.16", 91), ("3.5.35", 88)];
    assert_eq!(observe(&before, &half), Some(("3.5".to_owned(), 0)));
    let unreachable = [("3.6.16", 90), ("3.6.16", 91), ("", 0)];
    assert_eq!(observe(&before, &unreachable), Some(("3.5".to_owned(), 0)));
    let all = [("3.6.16", 90), ("3.6.16", 91), ("3.6.16", 88)];
    assert_eq!(observe(&before, &all), Some(("3.6".to_owned(), 91)));
    let newer = recorded("3.6", 91);
    assert_eq!(observe(&newer, &all), Some(("3.6".to_owned(), 91)), "recorded once");
}

#[test]
fn older_member_counts_at_once() {
    let one = [("3.6.16", 900), ("", 0), ("3.5.35", 890)];
    assert_eq!(observe(&recorded("3.6", 91), &one), Some(("3.5".to_owned(), 91)));
}

#[test]
fn older_target_version_counts_before_a_member_runs_it() {
    let targeting = |target: &str| {
        status(
            &json!({"currentVersion": "3.6.16", "targetVersion": target, "raftLog": {"oldestWriter": "3.6", "sinceIndex": 40}}),
        )
    };
    let all = [("3.6.16", 90), ("3.6.16", 90)];
    assert_eq!(observe(&targeting("3.6.16"), &all), Some(("3.6".to_owned(), 40)));
    assert_eq!(observe(&targeting("3.7.3"), &all), Some(("3.6".to_owned(), 40)));
    assert_eq!(observe(&targeting("3.5.35"), &all), Some(("3.5".to_owned(), 40)));
    let started = json!({"currentVersion": "3.6.16", "targetVersion": "3.5.35", "raftLog": {"oldestWriter": "3.5", "sinceIndex": 40}});
    assert_eq!(observe(&status(&started), &all), Some(("3.5".to_owned(), 40)), "unchanged");
    let reverted = json!({"currentVersion": "3.6.16", "targetVersion": "3.6.16", "raftLog": {"oldestWriter": "3.5", "sinceIndex": 40}});
    assert_eq!(
        observe(&status(&reverted), &all),
        Some(("3.6".to_owned(), 90)),
        "all members are reachable"
    );
}

#[test]
fn nothing_changes_without_quorum() {
    assert_eq!(OldestWriter::observe(&recorded("3.5", 4), &EtcdProbe::none()).unwrap().since, 4);
    assert_eq!(OldestWriter::observe(&status(&json!({})), &EtcdProbe::none()), None);
}

#[test]
fn recorded_writer_is_read_back() {
    let oldest_writer = OldestWriter { writer: THREE_SIX, since: 91 };
    let status = EtcdClusterStatus {
        raft_log: Field::Known(oldest_writer.status()),
        ..EtcdClusterStatus::default()
    };
    assert_eq!(OldestWriter::recorded(&status), Some(oldest_writer));
}

#[test]
fn only_a_version_that_cannot_read_old_entries_has_a_requirement() {
    let few = probe(&[("3.5.35", 20), ("3.5.35", 20)]);
    assert!(requirement("3.6.16", Some((5, 9))).is_met(&few));
    assert!(requirement("3.6.16", None).is_met(&few));
    assert_eq!(requirement("3.6.16", Some((5, 9))).missing_entries(&few), 0);
}

#[test]
fn log_that_started_with_the_previous_minor_meets_the_requirement() {
    assert!(requirement("3.7.3", Some((6, 0))).is_met(&probe(&[("3.6.16", 20)])));
}

#[test]
fn snapshots_must_be_beyond_the_entries_of_an_older_version() {
    let requirement = requirement("3.7.3", Some((6, 500)));
    let short = probe(&[("3.6.16", 11_499), ("3.6.16", 11_500), ("3.6.16", 11_500)]);
    assert!(!requirement.is_met(&short), "one has not applied enough");
    assert_eq!(requirement.missing_entries(&short), 0, "the log is long enough");
    assert_eq!(requirement.missing_entries(&probe(&[("3.6.16", 510)])), 10_990);
    let enough = probe(&[("3.6.16", 11_500), ("3.6.16", 11_500), ("3.6.16", 11_500)]);
    assert!(requirement.is_met(&enough));
    let unreachable = probe(&[("3.6.16", 11_500), ("", 0)]);
    assert!(!requirement.is_met(&unreachable), "one may have applied less");
}

#[test]
fn leader_must_have_dropped_old_entries_however_low_the_snapshot_count() {
    let requirement =
        RaftLogRequirement { snapshot_count: 1000, ..requirement("3.7.3", Some((6, 500))) };
    assert_eq!(requirement.missing_entries(&probe(&[("3.6.16", 500)])), 6_100);
}

#[test]
fn unknown_writer_blocks_the_step_and_writes_nothing() {
    for oldest_writer in [None, Some((5, 0))] {
        let requirement = requirement("3.7.3", oldest_writer);
        let probe = probe(&[("3.6.16", 20)]);
        assert!(!requirement.is_met(&probe));
        assert_eq!(requirement.missing_entries(&probe), 0);
    }
}
