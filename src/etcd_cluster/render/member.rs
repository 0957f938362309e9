//! A member's EtcdMember, and its volume.
//! Comes in: a blueprint and a name. Goes out: objects. May touch: `api`, Kubernetes' own types; pure.
//! A volume has an owner only if the user wants it deleted: whatever is cleaned up by mistake, by
//! whomever, must not take data with it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements,
};
use kube::api::ObjectMeta;

use super::Blueprint;
use super::quantity::of_bytes;
use crate::api::etcd_cluster::checked;
use crate::api::etcd_cluster::v1::{DeletionPolicy, Medium, Storage};
use crate::api::etcd_member::{EtcdMember, EtcdMemberSpec, Intent};
use crate::api::field::Field;
use crate::etcd_cluster::seen::Name;

impl Blueprint<'_> {
    /// The EtcdMember: what is to become of a member, before anything is done about it.
    pub(crate) fn member(&self, name: &Name, intent: Intent, started: bool) -> EtcdMember {
        let spec = EtcdMemberSpec {
            cluster_name: Field::Known(self.name.into()),
            name: Field::Known(name.0.as_str().into()),
            peer_url: Field::Known(self.peer_url(name).into()),
            client_url: Field::Known(self.client_url(name).into()),
            storage: Field::Known(stored(&self.spec.storage)),
            intent: Field::Known(intent),
            started: Field::Known(started),
        };
        let metadata =
            ObjectMeta { labels: Some(self.member_labels(name)), ..self.metadata(name.0.as_str()) };
        EtcdMember { metadata, spec, status: None }
    }

    /// The volume of a member; none if its data is in memory.
    pub(crate) fn volume(&self, member: &Name) -> Option<PersistentVolumeClaim> {
        let checked::Storage { bytes, class, medium } = &self.spec.storage;
        match medium {
            Medium::Memory => return None,
            Medium::Disk => {}
        }
        let labels = self.member_labels(member);
        let resources = VolumeResourceRequirements {
            requests: Some([("storage".to_owned(), of_bytes(*bytes))].into()),
            ..VolumeResourceRequirements::default()
        };
        Some(PersistentVolumeClaim {
            metadata: ObjectMeta {
                labels: Some(labels),
                owner_references: self
                    .is_deleted_with_it()
                    .then_some(self.owner())
                    .flatten()
                    .map(|it| vec![it]),
                ..self.metadata(member.0.as_str())
            },
            spec: Some(PersistentVolumeClaimSpec {
                access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
                storage_class_name: class.clone(),
                resources: Some(resources),
                ..PersistentVolumeClaimSpec::default()
            }),
            status: None,
        })
    }

    const fn is_deleted_with_it(&self) -> bool {
        match self.spec.deletion {
            DeletionPolicy::Delete => true,
            // After a last backup the operator deletes the volumes itself: the collector does not wait.
            DeletionPolicy::SnapshotThenDelete
            | DeletionPolicy::Retain
            | DeletionPolicy::Disconnect => false,
        }
    }
}

fn stored(storage: &checked::Storage) -> Storage {
    let checked::Storage { bytes, class, medium } = storage;
    Storage {
        size: Field::Known(of_bytes(*bytes).0.into()),
        class_name: class.as_deref().map(Into::into).into(),
        medium: Field::Known(*medium),
    }
}
