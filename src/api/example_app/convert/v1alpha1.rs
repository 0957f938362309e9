//! Conversion of ExampleApp between v1alpha1 and the hub v1.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::ops::Not;

use crate::api::convert::Spoke;
use crate::api::example_app::backup_store::BackupStore;
use crate::api::example_app::v1::status;
use crate::api::example_app::{v1, v1alpha1};
use crate::api::field::Field;
use crate::api::strings::{ShortString, Time};

impl Spoke for v1alpha1::ExampleAppSpec {
    type Hub = v1::ExampleAppSpec;

    fn to_hub(self) -> v1::ExampleAppSpec {
        let Self { app_version, features, backup } = self;
        v1::ExampleAppSpec {
            version: app_version,
            image: Field::Absent,
            replicas: Field::Absent,
            autoscaling: Field::Absent,
            features,
            data: Field::Absent,
            exposure: Field::Absent,
            backup: backup.convert(|backup| Field::non_default(backup_to_hub(backup))),
            restore: Field::Absent,
            upgrade: Field::Absent,
            resources: Field::Absent,
            paused: Field::Absent,
            deletion_policy: Field::Absent,
        }
    }

    fn from_hub(hub: v1::ExampleAppSpec) -> Self {
        let v1::ExampleAppSpec {
            version,
            image: _,
            replicas: _,
            autoscaling: _,
            features,
            data: _,
            exposure: _,
            backup,
            restore: _,
            upgrade: _,
            resources: _,
            paused: _,
            deletion_policy: _,
        } = hub;
        Self {
            app_version: version,
            features,
            backup: backup.convert(|backup| Field::non_default(backup_from_hub(backup))),
        }
    }
}

fn backup_to_hub(backup: v1alpha1::Backup) -> v1::Backup {
    let v1alpha1::Backup { enabled, storage_type, host, bucket_name } = backup;
    let store = BackupStore { storage_type, host, bucket_name, prefix: Field::Absent };
    v1::Backup {
        schedule: Field::Absent,
        time_zone: Field::Absent,
        suspend: enabled.map(Not::not),
        destination: store.into_destination(),
        retention: Field::Absent,
    }
}

fn backup_from_hub(backup: v1::Backup) -> v1alpha1::Backup {
    let v1::Backup { schedule: _, time_zone: _, suspend, destination, retention: _ } = backup;
    let BackupStore { storage_type, host, bucket_name, prefix: _ } =
        destination.into_known().map(BackupStore::from_destination).unwrap_or_default();
    v1alpha1::Backup { enabled: suspend.map(Not::not), storage_type, host, bucket_name }
}

impl Spoke for v1alpha1::ExampleAppStatus {
    type Hub = status::ExampleAppStatus;

    fn to_hub(self) -> status::ExampleAppStatus {
        let Self { current_version, url, auth_secret_name, backup } = self;
        let backup_to_hub = |v1alpha1::BackupStatus { last_backup_time }| {
            Field::non_default(status::BackupStatus {
                last_backup_time: last_backup_time.convert(|text| parse_time(&text)),
                ..status::BackupStatus::default()
            })
        };
        status::ExampleAppStatus {
            current_version,
            url,
            auth_secret_name,
            backup: backup.convert(backup_to_hub),
            ..status::ExampleAppStatus::default()
        }
    }

    fn from_hub(hub: status::ExampleAppStatus) -> Self {
        let status::ExampleAppStatus {
            observed_generation: _,
            current_version,
            target_version: _,
            url,
            auth_secret_name,
            binding: _,
            backup,
            replicas: _,
            ready_replicas: _,
            selector: _,
            progress: _,
            conditions: _,
        } = hub;
        let backup_from_hub = |backup| {
            let status::BackupStatus { last_backup_time, location: _, version: _, last_error: _ } =
                backup;
            let last_backup_time = last_backup_time.convert(|time| format_time(&time));
            Field::non_default(v1alpha1::BackupStatus { last_backup_time })
        };
        Self { current_version, url, auth_secret_name, backup: backup.convert(backup_from_hub) }
    }
}

/// The white paper writes `12:00`, a time without a date. The hub only has complete timestamps.
fn parse_time(text: &ShortString) -> Field<Time> {
    is_timestamp(text.as_str()).then(|| Time::from(text.as_str())).into()
}

/// Only a value that round-trips: the same rule as in the conversion to the hub.
fn format_time(time: &Time) -> Field<ShortString> {
    is_timestamp(time.as_str()).then(|| ShortString::from(time.as_str())).into()
}

fn is_timestamp(text: &str) -> bool {
    text.parse::<jiff::Timestamp>().is_ok()
}
