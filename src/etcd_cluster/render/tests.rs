//! What the rendered objects promise, one sentence each.

mod flags;
mod pod;

use super::*;
use crate::api::checked::Readable;
use crate::api::etcd_member::Intent;
use crate::api::names;
use crate::etcd_cluster::pace::Pace;
use crate::etcd_cluster::seen::Name;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};

pub(crate) const UID: &str = "8d3f4c7e-0000-4000-8000-000000000001";

/// A cluster of which only this was said, beside its version.
pub(crate) fn cluster(mut said: Value) -> EtcdCluster {
    if said.get("version").is_none() {
        said["version"] = json!("3.6.16");
    }
    EtcdCluster::read(&json!({"spec": said})).unwrap()
}

pub(crate) const fn blueprint(spec: &EtcdCluster) -> Blueprint<'_> {
    Blueprint {
        name: "main",
        namespace: "space",
        uid: UID,
        spec,
        doors: None,
        named: false,
        agent_image: "quorate/quorate:v1",
        found: Found { pace: Pace::OWN, disk: None },
        agent_pull_policy: Some("IfNotPresent"),
    }
}

pub(crate) fn name(text: &str) -> Name {
    Name(text.to_owned())
}

fn with_policy(policy: &str) -> EtcdCluster {
    cluster(json!({"deletionPolicy": policy}))
}

fn least(replicas: u8, voters: usize) -> IntOrString {
    let spec = cluster(json!({"replicas": replicas}));
    blueprint(&spec).budget(voters).spec.unwrap().min_available.unwrap()
}

#[test]
fn what_the_cluster_has_goes_with_it_unless_it_is_disconnected() {
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
        blueprint.budget(3).metadata,
        blueprint.volume(&name("main-a")).unwrap().metadata,
        blueprint.member(&name("main-a"), Intent::Join, false).metadata,
    ];
    for metadata in all {
        assert_eq!(metadata.owner_references, None, "{:?}", metadata.name);
    }
}

#[test]
fn a_volume_has_an_owner_only_if_the_user_wants_it_deleted() {
    for (policy, owned) in
        [("Retain", false), ("Delete", true), ("SnapshotThenDelete", false), ("Disconnect", false)]
    {
        let spec = with_policy(policy);
        let volume = blueprint(&spec).volume(&name("main-a")).unwrap();
        assert_eq!(volume.metadata.owner_references.is_some(), owned, "{policy}");
        let labels = volume.metadata.labels.unwrap();
        assert_eq!(labels[names::CLUSTER_UID_LABEL], UID);
        assert_eq!(labels[names::MEMBER_LABEL], "main-a");
    }
}

#[test]
fn a_volume_is_as_large_as_was_said_to_the_byte() {
    let spec = cluster(json!({"storage": {"size": "1.5Gi", "className": "fast"}}));
    let volume = blueprint(&spec).volume(&name("main-a")).unwrap();
    let claim = volume.spec.unwrap();
    assert_eq!(claim.resources.unwrap().requests.unwrap()["storage"].0, "1536Mi");
    assert_eq!(claim.storage_class_name.as_deref(), Some("fast"));
    assert_eq!(claim.access_modes.unwrap(), ["ReadWriteOnce"]);
}

#[test]
fn data_in_memory_has_no_volume() {
    let spec = cluster(json!({"storage": {"medium": "Memory"}}));
    assert_eq!(blueprint(&spec).volume(&name("main-a")), None);
}

#[test]
fn so_many_voters_stay_up_that_they_can_agree() {
    for (replicas, voters, expected) in
        [(1, 0, 1), (1, 1, 1), (3, 0, 2), (3, 3, 2), (3, 4, 3), (3, 5, 3), (5, 3, 3), (7, 7, 4)]
    {
        assert_eq!(least(replicas, voters), IntOrString::Int(expected), "{replicas}, {voters}");
    }
    for voters in [0, 1, 3] {
        assert_eq!(least(0, voters), IntOrString::Int(0), "a cluster that sleeps");
    }
}

#[test]
fn only_voters_are_counted_and_called() {
    let spec = cluster(json!({}));
    let blueprint = blueprint(&spec);
    let budget = blueprint.budget(3).spec.unwrap();
    let counted = budget.selector.unwrap().match_labels.unwrap();
    let called = blueprint.client_service().spec.unwrap().selector.unwrap();
    assert_eq!(counted, called);
    assert_eq!(called[names::ROLE_LABEL], names::VOTER);
    let found = blueprint.members_service().spec.unwrap();
    assert_eq!(found.selector.unwrap().len(), 1, "those who listen have a host, too");
    assert_eq!(found.publish_not_ready_addresses, Some(true));
    assert_eq!(found.cluster_ip.as_deref(), Some("None"));
}

#[test]
fn a_member_is_written_as_the_checks_take_it() {
    use crate::api::etcd_member::checked::EtcdMember;
    let spec = cluster(json!({"storage": {"size": "2Gi", "className": "fast"}}));
    let written = blueprint(&spec).member(&name("main-a"), Intent::Bootstrap, true);
    let json = serde_json::to_value(&written).unwrap();
    let read: EtcdMember = crate::api::checked::tests::value(&json["spec"]);
    assert_eq!(read.peer_url, "https://main-a.space.svc:2380");
    assert_eq!(read.client_url.as_deref(), Some("https://main-a.space.svc:2379"));
    assert_eq!(read.storage.as_ref(), Some(&spec.storage));
    assert_eq!((read.intent, read.started), (Intent::Bootstrap, true));
    let owner = written.metadata.owner_references.unwrap();
    assert_eq!(owner[0].kind, "EtcdCluster");
}
