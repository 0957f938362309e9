//! Tests of drift.

use super::*;
use crate::etcd_cluster::decide::tests::{entry, three};
use crate::etcd_cluster::render::tests::{UID, blueprint, cluster, name};
use crate::etcd_cluster::state::BootstrapRecord;

fn state(voters: &[&str]) -> ObservedState {
    let (state, etcd) = three();
    let list = voters.iter().map(|name| entry(1, name)).collect();
    let etcd = Reading::Known(EtcdState { leader: None, members: list, ..etcd });
    ObservedState { bootstrap: BootstrapRecord::default(), members: Vec::new(), etcd, ..state }
}

fn objects(
    spec: &crate::api::etcd_cluster::validated::EtcdCluster,
    voters: usize,
) -> ClusterObjects {
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
fn fields_added_by_the_api_server_are_no_drift() {
    let spec = cluster(json!({}));
    let mut objects = objects(&spec, 3);
    for service in &mut objects.services {
        service.metadata.resource_version = Some("7".to_owned());
        service.spec.as_mut().unwrap().session_affinity = Some("None".to_owned());
    }
    assert_eq!(detect(&blueprint(&spec), &objects, &state(&[])), []);
}

#[test]
fn missing_or_changed_objects_are_drift() {
    let spec = cluster(json!({}));
    let mut objects = objects(&spec, 3);
    objects.services[1].spec.as_mut().unwrap().selector = None;
    objects.pdbs.clear();
    let found = detect(&blueprint(&spec), &objects, &state(&[]));
    assert!(matches!(found.as_slice(), [Drift::Service(..), Drift::PdbMissing(_)]), "{found:?}");
}

#[test]
fn superfluous_selector_key_is_removed() {
    let spec = cluster(json!({}));
    let mut objects = objects(&spec, 3);
    let service = objects.services[1].spec.as_mut().unwrap();
    service.selector.as_mut().unwrap().insert("app".to_owned(), "other".to_owned());
    let found = detect(&blueprint(&spec), &objects, &state(&[]));
    let [Drift::Service(_, patch)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(patch["spec"]["selector"]["app"], Value::Null);
    assert!(patch["spec"]["selector"].as_object().unwrap().contains_key("app"));
}

#[test]
fn pdb_is_unchanged_while_the_number_of_voters_is_unknown() {
    let spec = cluster(json!({"replicas": 1}));
    let objects = objects(&spec, 5);
    let unknown = ObservedState { etcd: Reading::Unknown, ..state(&[]) };
    assert_eq!(detect(&blueprint(&spec), &objects, &unknown), []);
    assert!(!detect(&blueprint(&spec), &objects, &state(&["main-a"])).is_empty());
}

#[test]
fn volume_grows_and_never_shrinks() {
    let before = cluster(json!({"storage": {"size": "2Gi"}}));
    let mut objects = objects(&before, 3);
    objects.pvcs = vec![blueprint(&before).pvc(&name("main-a")).unwrap()];
    objects.members = vec![blueprint(&before).member(
        &name("main-a"),
        crate::api::etcd_member::Intent::Join,
        true,
    )];
    let patches = |size: &str| {
        let spec = cluster(json!({"storage": {"size": size}}));
        let found = detect(&blueprint(&spec), &objects, &state(&[]));
        found.into_iter().filter(|drift| matches!(drift, Drift::Pvc(..))).collect::<Vec<_>>()
    };
    assert_eq!(patches("2Gi"), []);
    assert_eq!(patches("1Gi"), []);
    let requests = json!({"spec": {"resources": {"requests": {"storage": "3Gi"}}}});
    assert_eq!(patches("3Gi"), [Drift::Pvc(name("main-a"), requests)]);
}

#[test]
fn pod_of_a_voter_is_labeled() {
    let spec = cluster(json!({}));
    let mut objects = objects(&spec, 3);
    let pod = |labels: Value| {
        serde_json::from_value(json!({"metadata": {"name": "main-a", "labels": labels}})).unwrap()
    };
    objects.pods = vec![pod(json!({}))];
    let found = detect(&blueprint(&spec), &objects, &state(&["main-a", "main-b"]));
    assert_eq!(found, [Drift::VoterLabel(name("main-a"))]);
    objects.pods = vec![pod(json!({names::ROLE_LABEL: names::VOTER}))];
    assert_eq!(detect(&blueprint(&spec), &objects, &state(&["main-a"])), []);
}

#[test]
fn disconnected_cluster_owns_nothing() {
    let (kept, left) = (cluster(json!({})), cluster(json!({"deletionPolicy": "Disconnect"})));
    let mut objects = objects(&kept, 3);
    objects.members =
        vec![blueprint(&kept).member(&name("main-a"), crate::api::etcd_member::Intent::Join, true)];
    objects.services.push(blueprint(&kept).member_service(&name("main-a"), ""));
    let found = detect(&blueprint(&left), &objects, &state(&[]));
    let services = found.iter().filter(|drift| matches!(drift, Drift::Service(..))).count();
    assert_eq!(services, 2, "the member's Service stays owned by the member: {found:?}");
    assert!(found.iter().any(|drift| matches!(drift, Drift::Owner(..))), "{found:?}");
    let unowned = |drift: &Drift| {
        let Drift::Pdb(_, patch) = drift else { return false };
        patch["metadata"].get("ownerReferences") == Some(&Value::Null)
    };
    assert!(found.iter().any(unowned), "{found:?}");
}
