//! What differs, and what does not, one sentence each.

use super::*;
use crate::etcd_cluster::decide::tests::{entry, three};
use crate::etcd_cluster::render::tests::{UID, blueprint, cluster, name};
use crate::etcd_cluster::seen::Record;

fn seen(voters: &[&str]) -> Seen {
    let (seen, etcd) = three();
    let list = voters.iter().map(|it| entry(1, it)).collect();
    let etcd = Reading::Known(Etcd { leader: None, list, ..etcd });
    Seen { record: Record::default(), members: Vec::new(), etcd, ..seen }
}

fn stock(spec: &crate::api::etcd_cluster::checked::EtcdCluster, voters: usize) -> Stock {
    let blueprint = blueprint(spec);
    Stock {
        cluster: serde_json::from_value(json!({
            "apiVersion": "etcd.appdelivery.cncf.io/v1", "kind": "EtcdCluster",
            "metadata": {"name": "main", "namespace": "space", "uid": UID}, "spec": {},
        }))
        .unwrap(),
        members: Vec::new(),
        pods: Vec::new(),
        claims: Vec::new(),
        services: vec![blueprint.members_service(), blueprint.client_service()],
        budgets: vec![blueprint.budget(voters)],
        predecessors: Vec::new(),
    }
}

#[test]
fn what_the_api_server_adds_makes_no_difference() {
    let spec = cluster(json!({}));
    let mut stock = stock(&spec, 3);
    for service in &mut stock.services {
        service.metadata.resource_version = Some("7".to_owned());
        service.spec.as_mut().unwrap().session_affinity = Some("None".to_owned());
    }
    assert_eq!(differences(&blueprint(&spec), &stock, &seen(&[])), []);
}

#[test]
fn what_is_missing_or_was_changed_is_put_right() {
    let spec = cluster(json!({}));
    let mut stock = stock(&spec, 3);
    stock.services[1].spec.as_mut().unwrap().selector = None;
    stock.budgets.clear();
    let found = differences(&blueprint(&spec), &stock, &seen(&[]));
    assert!(
        matches!(found.as_slice(), [Difference::Service(..), Difference::NoBudget(_)]),
        "{found:?}"
    );
}

#[test]
fn a_selector_with_one_word_too_many_is_put_right() {
    let spec = cluster(json!({}));
    let mut stock = stock(&spec, 3);
    let service = stock.services[1].spec.as_mut().unwrap();
    service.selector.as_mut().unwrap().insert("app".to_owned(), "nobody".to_owned());
    let found = differences(&blueprint(&spec), &stock, &seen(&[]));
    let [Difference::Service(_, patch)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(patch["spec"]["selector"]["app"], Value::Null);
    assert!(patch["spec"]["selector"].as_object().unwrap().contains_key("app"));
}

#[test]
fn a_budget_is_left_alone_while_nobody_knows_how_many_vote() {
    let spec = cluster(json!({"replicas": 1}));
    let stock = stock(&spec, 5);
    let unknown = Seen { etcd: Reading::Unknown, ..seen(&[]) };
    assert_eq!(differences(&blueprint(&spec), &stock, &unknown), []);
    assert!(!differences(&blueprint(&spec), &stock, &seen(&["main-a"])).is_empty());
}

#[test]
fn a_volume_grows_and_never_shrinks() {
    let was = cluster(json!({"storage": {"size": "2Gi"}}));
    let mut stock = stock(&was, 3);
    stock.claims = vec![blueprint(&was).volume(&name("main-a")).unwrap()];
    stock.members =
        vec![blueprint(&was).member(&name("main-a"), crate::api::etcd_member::Intent::Join, true)];
    let patches = |size: &str| {
        let spec = cluster(json!({"storage": {"size": size}}));
        let found = differences(&blueprint(&spec), &stock, &seen(&[]));
        found.into_iter().filter(|it| matches!(it, Difference::Claim(..))).collect::<Vec<_>>()
    };
    assert_eq!(patches("2Gi"), []);
    assert_eq!(patches("1Gi"), []);
    let requests = json!({"spec": {"resources": {"requests": {"storage": "3Gi"}}}});
    assert_eq!(patches("3Gi"), [Difference::Claim(name("main-a"), requests)]);
}

#[test]
fn the_pod_of_a_voter_says_so() {
    let spec = cluster(json!({}));
    let mut stock = stock(&spec, 3);
    let pod = |labels: Value| {
        serde_json::from_value(json!({"metadata": {"name": "main-a", "labels": labels}})).unwrap()
    };
    stock.pods = vec![pod(json!({}))];
    let found = differences(&blueprint(&spec), &stock, &seen(&["main-a", "main-b"]));
    assert_eq!(found, [Difference::Voter(name("main-a"))]);
    stock.pods = vec![pod(json!({names::ROLE_LABEL: names::VOTER}))];
    assert_eq!(differences(&blueprint(&spec), &stock, &seen(&["main-a"])), []);
}

#[test]
fn nothing_goes_with_a_cluster_that_is_disconnected() {
    let (kept, left) = (cluster(json!({})), cluster(json!({"deletionPolicy": "Disconnect"})));
    let mut stock = stock(&kept, 3);
    stock.members =
        vec![blueprint(&kept).member(&name("main-a"), crate::api::etcd_member::Intent::Join, true)];
    stock.services.push(blueprint(&kept).member_service(&name("main-a"), ""));
    let found = differences(&blueprint(&left), &stock, &seen(&[]));
    let services = found.iter().filter(|it| matches!(it, Difference::Service(..))).count();
    assert_eq!(services, 2, "the member's own stays with the member: {found:?}");
    assert!(found.iter().any(|it| matches!(it, Difference::Owner(..))), "{found:?}");
    let unowned = |it: &Difference| {
        let Difference::Budget(_, patch) = it else { return false };
        patch["metadata"].get("ownerReferences") == Some(&Value::Null)
    };
    assert!(found.iter().any(unowned), "{found:?}");
}
