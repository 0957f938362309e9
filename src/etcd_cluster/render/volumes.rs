//! Renders the volumes and mounts of a member's pod. The agent's binary and its state are two
//! volumes: etcd's container must not be able to write what it starts from.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::{
    EmptyDirVolumeSource, KeyToPath, PersistentVolumeClaimVolumeSource, SecretVolumeSource, Volume,
    VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::Blueprint;
use super::quantity::from_bytes;
use crate::api::etcd_cluster::v1::Medium;
use crate::api::names;
use crate::etcd_cluster::state::MemberName;
use crate::etcd_cluster::tls::secret_keys;

/// etcd's data directory. Not the root of the volume, where file systems keep `lost+found`.
pub(super) const DATA_DIR: &str = "/var/lib/etcd/data";
/// The directory of the certificates.
pub(super) const TLS_DIR: &str = "/etc/etcd/tls";
/// The directory of the agent's binary.
pub(super) const AGENT_DIR: &str = "/quorate";
/// Where the agent records, as long as the pod lives, that etcd was started.
pub(super) const AGENT_STATE_DIR: &str = "/var/lib/quorate";

const DATA_MOUNT: &str = "/var/lib/etcd";
const DATA_VOLUME: &str = "data";
const TLS_VOLUME: &str = "tls";
const AGENT_VOLUME: &str = "agent";
const AGENT_STATE_VOLUME: &str = "memory";
/// The binary exists twice while it is replaced.
const AGENT_VOLUME_LIMIT: &str = "64Mi";
const AGENT_STATE_LIMIT: &str = "1Mi";
/// The pod's group may read them; no user may write them.
const SECRET_MODE: i32 = 0o440;

impl Blueprint<'_> {
    /// The volumes of a member's pod.
    pub(super) fn volumes(&self, member: &MemberName) -> Vec<Volume> {
        let mut all = vec![
            self.data_volume(member),
            empty_dir(AGENT_VOLUME, None, Quantity(AGENT_VOLUME_LIMIT.to_owned())),
            empty_dir(AGENT_STATE_VOLUME, None, Quantity(AGENT_STATE_LIMIT.to_owned())),
        ];
        let (server, peer) = (self.needs_server_certs(), self.needs_peer_certs());
        if server || peer {
            all.push(Volume {
                name: TLS_VOLUME.to_owned(),
                secret: Some(SecretVolumeSource {
                    secret_name: Some(names::member_secret(&member.0)),
                    default_mode: Some(SECRET_MODE),
                    items: secret_items(server, peer),
                    ..SecretVolumeSource::default()
                }),
                ..Volume::default()
            });
        }
        all
    }

    fn data_volume(&self, member: &MemberName) -> Volume {
        match self.spec.storage.medium {
            Medium::Disk => Volume {
                name: DATA_VOLUME.to_owned(),
                persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                    claim_name: member.to_string(),
                    read_only: None,
                }),
                ..Volume::default()
            },
            Medium::Memory => {
                empty_dir(DATA_VOLUME, Some("Memory"), from_bytes(self.spec.storage.bytes))
            }
        }
    }

    /// The mounts of etcd's container.
    pub(super) fn mounts(&self) -> Vec<VolumeMount> {
        let mut all = vec![
            mount(DATA_VOLUME, DATA_MOUNT, false),
            mount(AGENT_VOLUME, AGENT_DIR, true),
            mount(AGENT_STATE_VOLUME, AGENT_STATE_DIR, false),
        ];
        if self.needs_server_certs() || self.needs_peer_certs() {
            // The whole directory: the kubelet never updates files that are mounted with a subPath.
            all.push(mount(TLS_VOLUME, TLS_DIR, true));
        }
        all
    }
}

/// The keys of a member's Secret that its pod needs; all if `None`. Other keys are not mounted.
fn secret_items(server: bool, peer: bool) -> Option<Vec<KeyToPath>> {
    let (pair, ca) = match (server, peer) {
        (true, false) => (secret_keys::SERVER, secret_keys::CLIENT_CA),
        (false, true) => (secret_keys::PEER, secret_keys::PEER_CA),
        (true, true) | (false, false) => return None,
    };
    let item =
        |key: &str| KeyToPath { key: key.to_owned(), path: key.to_owned(), ..KeyToPath::default() };
    Some([pair.certificate, pair.key, ca].map(item).to_vec())
}

/// The mounts of the init container that installs the agent.
pub(super) fn install_mounts() -> Vec<VolumeMount> {
    vec![mount(AGENT_VOLUME, AGENT_DIR, false)]
}

fn empty_dir(name: &str, medium: Option<&str>, limit: Quantity) -> Volume {
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
