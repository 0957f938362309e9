//! EtcdCluster as controllers read it after validation: closed types with defaults applied.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Affinity, ResourceRequirements, Toleration};
use serde_json::Value;

use super::defaults::apply_defaults;
use super::v1::{
    self, Auth, AutoCompaction, CompactionMode, DeletionPolicy, EtcdClusterSpec, IssuerKind,
    IssuerRef, Medium, Tls, TlsSide, TlsSource, Upgrade,
};
use crate::api::destination::validated::{BackupConfig, BackupFields, RestoreSource};
use crate::api::etcd_version::Release;
use crate::api::extract::{
    self, is_true, number, optional_number, optional_size, required_ref_name, required_string,
    string, string_map,
};
use crate::api::field::Field;
use crate::api::kinds::{self, Kind};
use crate::api::names;
use crate::api::pod::Resources;
use crate::api::pod::validated::{ImagePull, to_core_type};
use crate::api::validated::{FromObject, ReadError};

/// Field paths of the issuer and the Secret of client and peer certificates.
const CLIENT: [&str; 2] = ["spec.tls.client.issuerRef", "spec.tls.client.secretRef"];
const PEER: [&str; 2] = ["spec.tls.peer.issuerRef", "spec.tls.peer.secretRef"];

/// Desired state of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct EtcdCluster {
    /// Number of members.
    pub replicas: u8,
    /// etcd version.
    pub version: Release,
    /// Container image.
    pub image: ImagePull,
    /// Storage of each member.
    pub storage: Storage,
    /// Settings of etcd; unset ones are derived.
    pub options: Options,
    /// Certificate source of client connections.
    pub client_tls: Certificates,
    /// Certificate source of peer connections.
    pub peer_tls: Certificates,
    /// Secret with the root password, if authentication is enabled.
    pub root_secret: Option<String>,
    /// Pod settings of the members.
    pub pods: Pods,
    /// Whether a backup is taken before a rolling update.
    pub snapshot_first: bool,
    /// When an unhealthy member is replaced.
    pub repair: Repair,
    /// Schedule and threshold for defragmentation.
    pub defragment: Option<Defragment>,
    /// Scheduled backups.
    pub backup: Option<BackupConfig>,
    /// Backup to bootstrap from.
    pub restore: Option<RestoreSource>,
    /// Whether reconciliation is paused.
    pub paused: bool,
    /// What happens when the object is deleted.
    pub deletion: DeletionPolicy,
}

/// Storage of a member.
#[derive(Clone, Debug, PartialEq)]
pub struct Storage {
    /// Size in bytes.
    pub bytes: u64,
    /// StorageClass; the default one if unset.
    pub class: Option<String>,
    /// Medium of the data.
    pub medium: Medium,
}

/// Pod settings of the members.
#[derive(Clone, Debug, PartialEq)]
pub struct Pods {
    /// Required node labels.
    pub node_selector: BTreeMap<String, String>,
    /// Tolerations.
    pub tolerations: Vec<Toleration>,
    /// Affinity rules, if set.
    pub affinity: Option<Affinity>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Resource requests and limits.
    pub resources: ResourceRequirements,
}

/// When an unhealthy member is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair {
    /// Number of restarts before a crash-looping member is replaced.
    pub recreate_attempts: u32,
    /// How long a member may be unreachable.
    pub replace_after: Duration,
}

/// Settings of etcd that the user set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Backend quota in bytes.
    pub quota: Option<u64>,
    /// Auto compaction.
    pub compaction: Option<Compaction>,
    /// Raft entries between two snapshots.
    pub snapshot_count: Option<u32>,
    /// Heartbeat interval.
    pub heartbeat: Option<Duration>,
    /// Election timeout.
    pub election: Option<Duration>,
}

/// Auto compaction of old revisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compaction {
    /// Revisions older than this are compacted.
    Age(Duration),
    /// All but this number of revisions are compacted.
    Count(u32),
}

