//! Conversion of EtcdCluster between v1alpha1 and the hub v1.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::api::condition::{self, Condition, ConditionStatus};
use crate::api::convert::Spoke;
use crate::api::etcd_cluster::v1::status::{EtcdClusterStatus, MemberStatus};
use crate::api::etcd_cluster::{CLIENT_PORT, v1, v1alpha1};
use crate::api::field::Field;
use crate::api::pod::Image;
use crate::api::strings::{ObjectName, Token};

impl Spoke for v1alpha1::EtcdClusterSpec {
    type Hub = v1::EtcdClusterSpec;

    fn to_hub(self) -> v1::EtcdClusterSpec {
        let Self { size, version, repository, paused, pod } = self;
        let v1alpha1::Pod {
            labels,
            annotations,
            node_selector,
            tolerations,
            affinity,
            resources,
            persistent_volume_claim_spec,
        } = pod.or_default();
        v1::EtcdClusterSpec {
            replicas: size,
            version,
            image: Field::non_default(Image { repository, ..Image::default() }),
            storage: Field::non_default(storage_to_hub(persistent_volume_claim_spec)),
            options: Field::Absent,
            tls: Field::Absent,
            auth: Field::Absent,
            placement: Field::non_default(v1::Placement { node_selector, tolerations, affinity }),
            pod_metadata: Field::non_default(v1::PodMetadata { labels, annotations }),
            resources,
            upgrade: Field::Absent,
            repair: Field::Absent,
            defragment: Field::Absent,
            backup: Field::Absent,
            restore: Field::Absent,
            paused,
            deletion_policy: Field::Absent,
        }
    }

    fn from_hub(hub: v1::EtcdClusterSpec) -> Self {
        let v1::EtcdClusterSpec {
            replicas,
            version,
            image,
            storage,
            options: _,
            tls: _,
            auth: _,
            placement,
            pod_metadata,
            resources,
            upgrade: _,
            repair: _,
            defragment: _,
            backup: _,
            restore: _,
            paused,
            deletion_policy: _,
        } = hub;
        let Image { repository, pull_policy: _, pull_secrets: _ } = image.or_default();
        let v1::Placement { node_selector, tolerations, affinity } = placement.or_default();
        let v1::PodMetadata { labels, annotations } = pod_metadata.or_default();
        Self {
            size: replicas,
            version,
            repository,
            paused,
            pod: Field::non_default(v1alpha1::Pod {
                labels,
                annotations,
                node_selector,
                tolerations,
                affinity,
                resources,
                persistent_volume_claim_spec: Field::non_default(storage_from_hub(
                    storage.or_default(),
                )),
            }),
        }
    }
}

fn storage_to_hub(claim: Field<v1alpha1::ClaimSpec>) -> v1::Storage {
    let v1alpha1::ClaimSpec { storage_class_name, resources } = claim.or_default();
    let v1alpha1::ClaimResources { requests } = resources.or_default();
    let v1alpha1::ClaimRequests { storage } = requests.or_default();
    v1::Storage { size: storage, class_name: storage_class_name, medium: Field::Absent }
}

fn storage_from_hub(storage: v1::Storage) -> v1alpha1::ClaimSpec {
    let v1::Storage { size, class_name, medium: _ } = storage;
    let requests = v1alpha1::ClaimRequests { storage: size };
    let resources = v1alpha1::ClaimResources { requests: Field::non_default(requests) };
    v1alpha1::ClaimSpec { storage_class_name: class_name, resources: Field::non_default(resources) }
}

impl Spoke for v1alpha1::EtcdClusterStatus {
    type Hub = EtcdClusterStatus;

    fn to_hub(self) -> EtcdClusterStatus {
        let Self {
            phase: _,
            size,
            selector,
            current_version,
            target_version,
            client_port: _,
            service_name,
            members,
            control_paused: _,
            conditions,
        } = self;
        EtcdClusterStatus {
            replicas: size,
            selector,
            current_version,
            target_version,
            service_name,
            members: members_to_hub(members.or_default()),
            conditions,
            ..EtcdClusterStatus::default()
        }
    }

    fn from_hub(hub: EtcdClusterStatus) -> Self {
        let EtcdClusterStatus {
            observed_generation: _,
            cluster_id: _,
            bootstrap: _,
            client_tls: _,
            raft_log: _,
            current_version,
            target_version,
            replicas,
            ready_replicas: _,
            updated_replicas: _,
            selector,
            leader: _,
            endpoints: _,
            service_name,
            binding: _,
            highest_revision: _,
            db_size: _,
            members,
            rollback: _,
            defragmentation: _,
            plan: _,
            progress: _,
            backup: _,
            tuning: _,
            conditions,
        } = hub;
        let known = conditions.known().map(Vec::as_slice).unwrap_or_default();
        let is_true = |name: &str| is_true(known, name);
        Self {
            phase: is_true(condition::READY).map(|ready| phase(ready, &is_true)).into(),
            size: replicas,
            selector,
            current_version,
            target_version,
            client_port: service_name.known().map(|_| CLIENT_PORT).into(),
            members: members_from_hub(members.into_known().unwrap_or_default()),
            control_paused: is_true(condition::PAUSED).into(),
            service_name,
            conditions,
        }
    }
}

/// Phase computed from the conditions, with the values of the first etcd operator.
fn phase(ready: bool, is_true: &impl Fn(&str) -> Option<bool>) -> Token {
    let failed = [condition::STALLED, condition::QUORUM_LOST];
    if failed.iter().any(|name| is_true(name) == Some(true)) {
        Token::from("Failed")
    } else if ready || is_true(condition::AVAILABLE) == Some(true) {
        Token::from("Running")
    } else {
        Token::from("Creating")
    }
}

/// Whether a condition is true; `None` if it is absent or unknown.
fn is_true(conditions: &[Condition], name: &str) -> Option<bool> {
    let named =
        |condition: &&Condition| condition.kind.known().is_some_and(|kind| kind.as_str() == name);
    match conditions.iter().find(named)?.status.known()? {
        ConditionStatus::True => Some(true),
        ConditionStatus::False => Some(false),
        ConditionStatus::Unknown => None,
    }
}

fn members_to_hub(members: v1alpha1::MembersByHealth) -> Field<Vec<MemberStatus>> {
    let v1alpha1::MembersByHealth { ready, unready } = members;
    let member = |healthy: bool| {
        move |name: ObjectName| MemberStatus {
            name: Field::Known(name),
            healthy: Field::Known(healthy),
            ..MemberStatus::default()
        }
    };
    let ready = ready.into_known().unwrap_or_default().into_iter().map(member(true));
    let unready = unready.into_known().unwrap_or_default().into_iter().map(member(false));
    let all: Vec<_> = ready.chain(unready).collect();
    if all.is_empty() { Field::Absent } else { Field::Known(all) }
}

fn members_from_hub(members: Vec<MemberStatus>) -> Field<v1alpha1::MembersByHealth> {
    let mut by_health = v1alpha1::MembersByHealth::default();
    for member in members {
        let list = match member.healthy.known() {
            Some(true) => &mut by_health.ready,
            Some(false) | None => &mut by_health.unready,
        };
        if let Some(name) = member.name.into_known() {
            list.get_or_default().into_iter().for_each(|names| names.push(name.clone()));
        }
    }
    Field::non_default(by_health)
}
