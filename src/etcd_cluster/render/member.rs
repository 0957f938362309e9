//! Renders a member's EtcdMember and its PVC. A PVC has an owner only if the user wants it deleted:
//! no mistaken deletion of another object may garbage collect data.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements,
};
use kube::api::ObjectMeta;

use super::Blueprint;
use super::quantity::from_bytes;
use crate::api::etcd_cluster::v1::{DeletionPolicy, Medium, Storage};
use crate::api::etcd_cluster::validated;
use crate::api::etcd_member::{EtcdMember, EtcdMemberSpec, Intent};
use crate::api::field::Field;
use crate::etcd_cluster::state::MemberName;

impl Blueprint<'_> {
    /// The EtcdMember, which records the intent for a member before anything is done.
    pub(crate) fn member(&self, name: &MemberName, intent: Intent, started: bool) -> EtcdMember {
        let spec = EtcdMemberSpec {
            cluster_name: Field::Known(self.name.into()),
            name: Field::Known(name.0.as_str().into()),
            peer_url: Field::Known(self.peer_url(name).into()),
            client_url: Field::Known(self.client_url(name).into()),
            storage: Field::Known(member_storage(&self.spec.storage)),
            intent: Field::Known(intent),
            started: Field::Known(started),
        };
        let metadata =
            ObjectMeta { labels: Some(self.member_labels(name)), ..self.metadata(name.0.as_str()) };
        EtcdMember { metadata, spec, status: None }
    }

    /// The PVC of a member; none if its data is in memory.
    pub(crate) fn pvc(&self, member: &MemberName) -> Option<PersistentVolumeClaim> {
        let validated::Storage { bytes, class, medium } = &self.spec.storage;
        match medium {
            Medium::Memory => return None,
            Medium::Disk => {}
        }
        let labels = self.member_labels(member);
        let resources = VolumeResourceRequirements {
            requests: Some([("storage".to_owned(), from_bytes(*bytes))].into()),
            ..VolumeResourceRequirements::default()
        };
        Some(PersistentVolumeClaim {
            metadata: ObjectMeta {
                labels: Some(labels),
                owner_references: self
                    .pvc_is_owned()
                    .then_some(self.owner())
                    .flatten()
                    .map(|owner| vec![owner]),
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

    const fn pvc_is_owned(&self) -> bool {
        match self.spec.deletion {
            DeletionPolicy::Delete => true,
            // The operator deletes the PVCs after a final backup: the garbage collector would not
            // wait.
            DeletionPolicy::SnapshotThenDelete
            | DeletionPolicy::Retain
            | DeletionPolicy::Disconnect => false,
        }
    }
}

fn member_storage(storage: &validated::Storage) -> Storage {
    let validated::Storage { bytes, class, medium } = storage;
    Storage {
        size: Field::Known(from_bytes(*bytes).0.into()),
        class_name: class.as_deref().map(Into::into).into(),
        medium: Field::Known(*medium),
    }
}
