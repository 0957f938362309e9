//! ExampleApp as controllers read it after validation: closed types with defaults applied.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::ResourceRequirements;
use serde_json::Value;

use super::defaults::{MIN_REPLICAS, TARGET_CPU_PERCENT, apply_defaults};
use super::release::AppRelease;
use super::v1::{
    self, Autoscaling, DeletionPolicy, Etcd, ExampleAppSpec, ExposureTls, Features, ManagedEtcd,
    ManagedStorage, ServiceType,
};
use crate::api::destination::validated::{BackupConfig, BackupFields, RestoreSource};
use crate::api::etcd_cluster::validated::restore;
use crate::api::etcd_version::Release;
use crate::api::extract::{
    self, collection, is_true, number, optional_number, required_ref_name, string,
};
use crate::api::field::Field;
use crate::api::kinds::{self, Kind};
use crate::api::pod::validated::{ImagePull, to_core_type};
use crate::api::strings::AppVersion;
use crate::api::validated::{FromObject, ReadError};

/// Desired state of an application.
#[derive(Clone, Debug, PartialEq)]
pub struct ExampleApp {
    /// Version.
    pub version: AppRelease,
    /// Container image. The API has no default repository; the controller chooses one.
    pub image: ImagePull<Option<String>>,
    /// Number of replicas.
    pub scale: Replicas,
    /// Features that are set; the others have the default of the version.
    pub features: Features,
    /// EtcdCluster of the data.
    pub data: Data,
    /// Service and Ingress.
    pub exposure: Exposure,
    /// Scheduled backups.
    pub backup: Option<BackupConfig>,
    /// Backup to start from.
    pub restore: Option<RestoreSource>,
    /// Settings of version changes.
    pub upgrade: Upgrade,
    /// Resource requests and limits of each replica.
    pub resources: ResourceRequirements,
    /// Whether reconciliation is paused.
    pub paused: bool,
    /// What happens when the object is deleted.
    pub deletion: DeletionPolicy,
}

/// Number of replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replicas {
    /// Fixed number; 0 hibernates the application.
    Fixed(u16),
    /// Scaled by CPU utilization.
    Range {
        /// Minimum.
        min: u16,
        /// Maximum.
        max: u16,
        /// Target CPU utilization in percent of the requested CPU.
        target_percent: u16,
    },
}

/// EtcdCluster of the data.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Existing EtcdCluster, by name.
    Cluster(String),
    /// Dedicated EtcdCluster.
    Managed {
        /// Number of members.
        replicas: u8,
        /// etcd version.
        version: Release,
        /// Volume size of each member in bytes.
        bytes: u64,
        /// StorageClass; the default one if unset.
        class: Option<String>,
    },
}

/// Service and Ingress of the application.
#[derive(Clone, Debug, PartialEq)]
pub struct Exposure {
    /// Type of the Service.
    pub service_type: ServiceType,
    /// Host of the Ingress, with its certificate.
    pub host: Option<Host>,
}

/// Host of the Ingress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Host name.
    pub name: String,
    /// Secret with the certificate; plaintext if unset.
    pub tls_secret: Option<String>,
}

/// Settings of version changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upgrade {
    /// Whether a backup is taken first.
    pub snapshot_first: bool,
    /// Failed starts after which the previous version is restored.
    pub rollback_after_failed_starts: u32,
}