/// Source of certificates.
#[derive(Clone, Debug, PartialEq)]
pub enum Certificates {
    /// A CA that the operator manages for this cluster.
    Managed,
    /// An issuer of cert-manager.
    Issuer {
        /// Name of the issuer.
        name: String,
        /// Kind of the issuer.
        kind: IssuerKind,
    },
    /// A Secret that the user provides.
    Secret(String),
    /// None: plaintext.
    Disabled,
}

/// Schedule and threshold for defragmentation.
#[derive(Clone, Debug, PartialEq)]
pub struct Defragment {
    /// Cron schedule as in the spec.
    pub schedule: Option<String>,
    /// Time zone of the schedule.
    pub time_zone: Option<String>,
    /// Free bytes above which a member is defragmented.
    pub reclaim_above: Option<u64>,
}

impl FromObject for EtcdCluster {
    fn kind() -> &'static Kind {
        &kinds::ETCD_CLUSTER
    }

    fn read(object: &Value) -> Result<Self, ReadError> {
        let mut spec: EtcdClusterSpec = Field::from_json(object.get("spec")).or_default();
        apply_defaults(&mut spec, None);
        let EtcdClusterSpec {
            replicas,
            version,
            image,
            storage,
            options,
            tls,
            auth,
            placement,
            pod_metadata,
            resources,
            upgrade,
            repair,
            defragment,
            backup,
            restore,
            paused,
            deletion_policy,
        } = spec;
        let (Auth { enabled, root_secret_ref }, Tls { client, peer }) =
            (auth.or_default(), tls.or_default());
        let root = || required_ref_name(&root_secret_ref, "spec.auth.rootSecretRef");
        let Upgrade { snapshot_first } = upgrade.or_default();
        Ok(Self {
            replicas: number(&replicas, "spec.replicas")?,
            version: extract::release(&version, "spec.version")?,
            image: ImagePull::read(image.or_default())?.with_repository()?,
            storage: self::storage(storage.or_default())?,
            options: self::options(options.or_default())?,
            client_tls: certificates(client.or_default(), CLIENT)?,
            peer_tls: certificates(peer.or_default(), PEER)?,
            root_secret: is_true(&enabled).then(root).transpose()?,
            pods: pods(&placement.or_default(), &pod_metadata.or_default(), &resources)?,
            snapshot_first: is_true(&snapshot_first),
            repair: self::repair(&repair.or_default())?,
            defragment: defragment.known().map(self::defragment).transpose()?,
            backup: backup.into_known().map(self::backup).transpose()?,
            restore: restore.into_known().map(self::restore).transpose()?,
            paused: is_true(&paused),
            deletion: deletion_policy.into_known().unwrap_or(DeletionPolicy::Retain),
        })
    }
}

/// Storage of a cluster's members or of one member.
pub(crate) fn storage(storage: v1::Storage) -> Result<Storage, ReadError> {
    let v1::Storage { size, class_name, medium } = storage;
    Ok(Storage {
        bytes: extract::size(&size, "spec.storage.size")?,
        class: string(&class_name),
        medium: medium.into_known().unwrap_or(Medium::Disk),
    })
}

fn pods(
    placement: &v1::Placement,
    metadata: &v1::PodMetadata,
    resources: &Field<Resources>,
) -> Result<Pods, ReadError> {
    let v1::Placement { node_selector, tolerations, affinity } = placement;
    let v1::PodMetadata { labels, annotations } = metadata;
    let tolerations = to_core_type(tolerations, "spec.placement.tolerations")?;
    Ok(Pods {
        node_selector: string_map(node_selector, "spec.placement.nodeSelector")?,
        tolerations: tolerations.unwrap_or_default(),
        affinity: to_core_type(affinity, "spec.placement.affinity")?,
        labels: string_map(labels, "spec.podMetadata.labels")?,
        annotations: string_map(annotations, "spec.podMetadata.annotations")?,
        resources: to_core_type(resources, "spec.resources")?.unwrap_or_default(),
    })
}

