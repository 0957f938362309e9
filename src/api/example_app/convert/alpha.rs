//! ExampleApp v1alpha1 to v1 and back.
//! Comes in: one part. Goes out: the other. May touch: the types of this kind, jiff to read a time.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::ops::Not;

use crate::api::convert::Spoke;
use crate::api::example_app::place::Place;
use crate::api::example_app::v1::status;
use crate::api::example_app::{v1, v1alpha1};
use crate::api::field::Field;
use crate::api::texts::{Phrase, Time};

impl Spoke for v1alpha1::ExampleAppSpec {
    type Hub = v1::ExampleAppSpec;

    fn up(self) -> v1::ExampleAppSpec {
        let Self { app_version, features, backup } = self;
        v1::ExampleAppSpec {
            version: app_version,
            image: Field::Absent,
            replicas: Field::Absent,
            autoscaling: Field::Absent,
            features,
            data: Field::Absent,
            exposure: Field::Absent,
            backup: backup.turned(|backup| Field::unless_empty(backup_up(backup))),
            restore: Field::Absent,
            upgrade: Field::Absent,
            resources: Field::Absent,
            paused: Field::Absent,
            deletion_policy: Field::Absent,
        }
    }

    fn down(hub: v1::ExampleAppSpec) -> Self {
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
            backup: backup.turned(|backup| Field::unless_empty(backup_down(backup))),
        }
    }
}

fn backup_up(backup: v1alpha1::Backup) -> v1::Backup {
    let v1alpha1::Backup { enabled, storage_type, host, bucket_name } = backup;
    let place = Place { storage_type, host, bucket_name, prefix: Field::Absent };
    v1::Backup {
        schedule: Field::Absent,
        time_zone: Field::Absent,
        suspend: enabled.map(Not::not),
        destination: place.up(),
        retention: Field::Absent,
    }
}

fn backup_down(backup: v1::Backup) -> v1alpha1::Backup {
    let v1::Backup { schedule: _, time_zone: _, suspend, destination, retention: _ } = backup;
    let Place { storage_type, host, bucket_name, prefix: _ } =
        destination.into_known().map(Place::down).unwrap_or_default();
    v1alpha1::Backup { enabled: suspend.map(Not::not), storage_type, host, bucket_name }
}

impl Spoke for v1alpha1::ExampleAppStatus {
    type Hub = status::ExampleAppStatus;

    fn up(self) -> status::ExampleAppStatus {
        let Self { current_version, url, auth_secret_name, backup } = self;
        let backup_up = |v1alpha1::BackupStatus { last_backup_time }| {
            Field::unless_empty(status::BackupStatus {
                last_backup_time: last_backup_time.turned(|text| moment(&text)),
                ..status::BackupStatus::default()
            })
        };
        status::ExampleAppStatus {
            current_version,
            url,
            auth_secret_name,
            backup: backup.turned(backup_up),
            ..status::ExampleAppStatus::default()
        }
    }

    fn down(hub: status::ExampleAppStatus) -> Self {
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
        let backup_down = |backup| {
            let status::BackupStatus { last_backup_time, location: _, version: _, last_error: _ } =
                backup;
            let last_backup_time = last_backup_time.turned(|time| words(&time));
            Field::unless_empty(v1alpha1::BackupStatus { last_backup_time })
        };
        Self { current_version, url, auth_secret_name, backup: backup.turned(backup_down) }
    }
}

/// The paper writes `12:00`, which is a time of no day. The hub can only say whole moments.
fn moment(text: &Phrase) -> Field<Time> {
    is_moment(text.as_str()).then(|| Time::from(text.as_str())).into()
}

/// Only what could come back as it is: the same rule as on the way up.
fn words(time: &Time) -> Field<Phrase> {
    is_moment(time.as_str()).then(|| Phrase::from(time.as_str())).into()
}

fn is_moment(text: &str) -> bool {
    text.parse::<jiff::Timestamp>().is_ok()
}
