//! What differs, and what does not, one sentence each.

use super::*;
use crate::etcd_cluster::decide::tests::{entry, three};
use crate::etcd_cluster::render::tests::{UID, blueprint, cluster, name};
use crate::etcd_cluster::state::BootstrapRecord;

fn state(voters: &[&str]) -> ObservedState {
    let (state, etcd) = three();
    let list = voters.iter().map(|it| entry(1, it)).collect();
    let etcd = Reading::Known(EtcdState { leader: None, members: list, ..etcd });
    ObservedState { bootstrap: BootstrapRecord::default(), members: Vec::new(), etcd, ..state }
}

fn stock(spec: &crate::api::etcd_cluster::validated::EtcdCluster, voters: usize) -> ClusterObjects {
    let blueprint = blueprint(spec);
    ClusterObjects {
        cluster: serde_json::from_value(json!({
            "apiVersion": "etcd.appdelivery.cncf.io/v1", "kind": "EtcdCluster",
            "metadata": {"name": "main", "namespace": "space", "uid": UID}, "spec": {},
        }))
        .unwrap(),
        members: Vec::new(),
        pods: Vec::new(),
        pvcs: Vec::new(),
        services: vec![blueprint.members_service(), blueprint.client_service()],
        pdbs: vec![blueprint.pdb(voters)],
        previous_cluster_objects: Vec::new(),
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
    assert_eq!(detect(&blueprint(&spec), &stock, &state(&[])), []);
}

#[test]
fn what_is_missing_or_was_changed_is_put_right() {
    let spec = cluster(json!({}));
    let mut stock = stock(&spec, 3);
    stock.services[1].spec.as_mut().unwrap().selector = None;
    stock.pdbs.clear();
    let found = detect(&blueprint(&spec), &stock, &state(&[]));
    assert!(matches!(found.as_slice(), [Drift::Service(..), Drift::PdbMissing(_)]), "{found:?}");
}

#[test]
fn a_selector_with_one_word_too_many_is_put_right() {
    let spec = cluster(json!({}));
    let mut stock = stock(&spec, 3);
    let service = stock.services[1].spec.as_mut().unwrap();
    service.selector.as_mut().unwrap().insert("app".to_owned(), "nobody".to_owned());
    let found = detect(&blueprint(&spec), &stock, &state(&[]));
    let [Drift::Service(_, patch)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(patch["spec"]["selector"]["app"], Value::Null);
    assert!(patch["spec"]["selector"].as_object().unwrap().contains_key("app"));
}

#[test]
fn a_budget_is_left_alone_while_nobody_knows_how_many_vote() {
    let spec = cluster(json!({"replicas": 1}));
    let stock = stock(&spec, 5);
    let unknown = ObservedState { etcd: Reading::Unknown, ..state(&[]) };
    assert_eq!(detect(&blueprint(&spec), &stock, &unknown), []);
    assert!(!detect(&blueprint(&spec), &stock, &state(&["main-a"])).is_empty());
}

#[test]
fn a_volume_grows_and_never_shrinks() {
    let was = cluster(json!({"storage": {"size": "2Gi"}}));
    let mut stock = stock(&was, 3);
    stock.pvcs = vec![blueprint(&was).pvc(&name("main-a")).unwrap()];
    stock.members =
        vec![blueprint(&was).member(&name("main-a"), crate::api::etcd_member::Intent::Join, true)];
    let patches = |size: &str| {
        let spec = cluster(json!({"storage": {"size": size}}));
        let found = detect(&blueprint(&spec), &stock, &state(&[]));
        found.into_iter().filter(|it| matches!(it, Drift::Pvc(..))).collect::<Vec<_>>()
    };
    assert_eq!(patches("2Gi"), []);
    assert_eq!(patches("1Gi"), []);
    let requests = json!({"spec": {"resources": {"requests": {"storage": "3Gi"}}}});
    assert_eq!(patches("3Gi"), [Drift::Pvc(name("main-a"), requests)]);
}

#[test]
fn the_pod_of_a_voter_says_so() {
    let spec = cluster(json!({}));
    let mut stock = stock(&spec, 3);
    let pod = |labels: Value| {
        serde_json::from_value(json!({"metadata": {"name": "main-a", "labels": labels}})).unwrap()
    };
    stock.pods = vec![pod(json!({}))];
    let found = detect(&blueprint(&spec), &stock, &state(&["main-a", "main-b"]));
    assert_eq!(found, [Drift::VoterLabel(name("main-a"))]);
    stock.pods = vec![pod(json!({names::ROLE_LABEL: names::VOTER}))];
    assert_eq!(detect(&blueprint(&spec), &stock, &state(&["main-a"])), []);
}

#[test]
fn nothing_goes_with_a_cluster_that_is_disconnected() {
    let (kept, left) = (cluster(json!({})), cluster(json!({"deletionPolicy": "Disconnect"})));
    let mut stock = stock(&kept, 3);
    stock.members =
        vec![blueprint(&kept).member(&name("main-a"), crate::api::etcd_member::Intent::Join, true)];
    stock.services.push(blueprint(&kept).member_service(&name("main-a"), ""));
    let found = detect(&blueprint(&left), &stock, &state(&[]));
    let services = found.iter().filter(|it| matches!(it, Drift::Service(..))).count();
    assert_eq!(services, 2, "the member's own stays with the member: {found:?}");
    assert!(found.iter().any(|it| matches!(it, Drift::Owner(..))), "{found:?}");
    let unowned = |it: &Drift| {
        let Drift::Pdb(_, patch) = it else { return false };
        patch["metadata"].get("ownerReferences") == Some(&Value::Null)
    };
    assert!(found.iter().any(unowned), "{found:?}");
}