fn repair(repair: &v1::Repair) -> Result<Repair, ReadError> {
    let v1::Repair { recreate_attempts, replace_after_seconds } = repair;
    let after = number(replace_after_seconds, "spec.repair.replaceAfterSeconds")?;
    Ok(Repair {
        recreate_attempts: number(recreate_attempts, "spec.repair.recreateAttempts")?,
        replace_after: Duration::from_secs(after),
    })
}

fn defragment(defragment: &v1::Defragment) -> Result<Defragment, ReadError> {
    let v1::Defragment { schedule, time_zone, reclaim_above } = defragment;
    Ok(Defragment {
        schedule: string(schedule),
        time_zone: string(time_zone),
        reclaim_above: optional_size(reclaim_above, "spec.defragment.reclaimAbove")?,
    })
}

/// Backup that a cluster, or an application with a dedicated one, is created from.
pub(crate) fn restore(restore: v1::Restore) -> Result<RestoreSource, ReadError> {
    let v1::Restore { from } = restore;
    RestoreSource::read(from, "spec.restore.from")
}

fn backup(backup: v1::Backup) -> Result<BackupConfig, ReadError> {
    let v1::Backup { schedule, time_zone, suspend, destination, retention, verify_schedule } =
        backup;
    BackupConfig::read(BackupFields {
        schedule,
        time_zone,
        suspend,
        destination,
        retention,
        verify_schedule,
    })
}

fn options(options: v1::Options) -> Result<Options, ReadError> {
    let v1::Options {
        quota,
        auto_compaction,
        snapshot_count,
        heartbeat_milliseconds,
        election_milliseconds,
    } = options;
    let heartbeat = optional_number(&heartbeat_milliseconds, "spec.options.heartbeatMilliseconds")?;
    let election = optional_number(&election_milliseconds, "spec.options.electionMilliseconds")?;
    Ok(Options {
        quota: optional_size(&quota, "spec.options.quota")?,
        compaction: compaction(&auto_compaction.or_default())?,
        snapshot_count: optional_number(&snapshot_count, "spec.options.snapshotCount")?,
        heartbeat: heartbeat.map(Duration::from_millis),
        election: election.map(Duration::from_millis),
    })
}

fn compaction(given: &AutoCompaction) -> Result<Option<Compaction>, ReadError> {
    let AutoCompaction { mode, retention_seconds, retention_revisions } = given;
    let path = "spec.options.autoCompaction";
    Ok(match mode.known().copied().unwrap_or(CompactionMode::Periodic) {
        CompactionMode::Periodic => optional_number(retention_seconds, path)?
            .map(|seconds| Compaction::Age(Duration::from_secs(seconds))),
        CompactionMode::Revision => {
            optional_number(retention_revisions, path)?.map(Compaction::Count)
        }
    })
}

fn certificates(
    side: TlsSide,
    [issuer_path, secret_path]: [&'static str; 2],
) -> Result<Certificates, ReadError> {
    let TlsSide { source, issuer_ref, secret_ref } = side;
    Ok(match source.into_known().unwrap_or(TlsSource::Managed) {
        TlsSource::Managed => Certificates::Managed,
        TlsSource::CertManager => {
            let IssuerRef { name, kind } = issuer_ref.or_default();
            Certificates::Issuer {
                name: required_string(&name, issuer_path)?,
                kind: kind.into_known().unwrap_or(IssuerKind::Issuer),
            }
        }
        TlsSource::Secret => Certificates::Secret(required_ref_name(&secret_ref, secret_path)?),
        TlsSource::Disabled => Certificates::Disabled,
    })
}

/// The longest name of a member must be a valid label value.
const _: () =
    assert!(names::MAX_CLUSTER_NAME_LENGTH + 11 <= 63, "a member's name must fit a label");

#[cfg(test)]
mod tests;
