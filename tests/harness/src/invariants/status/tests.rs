//! Constructed clusters whose status is right, and some whose status is wrong.

use serde_json::json;

use super::*;
use crate::etcd::ListedMember;

const ALL: [&str; 3] = ["main-a", "main-b", "main-c"];

fn object() -> Value {
    json!({
        "spec": {"replicas": 3},
        "status": {
            "clusterID": "cafe", "leader": "main-a", "readyReplicas": 3,
            "members": [
                {"name": "main-a", "id": "a", "role": "Leader", "version": "3.6.16", "healthy": true},
                {"name": "main-b", "id": "b", "role": "Voter", "version": "3.6.16", "healthy": true},
                {"name": "main-c", "id": "c", "role": "Voter", "version": "3.6.16", "healthy": true},
            ],
            "conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "Available", "status": "True"},
                {"type": "QuorumLost", "status": "False"},
            ],
        },
    })
}

fn actual(healthy: &[&str]) -> ActualState {
    let names = [("main-a", 10), ("main-b", 11), ("main-c", 12)];
    let listed =
        |(name, id): (&str, u64)| ListedMember { id, name: name.to_owned(), is_learner: false };
    let list = MemberList { cluster: 0xcafe, members: names.map(listed).to_vec() };
    let quorum = healthy.len() > 1;
    let probe = |(name, id): (&str, u64)| {
        let probe = MemberProbe {
            id,
            cluster: 0xcafe,
            leader: 10,
            version: "3.6.16".to_owned(),
            is_learner: false,
            linearizable_read_ok: quorum,
            list: quorum.then(|| list.clone()),
        };
        (name.to_owned(), healthy.contains(&name).then_some(probe))
    };
    ActualState { probes: names.map(probe).into() }
}

fn messages(object: &Value, actual: &ActualState) -> Vec<String> {
    mismatches(&ReportedStatus::read(object), actual).into_keys().collect()
}

#[test]
fn right_status_has_no_mismatch() {
    assert_eq!(messages(&object(), &actual(&ALL)), Vec::<String>::new());
}

#[test]
fn unreachable_member_must_not_be_reported_healthy_nor_the_cluster_ready() {
    assert_eq!(
        messages(&object(), &actual(&["main-a", "main-b"])),
        [
            "Ready is True, and not every desired voter is healthy",
            "main-c is reported healthy, and its linearizable read fails",
            "readyReplicas is not the number of healthy voters",
        ]
    );
}

#[test]
fn healthy_member_must_not_be_reported_unhealthy() {
    let mut object = object();
    object["status"]["members"][0]["healthy"] = json!(false);
    assert_eq!(
        messages(&object, &actual(&ALL)),
        ["main-a is reported unhealthy, and its linearizable read succeeds"]
    );
}

#[test]
fn lost_quorum_must_be_reported() {
    let found = messages(&object(), &actual(&["main-a"]));
    let expected = "QuorumLost is not True, and no linearizable read succeeds";
    assert!(found.iter().any(|message| message == expected), "{found:?}");
    assert!(found.iter().any(|message| message.contains("Available")), "{found:?}");
}

#[test]
fn listed_member_that_is_not_reported_is_a_mismatch() {
    let mut object = object();
    object["status"]["members"].as_array_mut().unwrap().pop();
    assert_eq!(messages(&object, &actual(&ALL)), ["main-c is listed by etcd and not reported"]);
}

#[test]
fn hibernated_cluster_and_cluster_before_bootstrap_have_no_mismatch() {
    let mut object = object();
    object["spec"]["replicas"] = json!(0);
    assert!(messages(&object, &ActualState::default()).is_empty());
    object = json!({"spec": {"replicas": 3}, "status": {}});
    assert!(messages(&object, &ActualState::default()).is_empty());
}
