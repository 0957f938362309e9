//! Conversion of ExampleApp between v1beta1 and the hub v1.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::api::convert::Spoke;
use crate::api::destination::Destination;
use crate::api::example_app::backup_store::BackupStore;
use crate::api::example_app::v1::{Features, status};
use crate::api::example_app::{v1, v1beta1};
use crate::api::field::Field;
use crate::api::pod::LocalRef;
use crate::api::strings::{FeatureName, ObjectName};

impl Spoke for v1beta1::ExampleAppSpec {
    type Hub = v1::ExampleAppSpec;

    fn to_hub(self) -> v1::ExampleAppSpec {
        let Self { version, replicas, features, schedule, destination, etcd_cluster, paused } =
            self;
        v1::ExampleAppSpec {
            version,
            image: Field::Absent,
            replicas,
            autoscaling: Field::Absent,
            features: features.convert(features_to_hub),
            data: data_to_hub(etcd_cluster),
            exposure: Field::Absent,
            backup: Field::non_default(v1::Backup {
                schedule,
                time_zone: Field::Absent,
                suspend: Field::Absent,
                destination: destination.convert(destination_to_hub),
                retention: Field::Absent,
            }),
            restore: Field::Absent,
            upgrade: Field::Absent,
            resources: Field::Absent,
            paused,
            deletion_policy: Field::Absent,
        }
    }

    fn from_hub(hub: v1::ExampleAppSpec) -> Self {
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
            backup.or_default();
        Self {
            version,
            replicas,
            features: features.convert(features_from_hub),
            schedule,
            destination: destination.convert(destination_from_hub),
            etcd_cluster: data_from_hub(data),
            paused,
        }
    }
}

/// A name in the list enables the feature.
fn features_to_hub(names: Vec<FeatureName>) -> Field<Features> {
    let on = |name: FeatureName| (name.as_str().to_owned(), true);
    Field::non_default(names.into_iter().map(on).collect())
}

/// Disabled features are not in the list of enabled ones; the conversion engine preserves them.
fn features_from_hub(features: Features) -> Field<Vec<FeatureName>> {
    let on = features.into_iter().filter(|(_, on)| *on);
    Field::non_default(on.map(|(name, _)| FeatureName::from(name)).collect())
}

fn data_to_hub(name: Field<ObjectName>) -> Field<v1::Data> {
    let cluster_ref = Field::non_default(LocalRef { name });
    let etcd = v1::Etcd { cluster_ref, managed: Field::Absent };
    Field::non_default(v1::Data { etcd: Field::non_default(etcd) })
}

fn data_from_hub(data: Field<v1::Data>) -> Field<ObjectName> {
    let v1::Data { etcd } = data.or_default();
    let v1::Etcd { cluster_ref, managed: _ } = etcd.or_default();
    let LocalRef { name } = cluster_ref.or_default();
    name
}

fn destination_to_hub(destination: v1beta1::Destination) -> Field<Destination> {
    let v1beta1::Destination { storage_type, host, bucket_name, prefix } = destination;
    BackupStore { storage_type, host, bucket_name, prefix }.into_destination()
}

fn destination_from_hub(destination: Destination) -> Field<v1beta1::Destination> {
    let BackupStore { storage_type, host, bucket_name, prefix } =
        BackupStore::from_destination(destination);
    Field::non_default(v1beta1::Destination { storage_type, host, bucket_name, prefix })
}

impl Spoke for v1beta1::ExampleAppStatus {
    type Hub = status::ExampleAppStatus;

    fn to_hub(self) -> status::ExampleAppStatus {
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
            backup: Field::non_default(status::BackupStatus {
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

    fn from_hub(hub: status::ExampleAppStatus) -> Self {
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
            backup.or_default();
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
