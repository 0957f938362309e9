//! Conversion of EtcdCluster between v1beta1 and the hub v1.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::api::convert::Spoke;
use crate::api::destination::url;
use crate::api::etcd_cluster::v1beta1::TlsMode;
use crate::api::etcd_cluster::{v1, v1beta1};
use crate::api::field::Field;
use crate::api::pod::Image;
use crate::api::strings::{Location, Schedule};

impl Spoke for v1beta1::EtcdClusterSpec {
    type Hub = v1::EtcdClusterSpec;

    fn to_hub(self) -> v1::EtcdClusterSpec {
        let Self {
            size,
            version,
            image,
            storage_size,
            storage_class,
            tls,
            quota,
            backup_schedule,
            backup_destination,
            pod_labels,
            pod_annotations,
            node_selector,
            tolerations,
            affinity,
            resources,
            paused,
        } = self;
        v1::EtcdClusterSpec {
            replicas: size,
            version,
            image: image.map(image_to_hub),
            storage: Field::non_default(v1::Storage {
                size: storage_size,
                class_name: storage_class,
                medium: Field::Absent,
            }),
            options: Field::non_default(v1::Options { quota, ..v1::Options::default() }),
            tls: tls.convert(tls_to_hub),
            auth: Field::Absent,
            placement: Field::non_default(v1::Placement { node_selector, tolerations, affinity }),
            pod_metadata: Field::non_default(v1::PodMetadata {
                labels: pod_labels,
                annotations: pod_annotations,
            }),
            resources,
            upgrade: Field::Absent,
            repair: Field::Absent,
            defragment: Field::Absent,
            backup: Field::non_default(v1::Backup {
                schedule: backup_schedule,
                destination: backup_destination.convert(|url| url::from_url(&url)),
                ..v1::Backup::default()
            }),
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
            options,
            tls,
            auth: _,
            placement,
            pod_metadata,
            resources,
            upgrade: _,
            repair: _,
            defragment: _,
            backup,
            restore: _,
            paused,
            deletion_policy: _,
        } = hub;
        let v1::Storage { size, class_name, medium: _ } = storage.or_default();
        let v1::Options {
            quota,
            auto_compaction: _,
            snapshot_count: _,
            heartbeat_milliseconds: _,
            election_milliseconds: _,
        } = options.or_default();
        let v1::Placement { node_selector, tolerations, affinity } = placement.or_default();
        let v1::PodMetadata { labels, annotations } = pod_metadata.or_default();
        let (backup_schedule, backup_destination) = backup_from_hub(backup);
        Self {
            size: replicas,
            version,
            image: image.map(image_from_hub),
            storage_size: size,
            storage_class: class_name,
            tls: tls.convert(tls_from_hub),
            quota,
            backup_schedule,
            backup_destination,
            pod_labels: labels,
            pod_annotations: annotations,
            node_selector,
            tolerations,
            affinity,
            resources,
            paused,
        }
    }
}

fn image_to_hub(image: v1beta1::Image) -> Image {
    let v1beta1::Image { repository, pull_policy } = image;
    Image { repository, pull_policy, pull_secrets: Field::Absent }
}

fn image_from_hub(image: Image) -> v1beta1::Image {
    let Image { repository, pull_policy, pull_secrets: _ } = image;
    v1beta1::Image { repository, pull_policy }
}

/// The backup fields that v1beta1 has.
fn backup_from_hub(backup: Field<v1::Backup>) -> (Field<Schedule>, Field<Location>) {
    let v1::Backup {
        schedule,
        time_zone: _,
        suspend: _,
        destination,
        retention: _,
        verify_schedule: _,
    } = backup.or_default();
    (schedule, url::to_url(destination))
}

/// `tls` of v1beta1 sets client and peer TLS.
fn tls_to_hub(mode: TlsMode) -> Field<v1::Tls> {
    let source = match mode {
        TlsMode::Enabled => v1::TlsSource::Managed,
        TlsMode::Disabled => v1::TlsSource::Disabled,
    };
    let side = v1::TlsSide { source: Field::Known(source), ..v1::TlsSide::default() };
    Field::Known(v1::Tls { client: Field::Known(side.clone()), peer: Field::Known(side) })
}

/// `tls` of v1beta1 stands for client and peer TLS. It is absent where they differ, so that an edit
/// sets both, and no user reads `Enabled` and sends a password over a plaintext connection.
fn tls_from_hub(tls: v1::Tls) -> Field<TlsMode> {
    let v1::Tls { client, peer } = tls;
    if client.is_absent() && peer.is_absent() {
        return Field::Absent;
    }
    let plaintext = |side: Field<v1::TlsSide>| {
        let v1::TlsSide { source, issuer_ref: _, secret_ref: _ } = side.or_default();
        source == Field::Known(v1::TlsSource::Disabled)
    };
    match (plaintext(client), plaintext(peer)) {
        (true, true) => Field::Known(TlsMode::Disabled),
        (false, false) => Field::Known(TlsMode::Enabled),
        (true, false) | (false, true) => Field::Absent,
    }
}

impl Spoke for v1beta1::EtcdClusterStatus {
    type Hub = v1::status::EtcdClusterStatus;

    fn to_hub(self) -> Self::Hub {
        let Self {
            observed_generation,
            cluster_id,
            current_version,
            target_version,
            size,
            ready_size,
            selector,
            leader,
            service_name,
            last_backup_time,
            conditions,
        } = self;
        Self::Hub {
            observed_generation,
            cluster_id,
            current_version,
            target_version,
            replicas: size,
            ready_replicas: ready_size,
            selector,
            leader,
            service_name,
            backup: Field::non_default(v1::status::BackupStatus {
                last_backup_time,
                ..v1::status::BackupStatus::default()
            }),
            conditions,
            ..Self::Hub::default()
        }
    }

    fn from_hub(hub: Self::Hub) -> Self {
        let v1::status::EtcdClusterStatus {
            observed_generation,
            cluster_id,
            bootstrap: _,
            client_tls: _,
            raft_log: _,
            current_version,
            target_version,
            replicas,
            ready_replicas,
            updated_replicas: _,
            selector,
            leader,
            endpoints: _,
            service_name,
            binding: _,
            highest_revision: _,
            db_size: _,
            members: _,
            rollback: _,
            defragmentation: _,
            plan: _,
            progress: _,
            backup,
            tuning: _,
            conditions,
        } = hub;
        let v1::status::BackupStatus {
            last_backup_time,
            location: _,
            version: _,
            last_verified_time: _,
            next_backup_time: _,
            last_error: _,
        } = backup.or_default();
        Self {
            observed_generation,
            cluster_id,
            current_version,
            target_version,
            size: replicas,
            ready_size: ready_replicas,
            selector,
            leader,
            service_name,
            last_backup_time,
            conditions,
        }
    }
}
