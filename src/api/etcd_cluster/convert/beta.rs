//! EtcdCluster v1beta1 to v1 and back.
//! Comes in: one part. Goes out: the other. May touch: the types of this kind.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::api::convert::Spoke;
use crate::api::destination::url;
use crate::api::etcd_cluster::v1beta1::TlsSwitch;
use crate::api::etcd_cluster::{v1, v1beta1};
use crate::api::field::Field;
use crate::api::pod::Image;
use crate::api::texts::{Location, Schedule};

impl Spoke for v1beta1::EtcdClusterSpec {
    type Hub = v1::EtcdClusterSpec;

    fn up(self) -> v1::EtcdClusterSpec {
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
            image: image.map(image_up),
            storage: Field::unless_empty(v1::Storage {
                size: storage_size,
                class_name: storage_class,
                medium: Field::Absent,
            }),
            options: Field::unless_empty(v1::Options { quota, ..v1::Options::default() }),
            tls: tls.turned(tls_up),
            auth: Field::Absent,
            placement: Field::unless_empty(v1::Placement { node_selector, tolerations, affinity }),
            pod_metadata: Field::unless_empty(v1::PodMetadata {
                labels: pod_labels,
                annotations: pod_annotations,
            }),
            resources,
            upgrade: Field::Absent,
            repair: Field::Absent,
            defragment: Field::Absent,
            backup: Field::unless_empty(v1::Backup {
                schedule: backup_schedule,
                destination: backup_destination.turned(|url| url::read(&url)),
                ..v1::Backup::default()
            }),
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
        let v1::Storage { size, class_name, medium: _ } = storage.or_empty();
        let v1::Options {
            quota,
            auto_compaction: _,
            snapshot_count: _,
            heartbeat_milliseconds: _,
            election_milliseconds: _,
        } = options.or_empty();
        let v1::Placement { node_selector, tolerations, affinity } = placement.or_empty();
        let v1::PodMetadata { labels, annotations } = pod_metadata.or_empty();
        let (backup_schedule, backup_destination) = backup_down(backup);
        Self {
            size: replicas,
            version,
            image: image.map(image_down),
            storage_size: size,
            storage_class: class_name,
            tls: tls.turned(tls_down),
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

fn image_up(image: v1beta1::Image) -> Image {
    let v1beta1::Image { repository, pull_policy } = image;
    Image { repository, pull_policy, pull_secrets: Field::Absent }
}

fn image_down(image: Image) -> v1beta1::Image {
    let Image { repository, pull_policy, pull_secrets: _ } = image;
    v1beta1::Image { repository, pull_policy }
}

/// What v1beta1 can say of a backup.
fn backup_down(backup: Field<v1::Backup>) -> (Field<Schedule>, Field<Location>) {
    let v1::Backup {
        schedule,
        time_zone: _,
        suspend: _,
        destination,
        retention: _,
        verify_schedule: _,
    } = backup.or_empty();
    (schedule, url::written(destination))
}

/// The switch sets both sides.
fn tls_up(switch: TlsSwitch) -> Field<v1::Tls> {
    let source = match switch {
        TlsSwitch::Enabled => v1::TlsSource::Managed,
        TlsSwitch::Disabled => v1::TlsSource::Disabled,
    };
    let side = v1::TlsSide { source: Field::Known(source), ..v1::TlsSide::default() };
    Field::Known(v1::Tls { client: Field::Known(side.clone()), peer: Field::Known(side) })
}

/// The switch speaks for both sides. Where they differ it has no word, so that an edit of it sets
/// both, and nobody reads `Enabled` and sends a password in the clear.
fn tls_down(tls: v1::Tls) -> Field<TlsSwitch> {
    let v1::Tls { client, peer } = tls;
    if client.is_absent() && peer.is_absent() {
        return Field::Absent;
    }
    let open = |side: Field<v1::TlsSide>| {
        let v1::TlsSide { source, issuer_ref: _, secret_ref: _ } = side.or_empty();
        source == Field::Known(v1::TlsSource::Disabled)
    };
    match (open(client), open(peer)) {
        (true, true) => Field::Known(TlsSwitch::Disabled),
        (false, false) => Field::Known(TlsSwitch::Enabled),
        (true, false) | (false, true) => Field::Absent,
    }
}

impl Spoke for v1beta1::EtcdClusterStatus {
    type Hub = v1::status::EtcdClusterStatus;

    fn up(self) -> Self::Hub {
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
            backup: Field::unless_empty(v1::status::BackupStatus {
                last_backup_time,
                ..v1::status::BackupStatus::default()
            }),
            conditions,
            ..Self::Hub::default()
        }
    }

    fn down(hub: Self::Hub) -> Self {
        let v1::status::EtcdClusterStatus {
            observed_generation,
            cluster_id,
            founding: _,
            clients: _,
            log: _,
            current_version,
            target_version,
            replicas,
            ready_replicas,
            updated_members: _,
            selector,
            leader,
            endpoints: _,
            service_name,
            binding: _,
            highest_revision: _,
            members: _,
            taken_back: _,
            upkeep: _,
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
        } = backup.or_empty();
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
