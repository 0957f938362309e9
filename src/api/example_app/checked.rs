//! An ExampleApp as controllers see it: closed types, defaults filled in, nothing left to doubt.
//! Comes in: an object that has passed the checks. Goes out: [`ExampleApp`].
//! May touch: the types of this kind, and Kubernetes' own for pods.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::ResourceRequirements;
use serde_json::Value;

use super::defaults::{LEAST_REPLICAS, TARGET_PERCENT, defaults};
use super::release::AppRelease;
use super::v1::{
    self, Autoscaling, DeletionPolicy, Etcd, ExampleAppSpec, ExposureTls, Features, ManagedEtcd,
    ManagedStorage, ServiceType,
};
use crate::api::checked::{Readable, Unread};
use crate::api::destination::checked::{Asked, Plan, Source};
use crate::api::etcd_cluster::checked::begun_with;
use crate::api::etcd_version::Release;
use crate::api::field::Field;
use crate::api::kinds::{self, Kind};
use crate::api::plain::{self, all_of, is_true, maybe_number, number, some_name, text};
use crate::api::pod::checked::{Pull, as_pods_have_it};
use crate::api::texts::AppVersion;

/// What an application should be.
#[derive(Clone, Debug, PartialEq)]
pub struct ExampleApp {
    /// Which release.
    pub version: AppRelease,
    /// Where the image comes from. The API has no repository of its own: without one, whoever runs
    /// the application chooses.
    pub image: Pull<Option<String>>,
    /// How many replicas.
    pub scale: Replicas,
    /// Features that were turned on or off; the release's own choice holds for the others.
    pub features: Features,
    /// Where its data is.
    pub data: Data,
    /// How people reach it.
    pub exposure: Exposure,
    /// When and where backups are made.
    pub backup: Option<Plan>,
    /// What to begin with.
    pub restore: Option<Source>,
    /// How a new version is brought in.
    pub upgrade: Upgrade,
    /// What each replica asks for.
    pub resources: ResourceRequirements,
    /// Whether to leave it alone.
    pub paused: bool,
    /// What becomes of it in the end.
    pub deletion: DeletionPolicy,
}

/// How many replicas there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replicas {
    /// This many; none lets the application sleep.
    Fixed(u16),
    /// As many as the load asks for.
    Range {
        /// At least.
        least: u16,
        /// At most.
        most: u16,
        /// How much of the processor time that they ask for they should use, in percent.
        target_percent: u16,
    },
}

/// Where the data is.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// In an EtcdCluster that there is, by its name.
    Cluster(String),
    /// In an EtcdCluster of the application's own.
    Managed {
        /// How many members.
        replicas: u8,
        /// Which release of etcd.
        version: Release,
        /// How much space each member has, in bytes.
        bytes: u64,
        /// The StorageClass, or the cluster's default.
        class: Option<String>,
    },
}

/// How people reach the application.
#[derive(Clone, Debug, PartialEq)]
pub struct Exposure {
    /// The type of its Service.
    pub service_type: ServiceType,
    /// The host for which there is an Ingress. A certificate is for a host, so it is in there.
    pub host: Option<Host>,
}

/// A host that people know the application by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// The Secret with its certificate; connections are in the clear without.
    pub tls_secret: Option<String>,
}

/// How a new version is brought in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upgrade {
    /// Whether a backup is made before.
    pub snapshot_first: bool,
    /// After how many failed starts the old version comes back.
    pub rollback_after_failed_starts: u32,
}

impl Readable for ExampleApp {
    fn kind() -> &'static Kind {
        &kinds::EXAMPLE_APP
    }

    fn read(object: &Value) -> Result<Self, Unread> {
        let mut spec: ExampleAppSpec = Field::of(object.get("spec")).or_empty();
        defaults(&mut spec, None);
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
            image: Pull::read(image.or_empty())?,
            scale: scale(&replicas, autoscaling)?,
            features: all_of(&features, "spec.features")?.unwrap_or_default(),
            data: kept_in(data.or_empty())?,
            exposure: exposed(exposure.or_empty())?,
            backup: backup.into_known().map(planned).transpose()?,
            restore: restore.into_known().map(begun_with).transpose()?,
            upgrade: brought_in(&upgrade.or_empty())?,
            resources: as_pods_have_it(&resources, "spec.resources")?.unwrap_or_default(),
            paused: is_true(&paused),
            deletion: deletion_policy.into_known().unwrap_or(DeletionPolicy::Delete),
        })
    }
}

fn release(version: &Field<AppVersion>) -> Result<AppRelease, Unread> {
    let release = version.known().and_then(|it| AppRelease::parse(it.as_str()));
    release.ok_or(Unread { path: "spec.version", wanted: "a release of the application" })
}

fn scale(replicas: &Field<i32>, range: Field<Autoscaling>) -> Result<Replicas, Unread> {
    let Some(range) = range.into_known() else {
        return number(replicas, "spec.replicas").map(Replicas::Fixed);
    };
    let Autoscaling { min_replicas, max_replicas, target_cpu_utilization_percentage } = range;
    let least = maybe_number(&min_replicas, "spec.autoscaling.minReplicas")?;
    let target = maybe_number(
        &target_cpu_utilization_percentage,
        "spec.autoscaling.targetCPUUtilizationPercentage",
    )?;
    Ok(Replicas::Range {
        least: least.unwrap_or(LEAST_REPLICAS),
        most: number(&max_replicas, "spec.autoscaling.maxReplicas")?,
        target_percent: target.unwrap_or(TARGET_PERCENT),
    })
}

fn kept_in(data: v1::Data) -> Result<Data, Unread> {
    let v1::Data { etcd } = data;
    let Etcd { cluster_ref, managed } = etcd.or_empty();
    if cluster_ref.known().is_some() {
        return some_name(&cluster_ref, "spec.data.etcd.clusterRef").map(Data::Cluster);
    }
    let ManagedEtcd { replicas, version, storage } = managed.or_empty();
    let ManagedStorage { size, class_name } = storage.or_empty();
    Ok(Data::Managed {
        replicas: number(&replicas, "spec.data.etcd.managed.replicas")?,
        version: plain::release(&version, "spec.data.etcd.managed.version")?,
        bytes: plain::size(&size, "spec.data.etcd.managed.storage.size")?,
        class: text(&class_name),
    })
}

fn exposed(exposure: v1::Exposure) -> Result<Exposure, Unread> {
    let v1::Exposure { service_type, host, tls } = exposure;
    let secret = |ExposureTls { secret_ref }| some_name(&secret_ref, "spec.exposure.tls.secretRef");
    let tls_secret = tls.into_known().map(secret).transpose()?;
    Ok(Exposure {
        service_type: service_type.into_known().unwrap_or(ServiceType::ClusterIp),
        host: text(&host).map(|name| Host { name, tls_secret }),
    })
}

fn planned(backup: v1::Backup) -> Result<Plan, Unread> {
    let v1::Backup { schedule, time_zone, suspend, destination, retention } = backup;
    let verify_schedule = Field::Absent;
    Plan::read(Asked { schedule, time_zone, suspend, destination, retention, verify_schedule })
}

fn brought_in(upgrade: &v1::Upgrade) -> Result<Upgrade, Unread> {
    let v1::Upgrade { snapshot_first, rollback_after_failed_starts } = upgrade;
    let path = "spec.upgrade.rollbackAfterFailedStarts";
    Ok(Upgrade {
        snapshot_first: is_true(snapshot_first),
        rollback_after_failed_starts: number(rollback_after_failed_starts, path)?,
    })
}

#[cfg(test)]
mod tests;
