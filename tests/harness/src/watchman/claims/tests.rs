//! Made-up clusters that tell the truth, and some that do not.

use serde_json::json;

use super::*;
use crate::etcd::Registered;

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

fn truth(well: &[&str]) -> Truth {
    let names = [("main-a", 10), ("main-b", 11), ("main-c", 12)];
    let registered =
        |(name, id): (&str, u64)| Registered { id, name: name.to_owned(), learner: false };
    let list = Listed { cluster: 0xcafe, members: names.map(registered).to_vec() };
    let quorum = well.len() > 1;
    let answer = |(name, id): (&str, u64)| {
        let answer = Answer {
            id,
            cluster: 0xcafe,
            leader: 10,
            version: "3.6.16".to_owned(),
            learner: false,
            agrees: quorum,
            list: quorum.then(|| list.clone()),
        };
        (name.to_owned(), well.contains(&name).then_some(answer))
    };
    Truth { answers: names.map(answer).into() }
}

fn told(object: &Value, truth: &Truth) -> Vec<String> {
    differences(&Claims::read(object), truth).into_keys().collect()
}

#[test]
fn who_tells_the_truth_is_not_blamed() {
    assert_eq!(told(&object(), &truth(&["main-a", "main-b", "main-c"])), Vec::<String>::new());
}

#[test]
fn a_member_that_is_away_must_not_be_called_healthy_nor_the_cluster_ready() {
    let said = told(&object(), &truth(&["main-a", "main-b"]));
    assert_eq!(
        said,
        [
            "it calls main-c healthy, which cannot read with a quorum",
            "it counts other healthy voters than there are",
            "it says that it is Ready, and not every wanted voter is well",
        ]
    );
}

#[test]
fn the_wrong_member_is_not_blamed() {
    let mut object = object();
    object["status"]["members"][0]["healthy"] = json!(false);
    let said = told(&object, &truth(&["main-a", "main-b", "main-c"]));
    assert_eq!(said, ["it blames main-a, which reads with a quorum"]);
}

#[test]
fn a_lost_quorum_is_said() {
    let said = told(&object(), &truth(&["main-a"]));
    let words = "it does not say that its quorum is lost, and nobody reads with a quorum";
    assert!(said.iter().any(|it| it == words), "{said:?}");
    assert!(said.iter().any(|it| it.contains("Available")), "{said:?}");
}

#[test]
fn a_stranger_in_the_list_is_seen() {
    let mut object = object();
    object["status"]["members"].as_array_mut().unwrap().pop();
    let said = told(&object, &truth(&["main-a", "main-b", "main-c"]));
    assert_eq!(said, ["it does not know main-c, which etcd lists"]);
}

#[test]
fn who_sleeps_or_was_never_there_says_nothing() {
    let mut object = object();
    object["spec"]["replicas"] = json!(0);
    assert!(told(&object, &Truth::default()).is_empty());
    object = json!({"spec": {"replicas": 3}, "status": {}});
    assert!(told(&object, &Truth::default()).is_empty());
}
