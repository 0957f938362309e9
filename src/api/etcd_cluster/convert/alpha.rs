//! EtcdCluster v1alpha1 to v1 and back.
//! Comes in: one part. Goes out: the other. May touch: the types of this kind.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::api::condition::{self, Condition, ConditionStatus};
use crate::api::convert::Spoke;
use crate::api::etcd_cluster::v1::status::{EtcdClusterStatus, MemberStatus};
use crate::api::etcd_cluster::{CLIENT_PORT, v1, v1alpha1};
use crate::api::field::Field;
use crate::api::pod::Image;
use crate::api::texts::{ObjectName, Word};

impl Spoke for v1alpha1::EtcdClusterSpec {
    type Hub = v1::EtcdClusterSpec;

    fn up(self) -> v1::EtcdClusterSpec {
        let Self { size, version, repository, paused, pod } = self;
        let v1alpha1::Pod {
            labels,
            annotations,
            node_selector,
            tolerations,
            affinity,
            resources,
            persistent_volume_claim_spec,
        } = pod.or_empty();
        v1::EtcdClusterSpec {
            replicas: size,
            version,
            image: Field::unless_empty(Image { repository, ..Image::default() }),
            storage: Field::unless_empty(storage_up(persistent_volume_claim_spec)),
            options: Field::Absent,
            tls: Field::Absent,
            auth: Field::Absent,
            placement: Field::unless_empty(v1::Placement { node_selector, tolerations, affinity }),
            pod_metadata: Field::unless_empty(v1::PodMetadata { labels, annotations }),
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

    fn down(hub: v1::EtcdClusterSpec) -> Self {
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
        let Image { repository, pull_policy: _, pull_secrets: _ } = image.or_empty();
        let v1::Placement { node_selector, tolerations, affinity } = placement.or_empty();
        let v1::PodMetadata { labels, annotations } = pod_metadata.or_empty();
        Self {
            size: replicas,
            version,
            repository,
            paused,
            pod: Field::unless_empty(v1alpha1::Pod {
                labels,
                annotations,
                node_selector,
                tolerations,
                affinity,
                resources,
                persistent_volume_claim_spec: Field::unless_empty(storage_down(storage.or_empty())),
            }),
        }
    }
}

fn storage_up(claim: Field<v1alpha1::ClaimSpec>) -> v1::Storage {
    let v1alpha1::ClaimSpec { storage_class_name, resources } = claim.or_empty();
    let v1alpha1::ClaimResources { requests } = resources.or_empty();
    let v1alpha1::ClaimRequests { storage } = requests.or_empty();
    v1::Storage { size: storage, class_name: storage_class_name, medium: Field::Absent }
}

fn storage_down(storage: v1::Storage) -> v1alpha1::ClaimSpec {
    let v1::Storage { size, class_name, medium: _ } = storage;
    let requests = v1alpha1::ClaimRequests { storage: size };
    let resources = v1alpha1::ClaimResources { requests: Field::unless_empty(requests) };
    v1alpha1::ClaimSpec {
        storage_class_name: class_name,
        resources: Field::unless_empty(resources),
    }
}

impl Spoke for v1alpha1::EtcdClusterStatus {
    type Hub = EtcdClusterStatus;

    fn up(self) -> EtcdClusterStatus {
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
            members: members_up(members.or_empty()),
            conditions,
            ..EtcdClusterStatus::default()
        }
    }

    fn down(hub: EtcdClusterStatus) -> Self {
        let EtcdClusterStatus {
            observed_generation: _,
            cluster_id: _,
            founding: _,
            clients: _,
            log: _,
            current_version,
            target_version,
            replicas,
            ready_replicas: _,
            updated_members: _,
            selector,
            leader: _,
            endpoints: _,
            service_name,
            binding: _,
            highest_revision: _,
            members,
            taken_back: _,
            upkeep: _,
            plan: _,
            progress: _,
            backup: _,
            tuning: _,
            conditions,
        } = hub;
        let known = conditions.known().map(Vec::as_slice).unwrap_or_default();
        let holds = |name: &str| holds(known, name);
        Self {
            phase: holds(condition::READY).map(|ready| phase(ready, &holds)).into(),
            size: replicas,
            selector,
            current_version,
            target_version,
            client_port: service_name.known().map(|_| CLIENT_PORT).into(),
            members: members_down(members.into_known().unwrap_or_default()),
            control_paused: holds(condition::PAUSED).into(),
            service_name,
            conditions,
        }
    }
}

/// One word for what the conditions say, in the words that readers of the first operator know.
fn phase(ready: bool, holds: &impl Fn(&str) -> Option<bool>) -> Word {
    let stuck = [condition::STALLED, condition::QUORUM_LOST];
    if stuck.iter().any(|name| holds(name) == Some(true)) {
        Word::from("Failed")
    } else if ready || holds(condition::AVAILABLE) == Some(true) {
        Word::from("Running")
    } else {
        Word::from("Creating")
    }
}

/// Whether a condition holds; nothing if it is not there, or could not be found out.
fn holds(conditions: &[Condition], name: &str) -> Option<bool> {
    let named =
        |condition: &&Condition| condition.kind.known().is_some_and(|kind| kind.as_str() == name);
    match conditions.iter().find(named)?.status.known()? {
        ConditionStatus::True => Some(true),
        ConditionStatus::False => Some(false),
        ConditionStatus::Unknown => None,
    }
}

fn members_up(members: v1alpha1::MembersByHealth) -> Field<Vec<MemberStatus>> {
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

fn members_down(members: Vec<MemberStatus>) -> Field<v1alpha1::MembersByHealth> {
    let mut by_health = v1alpha1::MembersByHealth::default();
    for member in members {
        let list = match member.healthy.known() {
            Some(true) => &mut by_health.ready,
            Some(false) | None => &mut by_health.unready,
        };
        if let Some(name) = member.name.into_known() {
            list.block().into_iter().for_each(|names| names.push(name.clone()));
        }
    }
    Field::unless_empty(by_health)
}
