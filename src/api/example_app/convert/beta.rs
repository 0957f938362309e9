//! ExampleApp v1beta1 to v1 and back.
//! Comes in: one part. Goes out: the other. May touch: the types of this kind.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::api::convert::Spoke;
use crate::api::destination::Destination;
use crate::api::example_app::place::Place;
use crate::api::example_app::v1::{Features, status};
use crate::api::example_app::{v1, v1beta1};
use crate::api::field::Field;
use crate::api::pod::LocalRef;
use crate::api::texts::{FeatureName, ObjectName};

impl Spoke for v1beta1::ExampleAppSpec {
    type Hub = v1::ExampleAppSpec;

    fn up(self) -> v1::ExampleAppSpec {
        let Self { version, replicas, features, schedule, destination, etcd_cluster, paused } =
            self;
        v1::ExampleAppSpec {
            version,
            image: Field::Absent,
            replicas,
            autoscaling: Field::Absent,
            features: features.turned(features_up),
            data: data_up(etcd_cluster),
            exposure: Field::Absent,
            backup: Field::unless_empty(v1::Backup {
                schedule,
                time_zone: Field::Absent,
                suspend: Field::Absent,
                destination: destination.turned(destination_up),
                retention: Field::Absent,
            }),
            restore: Field::Absent,
            upgrade: Field::Absent,
            resources: Field::Absent,
            paused,
            deletion_policy: Field::Absent,
        }
    }

    fn down(hub: v1::ExampleAppSpec) -> Self {
        let v1::ExampleAppSpec {
            version,
            image: _,
            replicas,
            autoscaling: _,
            features,
            data,
            exposure: _,
            backup,
            restore: _,
            upgrade: _,
            resources: _,
            paused,
            deletion_policy: _,
        } = hub;
        let v1::Backup { schedule, time_zone: _, suspend: _, destination, retention: _ } =
            backup.or_empty();
        Self {
            version,
            replicas,
            features: features.turned(features_down),
            schedule,
            destination: destination.turned(destination_down),
            etcd_cluster: data_down(data),
            paused,
        }
    }
}

/// A name in the list turns its feature on.
fn features_up(names: Vec<FeatureName>) -> Field<Features> {
    let on = |name: FeatureName| (name.as_str().to_owned(), true);
    Field::unless_empty(names.into_iter().map(on).collect())
}

/// What is turned off has no place in a list of what is on, and is kept by the engine.
fn features_down(features: Features) -> Field<Vec<FeatureName>> {
    let on = features.into_iter().filter(|(_, on)| *on);
    Field::unless_empty(on.map(|(name, _)| FeatureName::from(name)).collect())
}

fn data_up(name: Field<ObjectName>) -> Field<v1::Data> {
    let cluster_ref = Field::unless_empty(LocalRef { name });
    let etcd = v1::Etcd { cluster_ref, managed: Field::Absent };
    Field::unless_empty(v1::Data { etcd: Field::unless_empty(etcd) })
}

fn data_down(data: Field<v1::Data>) -> Field<ObjectName> {
    let v1::Data { etcd } = data.or_empty();
    let v1::Etcd { cluster_ref, managed: _ } = etcd.or_empty();
    let LocalRef { name } = cluster_ref.or_empty();
    name
}

fn destination_up(destination: v1beta1::Destination) -> Field<Destination> {
    let v1beta1::Destination { storage_type, host, bucket_name, prefix } = destination;
    Place { storage_type, host, bucket_name, prefix }.up()
}

fn destination_down(destination: Destination) -> Field<v1beta1::Destination> {
    let Place { storage_type, host, bucket_name, prefix } = Place::down(destination);
    Field::unless_empty(v1beta1::Destination { storage_type, host, bucket_name, prefix })
}

impl Spoke for v1beta1::ExampleAppStatus {
    type Hub = status::ExampleAppStatus;

    fn up(self) -> status::ExampleAppStatus {
        let Self {
            observed_generation,
            current_version,
            target_version,
            url,
            auth_secret_name,
            last_backup_time,
            replicas,
            ready_replicas,
            selector,
            conditions,
        } = self;
        status::ExampleAppStatus {
            observed_generation,
            current_version,
            target_version,
            url,
            auth_secret_name,
            binding: Field::Absent,
            backup: Field::unless_empty(status::BackupStatus {
                last_backup_time,
                ..status::BackupStatus::default()
            }),
            replicas,
            ready_replicas,
            selector,
            progress: Field::Absent,
            conditions,
        }
    }

    fn down(hub: status::ExampleAppStatus) -> Self {
        let status::ExampleAppStatus {
            observed_generation,
            current_version,
            target_version,
            url,
            auth_secret_name,
            binding: _,
            backup,
            replicas,
            ready_replicas,
            selector,
            progress: _,
            conditions,
        } = hub;
        let status::BackupStatus { last_backup_time, location: _, version: _, last_error: _ } =
            backup.or_empty();
        Self {
            observed_generation,
            current_version,
            target_version,
            url,
            auth_secret_name,
            last_backup_time,
            replicas,
            ready_replicas,
            selector,
            conditions,
        }
    }
}
