//! An EtcdCluster as controllers see it: closed types, defaults filled in, nothing left to doubt.
//! Comes in: an object that has passed the checks. Goes out: [`EtcdCluster`].
//! May touch: the types of this kind, and Kubernetes' own for pods.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Affinity, ResourceRequirements, Toleration};
use serde_json::Value;

use super::defaults::defaults;
use super::v1::{
    self, Auth, AutoCompaction, CompactionMode, DeletionPolicy, EtcdClusterSpec, IssuerKind,
    IssuerRef, Medium, Tls, TlsSide, TlsSource, Upgrade,
};
use crate::api::checked::{Readable, Unread};
use crate::api::destination::checked::{Asked, Plan, Source};
use crate::api::etcd_version::Release;
use crate::api::field::Field;
use crate::api::kinds::{self, Kind};
use crate::api::names;
use crate::api::plain::{
    self, is_true, maybe_number, maybe_size, number, some_name, some_text, text, texts,
};
use crate::api::pod::Resources;
use crate::api::pod::checked::{Pull, as_pods_have_it};

/// Where a side's certificates are said to come from: the issuer, and the Secret.
const CLIENT: [&str; 2] = ["spec.tls.client.issuerRef", "spec.tls.client.secretRef"];
const PEER: [&str; 2] = ["spec.tls.peer.issuerRef", "spec.tls.peer.secretRef"];

/// What a cluster should be.
#[derive(Clone, Debug, PartialEq)]
pub struct EtcdCluster {
    /// How many members.
    pub replicas: u8,
    /// Which release.
    pub version: Release,
    /// Where the image comes from.
    pub image: Pull,
    /// What each member keeps its data on.
    pub storage: Storage,
    /// Settings of etcd; what is not said is tuned.
    pub options: Options,
    /// The certificates of clients' connections.
    pub client_tls: Certificates,
    /// The certificates of members' connections.
    pub peer_tls: Certificates,
    /// The Secret with root's password, if users must be known.
    pub root_secret: Option<String>,
    /// What the members' pods are given.
    pub pods: Pods,
    /// Whether a backup is made before a new version.
    pub snapshot_first: bool,
    /// When a member is given up.
    pub repair: Repair,
    /// When files are rewritten.
    pub defragment: Option<Defragment>,
    /// When and where backups are made.
    pub backup: Option<Plan>,
    /// What to begin with.
    pub restore: Option<Source>,
    /// Whether to leave it alone.
    pub paused: bool,
    /// What becomes of it in the end.
    pub deletion: DeletionPolicy,
}

/// What a member keeps its data on.
#[derive(Clone, Debug, PartialEq)]
pub struct Storage {
    /// How much space it has, in bytes.
    pub bytes: u64,
    /// The StorageClass, or the cluster's default.
    pub class: Option<String>,
    /// What it is on.
    pub medium: Medium,
}

/// What the members' pods are given.
#[derive(Clone, Debug, PartialEq)]
pub struct Pods {
    /// Labels that nodes must have.
    pub node_selector: BTreeMap<String, String>,
    /// Taints that members put up with.
    pub tolerations: Vec<Toleration>,
    /// Where members like to be, if the user said so.
    pub affinity: Option<Affinity>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// What each member asks for.
    pub resources: ResourceRequirements,
}

/// When a member is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair {
    /// How many starts a failing member is given.
    pub recreate_attempts: u32,
    /// How long a member may be gone.
    pub replace_after: Duration,
}

/// Settings of etcd that the user chose.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// How large the data may grow, in bytes.
    pub quota: Option<u64>,
    /// How old revisions are forgotten.
    pub compaction: Option<Compaction>,
    /// Writes between two snapshots.
    pub snapshot_count: Option<u32>,
    /// How often the leader is heard.
    pub heartbeat: Option<Duration>,
    /// How long it may be silent.
    pub election: Option<Duration>,
}

/// How old revisions are forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compaction {
    /// Those older than this.
    Age(Duration),
    /// All but this many.
    Count(u32),
}

/// Where certificates come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Certificates {
    /// From a certificate authority of the cluster's own.
    Managed,
    /// From cert-manager.
    Issuer {
        /// The issuer's name.
        name: String,
        /// Its kind.
        kind: IssuerKind,
    },
    /// From a Secret.
    Secret(String),
    /// There are none.
    Disabled,
}

/// When files are rewritten.
#[derive(Clone, Debug, PartialEq)]
pub struct Defragment {
    /// When to look, as it was written.
    pub schedule: Option<String>,
    /// The schedule's time zone.
    pub time_zone: Option<String>,
    /// How many bytes must be free.
    pub reclaim_above: Option<u64>,
}

impl Readable for EtcdCluster {
    fn kind() -> &'static Kind {
        &kinds::ETCD_CLUSTER
    }

    fn read(object: &Value) -> Result<Self, Unread> {
        let mut spec: EtcdClusterSpec = Field::of(object.get("spec")).or_empty();
        defaults(&mut spec, None);
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
            (auth.or_empty(), tls.or_empty());
        let root = || some_name(&root_secret_ref, "spec.auth.rootSecretRef");
        let Upgrade { snapshot_first } = upgrade.or_empty();
        Ok(Self {
            replicas: number(&replicas, "spec.replicas")?,
            version: plain::release(&version, "spec.version")?,
            image: Pull::read(image.or_empty())?.named()?,
            storage: kept_on(storage.or_empty())?,
            options: chosen(options.or_empty())?,
            client_tls: certificates(client.or_empty(), CLIENT)?,
            peer_tls: certificates(peer.or_empty(), PEER)?,
            root_secret: is_true(&enabled).then(root).transpose()?,
            pods: pods(&placement.or_empty(), &pod_metadata.or_empty(), &resources)?,
            snapshot_first: is_true(&snapshot_first),
            repair: given_up(&repair.or_empty())?,
            defragment: defragment.known().map(rewritten).transpose()?,
            backup: backup.into_known().map(planned).transpose()?,
            restore: restore.into_known().map(begun_with).transpose()?,
            paused: is_true(&paused),
            deletion: deletion_policy.into_known().unwrap_or(DeletionPolicy::Retain),
        })
    }
}

