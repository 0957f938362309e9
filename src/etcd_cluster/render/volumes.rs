//! What is mounted into a member's containers, and where.
//! Comes in: a blueprint and a member. Goes out: volumes and mounts. May touch: `api`, Kubernetes' own
//! types; pure. The agent's program and what it remembers are in two volumes: what etcd's container
//! can write to must not be what it starts from.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::{
    EmptyDirVolumeSource, KeyToPath, PersistentVolumeClaimVolumeSource, SecretVolumeSource, Volume,
    VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::Blueprint;
use super::quantity::of_bytes;
use crate::api::etcd_cluster::v1::Medium;
use crate::api::names;
use crate::etcd_cluster::identity::keys;
use crate::etcd_cluster::seen::Name;

/// etcd's own folder. Not the root of the volume, where file systems keep things of theirs.
pub(super) const DATA: &str = "/var/lib/etcd/data";
/// Where the certificates are.
pub(super) const TLS: &str = "/etc/etcd/tls";
/// Where the agent's program is.
pub(super) const AGENT: &str = "/quorate";
/// Where the agent remembers, as long as the pod lives, that etcd was started.
pub(super) const MEMORY: &str = "/var/lib/quorate";

const DISK_MOUNT: &str = "/var/lib/etcd";
const DISK: &str = "data";
const CERTIFICATES: &str = "tls";
const PROGRAM: &str = "agent";
const REMEMBERED: &str = "memory";
/// The program is there twice while it is replaced.
const PROGRAM_LIMIT: &str = "64Mi";
const REMEMBERED_LIMIT: &str = "1Mi";
/// The group of the pod may read them, and nobody may write them.
const SECRET_MODE: i32 = 0o440;

impl Blueprint<'_> {
    /// The volumes of a member's pod.
    pub(super) fn volumes(&self, member: &Name) -> Vec<Volume> {
        let mut all = vec![
            self.data(member),
            scratch(PROGRAM, None, Quantity(PROGRAM_LIMIT.to_owned())),
            scratch(REMEMBERED, None, Quantity(REMEMBERED_LIMIT.to_owned())),
        ];
        let (server, peer) = (self.needs_server_keys(), self.needs_peer_keys());
        if server || peer {
            all.push(Volume {
                name: CERTIFICATES.to_owned(),
                secret: Some(SecretVolumeSource {
                    secret_name: Some(names::member_secret(&member.0)),
                    default_mode: Some(SECRET_MODE),
                    items: needed(server, peer),
                    ..SecretVolumeSource::default()
                }),
                ..Volume::default()
            });
        }
        all
    }

    fn data(&self, member: &Name) -> Volume {
        match self.spec.storage.medium {
            Medium::Disk => Volume {
                name: DISK.to_owned(),
                persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                    claim_name: member.to_string(),
                    read_only: None,
                }),
                ..Volume::default()
            },
            Medium::Memory => scratch(DISK, Some("Memory"), of_bytes(self.spec.storage.bytes)),
        }
    }

    /// What etcd's container sees.
    pub(super) fn mounts(&self) -> Vec<VolumeMount> {
        let mut all = vec![
            mount(DISK, DISK_MOUNT, false),
            mount(PROGRAM, AGENT, true),
            mount(REMEMBERED, MEMORY, false),
        ];
        if self.needs_server_keys() || self.needs_peer_keys() {
            // Whole, and not file by file: a file that is mounted by itself is never renewed.
            all.push(mount(CERTIFICATES, TLS, true));
        }
        all
    }
}

/// The keys of a member's Secret that it needs; all of them if nothing is said. What is not needed is not in the pod.
fn needed(server: bool, peer: bool) -> Option<Vec<KeyToPath>> {
    let (pair, authority) = match (server, peer) {
        (true, false) => (keys::SERVER, keys::CLIENT_CA),
        (false, true) => (keys::PEER, keys::PEER_CA),
        (true, true) | (false, false) => return None,
    };
    let item =
        |key: &str| KeyToPath { key: key.to_owned(), path: key.to_owned(), ..KeyToPath::default() };
    Some([pair.certificate, pair.key, authority].map(item).to_vec())
}

/// What the container sees that puts the agent there.
pub(super) fn install_mounts() -> Vec<VolumeMount> {
    vec![mount(PROGRAM, AGENT, false)]
}

fn scratch(name: &str, medium: Option<&str>, limit: Quantity) -> Volume {
    Volume {
        name: name.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource {
            medium: medium.map(str::to_owned),
            size_limit: Some(limit),
        }),
        ..Volume::default()
    }
}

fn mount(name: &str, path: &str, read_only: bool) -> VolumeMount {
    VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        read_only: read_only.then_some(true),
        ..VolumeMount::default()
    }
}
