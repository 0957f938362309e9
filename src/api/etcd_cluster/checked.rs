//! An EtcdCluster as controllers see it: closed types, defaults filled in, nothing left to doubt.
//! Comes in: an object that has passed the checks. Goes out: [`EtcdCluster`].
//! May touch: the types of this kind, and Kubernetes' own for pods.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Affinity, ResourceRequirements, Toleration};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::defaults::defaults;
use super::v1::{
    self, AutoCompaction, CompactionMode, DeletionPolicy, EtcdClusterSpec, IssuerKind, Medium,
    TlsSide, TlsSource,
};
use crate::api::checked::{Readable, Unread};
use crate::api::destination::checked::{Plan, Source};
use crate::api::etcd_version::Release;
use crate::api::field::Field;
use crate::api::kinds::{self, Kind};
use crate::api::pod::{Image, LocalRef, PullPolicy, Resources};
use crate::api::texts::EtcdVersion;
use crate::api::{bytes, names};

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

/// Where an image comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Pull {
    /// The repository, without a tag.
    pub repository: String,
    /// When to pull.
    pub policy: Option<PullPolicy>,
    /// Secrets for the registry.
    pub secrets: Vec<String>,
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
        let (auth, tls) = (auth.or_empty(), tls.or_empty());
        let asks = auth.enabled.known() == Some(&true);
        Ok(Self {
            replicas: number(&replicas, "spec.replicas")?,
            version: release(&version)?,
            image: pull(image.or_empty()),
            storage: kept_on(storage.or_empty())?,
            options: chosen(options.or_empty())?,
            client_tls: certificates(tls.client.or_empty()),
            peer_tls: certificates(tls.peer.or_empty()),
            root_secret: name_of(&auth.root_secret_ref).filter(|_| asks),
            pods: pods(placement.or_empty(), pod_metadata.or_empty(), &resources)?,
            snapshot_first: upgrade.or_empty().snapshot_first.into_known().unwrap_or_default(),
            repair: given_up(&repair.or_empty())?,
            defragment: defragment.into_known().map(|it| rewritten(&it)),
            backup: backup.into_known().map(Plan::of_cluster),
            restore: restore.into_known().and_then(|it| Source::of(it.from)),
            paused: paused.into_known().unwrap_or_default(),
            deletion: deletion_policy.into_known().unwrap_or(DeletionPolicy::Retain),
        })
    }
}

fn release(version: &Field<EtcdVersion>) -> Result<Release, Unread> {
    let release = version.known().and_then(|it| Release::parse(it.as_str()));
    release.ok_or(Unread { path: "spec.version", wanted: "a release of etcd" })
}

fn kept_on(storage: v1::Storage) -> Result<Storage, Unread> {
    let v1::Storage { size, class_name, medium } = storage;
    let bytes = size.known().and_then(|it| bytes::parse(it.as_str()));
    Ok(Storage {
        bytes: bytes.ok_or(Unread { path: "spec.storage.size", wanted: "a size" })?,
        class: class_name.known().map(ToString::to_string),
        medium: medium.into_known().unwrap_or(Medium::Disk),
    })
}

fn pods(
    placement: v1::Placement,
    metadata: v1::PodMetadata,
    resources: &Field<Resources>,
) -> Result<Pods, Unread> {
    let v1::Placement { node_selector, tolerations, affinity } = placement;
    let v1::PodMetadata { labels, annotations } = metadata;
    let tolerations = as_pods_have_it(&tolerations, "spec.placement.tolerations")?;
    Ok(Pods {
        node_selector: plain(node_selector),
        tolerations: tolerations.unwrap_or_default(),
        affinity: as_pods_have_it(&affinity, "spec.placement.affinity")?,
        labels: plain(labels),
        annotations: plain(annotations),
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

fn rewritten(defragment: &v1::Defragment) -> Defragment {
    let v1::Defragment { schedule, time_zone, reclaim_above } = defragment;
    Defragment {
        schedule: schedule.known().map(ToString::to_string),
        time_zone: time_zone.known().map(ToString::to_string),
        reclaim_above: reclaim_above.known().and_then(|it| bytes::parse(it.as_str())),
    }
}

fn number<T: TryFrom<i32>>(field: &Field<i32>, path: &'static str) -> Result<T, Unread> {
    let number = field.known().and_then(|number| T::try_from(*number).ok());
    number.ok_or(Unread { path, wanted: "a number that is not negative" })
}

fn maybe_number<T: TryFrom<i32>>(
    field: &Field<i32>,
    path: &'static str,
) -> Result<Option<T>, Unread> {
    field.known().map(|_| number(field, path)).transpose()
}

fn pull(image: Image) -> Pull {
    let Image { repository, pull_policy, pull_secrets } = image;
    Pull {
        repository: repository.known().map(ToString::to_string).unwrap_or_default(),
        policy: pull_policy.into_known(),
        secrets: pull_secrets
            .into_known()
            .unwrap_or_default()
            .into_iter()
            .filter_map(|secret| name_of(&Field::Known(secret)))
            .collect(),
    }
}

fn name_of(reference: &Field<LocalRef>) -> Option<String> {
    reference.known().and_then(|it| it.name.known()).map(ToString::to_string)
}

fn plain<T: ToString>(map: Field<BTreeMap<String, T>>) -> BTreeMap<String, String> {
    let entries = map.into_known().unwrap_or_default().into_iter();
    entries.map(|(key, value)| (key, value.to_string())).collect()
}

/// A block in Kubernetes' own types. Field for field it is the same JSON.
fn as_pods_have_it<T: Serialize, Own: DeserializeOwned>(
    field: &Field<T>,
    path: &'static str,
) -> Result<Option<Own>, Unread> {
    let read = |block: &T| serde_json::to_value(block).and_then(serde_json::from_value).ok();
    match field.known() {
        None => Ok(None),
        Some(block) => read(block).map(Some).ok_or(Unread { path, wanted: "as a Pod has it" }),
    }
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
        quota: quota.known().and_then(|it| bytes::parse(it.as_str())),
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

fn certificates(side: TlsSide) -> Certificates {
    let TlsSide { source, issuer_ref, secret_ref } = side;
    match source.into_known().unwrap_or(TlsSource::Managed) {
        TlsSource::Managed => Certificates::Managed,
        TlsSource::CertManager => {
            let issuer = issuer_ref.or_empty();
            Certificates::Issuer {
                name: issuer.name.known().map(ToString::to_string).unwrap_or_default(),
                kind: issuer.kind.into_known().unwrap_or(IssuerKind::Issuer),
            }
        }
        TlsSource::Secret => Certificates::Secret(name_of(&secret_ref).unwrap_or_default()),
        TlsSource::Disabled => Certificates::Disabled,
    }
}

/// The longest name that anything of a cluster may get still fits a label.
const _: () = assert!(names::MOST_NAME + 11 <= 63, "a member's name must fit a label");