/// What the members of a cluster, or one of them, keep their data on.
pub(crate) fn kept_on(storage: v1::Storage) -> Result<Storage, Unread> {
    let v1::Storage { size, class_name, medium } = storage;
    Ok(Storage {
        bytes: plain::size(&size, "spec.storage.size")?,
        class: text(&class_name),
        medium: medium.into_known().unwrap_or(Medium::Disk),
    })
}

fn pods(
    placement: &v1::Placement,
    metadata: &v1::PodMetadata,
    resources: &Field<Resources>,
) -> Result<Pods, Unread> {
    let v1::Placement { node_selector, tolerations, affinity } = placement;
    let v1::PodMetadata { labels, annotations } = metadata;
    let tolerations = as_pods_have_it(tolerations, "spec.placement.tolerations")?;
    Ok(Pods {
        node_selector: texts(node_selector, "spec.placement.nodeSelector")?,
        tolerations: tolerations.unwrap_or_default(),
        affinity: as_pods_have_it(affinity, "spec.placement.affinity")?,
        labels: texts(labels, "spec.podMetadata.labels")?,
        annotations: texts(annotations, "spec.podMetadata.annotations")?,
        resources: as_pods_have_it(resources, "spec.resources")?.unwrap_or_default(),
    })
}

fn given_up(repair: &v1::Repair) -> Result<Repair, Unread> {
    let v1::Repair { recreate_attempts, replace_after_seconds } = repair;
    let after = number(replace_after_seconds, "spec.repair.replaceAfterSeconds")?;
    Ok(Repair {
        recreate_attempts: number(recreate_attempts, "spec.repair.recreateAttempts")?,
        replace_after: Duration::from_secs(after),
    })
}

fn rewritten(defragment: &v1::Defragment) -> Result<Defragment, Unread> {
    let v1::Defragment { schedule, time_zone, reclaim_above } = defragment;
    Ok(Defragment {
        schedule: text(schedule),
        time_zone: text(time_zone),
        reclaim_above: maybe_size(reclaim_above, "spec.defragment.reclaimAbove")?,
    })
}

/// What a cluster, or an application with one, begins with.
pub(crate) fn begun_with(restore: v1::Restore) -> Result<Source, Unread> {
    let v1::Restore { from } = restore;
    Source::read(from, "spec.restore.from")
}

fn planned(backup: v1::Backup) -> Result<Plan, Unread> {
    let v1::Backup { schedule, time_zone, suspend, destination, retention, verify_schedule } =
        backup;
    Plan::read(Asked { schedule, time_zone, suspend, destination, retention, verify_schedule })
}

fn chosen(options: v1::Options) -> Result<Options, Unread> {
    let v1::Options {
        quota,
        auto_compaction,
        snapshot_count,
        heartbeat_milliseconds,
        election_milliseconds,
    } = options;
    let heartbeat = maybe_number(&heartbeat_milliseconds, "spec.options.heartbeatMilliseconds")?;
    let election = maybe_number(&election_milliseconds, "spec.options.electionMilliseconds")?;
    Ok(Options {
        quota: maybe_size(&quota, "spec.options.quota")?,
        compaction: compaction(&auto_compaction.or_empty())?,
        snapshot_count: maybe_number(&snapshot_count, "spec.options.snapshotCount")?,
        heartbeat: heartbeat.map(Duration::from_millis),
        election: election.map(Duration::from_millis),
    })
}

fn compaction(given: &AutoCompaction) -> Result<Option<Compaction>, Unread> {
    let AutoCompaction { mode, retention_seconds, retention_revisions } = given;
    let path = "spec.options.autoCompaction";
    Ok(match mode.known().copied().unwrap_or(CompactionMode::Periodic) {
        CompactionMode::Periodic => maybe_number(retention_seconds, path)?
            .map(|it| Compaction::Age(Duration::from_secs(it))),
        CompactionMode::Revision => maybe_number(retention_revisions, path)?.map(Compaction::Count),
    })
}

fn certificates(
    side: TlsSide,
    [issuer_path, secret_path]: [&'static str; 2],
) -> Result<Certificates, Unread> {
    let TlsSide { source, issuer_ref, secret_ref } = side;
    Ok(match source.into_known().unwrap_or(TlsSource::Managed) {
        TlsSource::Managed => Certificates::Managed,
        TlsSource::CertManager => {
            let IssuerRef { name, kind } = issuer_ref.or_empty();
            Certificates::Issuer {
                name: some_text(&name, issuer_path)?,
                kind: kind.into_known().unwrap_or(IssuerKind::Issuer),
            }
        }
        TlsSource::Secret => Certificates::Secret(some_name(&secret_ref, secret_path)?),
        TlsSource::Disabled => Certificates::Disabled,
    })
}

/// The longest name that anything of a cluster may get still fits a label.
const _: () = assert!(names::MOST_NAME + 11 <= 63, "a member's name must fit a label");

#[cfg(test)]
mod tests;