impl FromObject for ExampleApp {
    fn kind() -> &'static Kind {
        &kinds::EXAMPLE_APP
    }

    fn read(object: &Value) -> Result<Self, ReadError> {
        let mut spec: ExampleAppSpec = Field::from_json(object.get("spec")).or_default();
        apply_defaults(&mut spec, None);
        let ExampleAppSpec {
            version,
            image,
            replicas,
            autoscaling,
            features,
            data,
            exposure,
            backup,
            restore,
            upgrade,
            resources,
            paused,
            deletion_policy,
        } = spec;
        Ok(Self {
            version: release(&version)?,
            image: ImagePull::read(image.or_default())?,
            scale: self::scale(&replicas, autoscaling)?,
            features: collection(&features, "spec.features")?.unwrap_or_default(),
            data: self::data(data.or_default())?,
            exposure: self::exposure(exposure.or_default())?,
            backup: backup.into_known().map(self::backup).transpose()?,
            restore: restore.into_known().map(self::restore).transpose()?,
            upgrade: self::upgrade(&upgrade.or_default())?,
            resources: to_core_type(&resources, "spec.resources")?.unwrap_or_default(),
            paused: is_true(&paused),
            deletion: deletion_policy.into_known().unwrap_or(DeletionPolicy::Delete),
        })
    }
}

fn release(version: &Field<AppVersion>) -> Result<AppRelease, ReadError> {
    let release = version.known().and_then(|version| AppRelease::parse(version.as_str()));
    release.ok_or(ReadError { path: "spec.version", expected: "a version of the application" })
}

fn scale(replicas: &Field<i32>, range: Field<Autoscaling>) -> Result<Replicas, ReadError> {
    let Some(range) = range.into_known() else {
        return number(replicas, "spec.replicas").map(Replicas::Fixed);
    };
    let Autoscaling { min_replicas, max_replicas, target_cpu_utilization_percentage } = range;
    let min = optional_number(&min_replicas, "spec.autoscaling.minReplicas")?;
    let target = optional_number(
        &target_cpu_utilization_percentage,
        "spec.autoscaling.targetCPUUtilizationPercentage",
    )?;
    Ok(Replicas::Range {
        min: min.unwrap_or(MIN_REPLICAS),
        max: number(&max_replicas, "spec.autoscaling.maxReplicas")?,
        target_percent: target.unwrap_or(TARGET_CPU_PERCENT),
    })
}

fn data(data: v1::Data) -> Result<Data, ReadError> {
    let v1::Data { etcd } = data;
    let Etcd { cluster_ref, managed } = etcd.or_default();
    if cluster_ref.known().is_some() {
        return required_ref_name(&cluster_ref, "spec.data.etcd.clusterRef").map(Data::Cluster);
    }
    let ManagedEtcd { replicas, version, storage } = managed.or_default();
    let ManagedStorage { size, class_name } = storage.or_default();
    Ok(Data::Managed {
        replicas: number(&replicas, "spec.data.etcd.managed.replicas")?,
        version: extract::release(&version, "spec.data.etcd.managed.version")?,
        bytes: extract::size(&size, "spec.data.etcd.managed.storage.size")?,
        class: string(&class_name),
    })
}

fn exposure(exposure: v1::Exposure) -> Result<Exposure, ReadError> {
    let v1::Exposure { service_type, host, tls } = exposure;
    let secret =
        |ExposureTls { secret_ref }| required_ref_name(&secret_ref, "spec.exposure.tls.secretRef");
    let tls_secret = tls.into_known().map(secret).transpose()?;
    Ok(Exposure {
        service_type: service_type.into_known().unwrap_or(ServiceType::ClusterIp),
        host: string(&host).map(|name| Host { name, tls_secret }),
    })
}

fn backup(backup: v1::Backup) -> Result<BackupConfig, ReadError> {
    let v1::Backup { schedule, time_zone, suspend, destination, retention } = backup;
    let verify_schedule = Field::Absent;
    BackupConfig::read(BackupFields {
        schedule,
        time_zone,
        suspend,
        destination,
        retention,
        verify_schedule,
    })
}

fn upgrade(upgrade: &v1::Upgrade) -> Result<Upgrade, ReadError> {
    let v1::Upgrade { snapshot_first, rollback_after_failed_starts } = upgrade;
    let path = "spec.upgrade.rollbackAfterFailedStarts";
    Ok(Upgrade {
        snapshot_first: is_true(snapshot_first),
        rollback_after_failed_starts: number(rollback_after_failed_starts, path)?,
    })
}

#[cfg(test)]
mod tests;
