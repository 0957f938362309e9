//! Tests of the rendered objects.

mod flags;
mod pod;

use super::*;
use crate::api::etcd_member::Intent;
use crate::api::names;
use crate::api::validated::FromObject;
use crate::etcd_cluster::heartbeat::HeartbeatProfile;
use crate::etcd_cluster::state::MemberName;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};

pub(crate) const UID: &str = "8d3f4c7e-0000-4000-8000-000000000001";

/// A validated cluster with this spec; the version has a default.
pub(crate) fn cluster(mut spec: Value) -> EtcdCluster {
    if spec.get("version").is_none() {
        spec["version"] = json!("3.6.16");
    }
    EtcdCluster::read(&json!({"spec": spec})).unwrap()
}

pub(crate) const fn blueprint(spec: &EtcdCluster) -> Blueprint<'_> {
    Blueprint {
        name: "main",
        namespace: "space",
        uid: UID,
        spec,
        transport: None,
        requires_cluster_name: false,
        agent_image: "quorate/quorate:v1",
        measured: Measured { heartbeat: HeartbeatProfile::ETCD_DEFAULT, smallest_volume: None },
        agent_pull_policy: Some("IfNotPresent"),
    }
}

pub(crate) fn name(text: &str) -> MemberName {
    MemberName(text.to_owned())
}

fn with_policy(policy: &str) -> EtcdCluster {
    cluster(json!({"deletionPolicy": policy}))
}

fn min_available(replicas: u8, voters: usize) -> IntOrString {
    let spec = cluster(json!({"replicas": replicas}));
    blueprint(&spec).pdb(voters).spec.unwrap().min_available.unwrap()
}

#[test]
fn objects_are_owned_by_the_cluster_unless_disconnected() {
    for policy in ["Retain", "Delete", "SnapshotThenDelete"] {
        let spec = with_policy(policy);
        let owner = blueprint(&spec).owner().unwrap();
        assert_eq!((owner.kind.as_str(), owner.uid.as_str()), ("EtcdCluster", UID));
        assert_eq!((owner.controller, owner.block_owner_deletion), (Some(true), None));
        assert_eq!(owner.api_version, "etcd.appdelivery.cncf.io/v1");
    }
    let spec = with_policy("Disconnect");
    let blueprint = blueprint(&spec);
    let all = [
        blueprint.members_service().metadata,
        blueprint.client_service().metadata,
        blueprint.pdb(3).metadata,
        blueprint.pvc(&name("main-a")).unwrap().metadata,
        blueprint.member(&name("main-a"), Intent::Join, false).metadata,
    ];
    for metadata in all {
        assert_eq!(metadata.owner_references, None, "{:?}", metadata.name);
    }
}

#[test]
fn pvc_has_an_owner_only_with_deletion_policy_delete() {
    for (policy, owned) in
        [("Retain", false), ("Delete", true), ("SnapshotThenDelete", false), ("Disconnect", false)]
    {
        let spec = with_policy(policy);
        let volume = blueprint(&spec).pvc(&name("main-a")).unwrap();
        assert_eq!(volume.metadata.owner_references.is_some(), owned, "{policy}");
        let labels = volume.metadata.labels.unwrap();
        assert_eq!(labels[names::CLUSTER_UID_LABEL], UID);
        assert_eq!(labels[names::MEMBER_LABEL], "main-a");
    }
}

#[test]
fn pvc_requests_exactly_the_size_of_the_spec() {
    let spec = cluster(json!({"storage": {"size": "1.5Gi", "className": "fast"}}));
    let volume = blueprint(&spec).pvc(&name("main-a")).unwrap();
    let claim = volume.spec.unwrap();
    assert_eq!(claim.resources.unwrap().requests.unwrap()["storage"].0, "1536Mi");
    assert_eq!(claim.storage_class_name.as_deref(), Some("fast"));
    assert_eq!(claim.access_modes.unwrap(), ["ReadWriteOnce"]);
}

#[test]
fn data_in_memory_has_no_pvc() {
    let spec = cluster(json!({"storage": {"medium": "Memory"}}));
    assert_eq!(blueprint(&spec).pvc(&name("main-a")), None);
}

#[test]
fn pdb_keeps_a_quorum_of_voters() {
    for (replicas, voters, expected) in
        [(1, 0, 1), (1, 1, 1), (3, 0, 2), (3, 3, 2), (3, 4, 3), (3, 5, 3), (5, 3, 3), (7, 7, 4)]
    {
        assert_eq!(
            min_available(replicas, voters),
            IntOrString::Int(expected),
            "{replicas}, {voters}"
        );
    }
    for voters in [0, 1, 3] {
        assert_eq!(min_available(0, voters), IntOrString::Int(0), "hibernated");
    }
}

#[test]
fn pdb_and_client_service_select_voters_only() {
    let spec = cluster(json!({}));
    let blueprint = blueprint(&spec);
    let budget = blueprint.pdb(3).spec.unwrap();
    let budget_labels = budget.selector.unwrap().match_labels.unwrap();
    let client_labels = blueprint.client_service().spec.unwrap().selector.unwrap();
    assert_eq!(budget_labels, client_labels);
    assert_eq!(client_labels[names::ROLE_LABEL], names::VOTER);
    let found = blueprint.members_service().spec.unwrap();
    assert_eq!(found.selector.unwrap().len(), 1, "learners have a host name, too");
    assert_eq!(found.publish_not_ready_addresses, Some(true));
    assert_eq!(found.cluster_ip.as_deref(), Some("None"));
}

#[test]
fn rendered_member_passes_validation() {
    use crate::api::etcd_member::validated::EtcdMember;
    let spec = cluster(json!({"storage": {"size": "2Gi", "className": "fast"}}));
    let written = blueprint(&spec).member(&name("main-a"), Intent::Bootstrap, true);
    let json = serde_json::to_value(&written).unwrap();
    let read: EtcdMember = crate::api::validated::tests::value(&json["spec"]);
    assert_eq!(read.peer_url, "https://main-a.space.svc:2380");
    assert_eq!(read.client_url.as_deref(), Some("https://main-a.space.svc:2379"));
    assert_eq!(read.storage.as_ref(), Some(&spec.storage));
    assert_eq!((read.intent, read.started), (Intent::Bootstrap, true));
    let owner = written.metadata.owner_references.unwrap();
    assert_eq!(owner[0].kind, "EtcdCluster");
}
