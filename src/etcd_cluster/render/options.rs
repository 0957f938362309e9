//! The etcd options that depend on the spec or on measurements, each with its reason. One list
//! gives the flags and `status.tuning`, so that what is reported is what runs.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::RenderError;
use super::quantity::milli_units;
use crate::api::etcd_cluster::v1::Medium;
use crate::api::etcd_cluster::v1::status::TuningEntry;
use crate::api::etcd_cluster::validated::{Compaction, EtcdCluster};
use crate::api::etcd_version::Minor;
use crate::api::field::Field;
use crate::etcd_cluster::heartbeat::{self, HeartbeatProfile};
use crate::etcd_cluster::observe::objects::{ClusterObjects, is_remaining, name_of};

const MEBI: u64 = 1 << 20;
/// A smaller volume has no space for as many WAL files as etcd keeps by default.
const SMALL_DISK: u64 = 1024 * MEBI;
/// Space for the WAL: five files of 64 MB and the preallocated one, and some for snapshots.
const WAL_RESERVE: u64 = 384 * MEBI;
/// The same with two WAL files.
const SMALL_WAL_RESERVE: u64 = 192 * MEBI;
const MIN_QUOTA: u64 = 16 * MEBI;
const MAX_QUOTA: u64 = 8 * 1024 * MEBI;
/// Names of etcd flags.
pub(crate) const QUOTA_FLAG: &str = "quota-backend-bytes";
pub(crate) const SNAPSHOT_COUNT_FLAG: &str = "snapshot-count";
/// The default of etcd 3.6.
const DEFAULT_SNAPSHOT_COUNT: u32 = 10_000;
/// The defaults of etcd, in milliseconds.
const DEFAULT_HEARTBEAT_MS: u128 = 100;
const DEFAULT_ELECTION_MS: u128 = 1000;
/// etcd's upper bound.
const MAX_ELECTION_MS: u128 = 50_000;

/// The flags that enable the corruption checks, by minor version.
const CORRUPTION_CHECKS: [(Minor, &[(&str, &str)]); 3] = [
    (
        Minor { major: 3, minor: 5 },
        &[
            ("experimental-initial-corrupt-check", "true"),
            ("experimental-compact-hash-check-enabled", "true"),
        ],
    ),
    (Minor { major: 3, minor: 6 }, FEATURE_GATES),
    (Minor { major: 3, minor: 7 }, FEATURE_GATES),
];
const FEATURE_GATES: &[(&str, &str)] =
    &[("feature-gates", "InitialCorruptCheck=true,CompactHashCheck=true")];

/// What was measured where members run; options are derived from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measured {
    /// The heartbeat profile that fits the peer round-trip times.
    pub(crate) heartbeat: HeartbeatProfile,
    /// The capacity of the smallest PVC, if there is one. A PVC whose request was increased may not
    /// have been resized, and may never be.
    pub(crate) smallest_volume: Option<u64>,
}

impl Measured {
    /// The size of the volumes that must hold the quota.
    fn volume_size(self, spec: &EtcdCluster) -> u64 {
        self.smallest_volume.map_or(spec.storage.bytes, |smallest| smallest.min(spec.storage.bytes))
    }
}

/// The capacity of the smallest PVC of the remaining members.
pub(crate) fn smallest_volume(objects: &ClusterObjects) -> Option<u64> {
    let remaining = objects.members.iter().filter(|member| is_remaining(member));
    let claims = remaining.filter_map(|member| objects.pvc(&name_of(member)));
    let sizes = claims.filter_map(|claim| {
        let size = claim.status.as_ref()?.capacity.as_ref()?.get("storage")?;
        u64::try_from(milli_units(size)?.div_euclid(1000)).ok()
    });
    sizes.min()
}

/// One option. The reason is set only if the operator derived the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flag {
    /// A flag without its dashes, or an environment variable.
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) reason: Option<&'static str>,
}

/// The flag that makes a member accept a peer certificate without resolving the names in it.
pub(super) const fn skip_san_flag(minor: Minor) -> &'static str {
    match minor {
        Minor { major: 3, minor: 5 } => "experimental-peer-skip-client-san-verification",
        Minor { .. } => "peer-skip-client-san-verification",
    }
}

/// The options that the operator derived, for `status.tuning`.
pub(crate) fn tuning_status(spec: &EtcdCluster, measured: Measured) -> Vec<TuningEntry> {
    // An unsupported version has no members, so there is nothing to report.
    let flags = option_flags(spec, measured).unwrap_or_default();
    let all =
        flags.into_iter().chain(default_heartbeat(spec, measured.heartbeat)).chain(go_env(spec));
    let derived = all.filter_map(|Flag { name, value, reason }| {
        Some(TuningEntry {
            option: Field::Known(name.into()),
            value: Field::Known(value.into()),
            reason: Field::Known(reason?.into()),
        })
    });
    derived.collect()
}

/// All option flags of etcd.
pub(super) fn option_flags(
    spec: &EtcdCluster,
    measured: Measured,
) -> Result<Vec<Flag>, RenderError> {
    let checks = corruption_check_flags(spec.version.minor())?;
    let size = quota_flags(spec, measured.volume_size(spec)).into_iter();
    Ok(size
        .chain(compaction_flags(spec))
        .chain(heartbeat_flags(spec, measured.heartbeat))
        .chain(checks)
        .collect())
}

fn quota_flags(spec: &EtcdCluster, disk: u64) -> Vec<Flag> {
    let small = disk < SMALL_DISK;
    let quota = match spec.options.quota {
        Some(bytes) => from_spec(QUOTA_FLAG, &bytes),
        None => derived(
            QUOTA_FLAG,
            &derived_quota(disk),
            "half of the volume without its WAL, at most 8Gi: the database file exists twice while it is \
             defragmented or received as a snapshot from the leader",
        ),
    };
    let short = small.then(|| {
        let reason = "small volume: the default of five WAL files alone would fill it";
        derived("max-wals", &2, reason)
    });
    [Some(quota), short].into_iter().flatten().collect()
}

fn derived_quota(disk: u64) -> u64 {
    let log = if disk < SMALL_DISK { SMALL_WAL_RESERVE } else { WAL_RESERVE };
    let half = disk.saturating_sub(log).div_euclid(2).clamp(MIN_QUOTA, MAX_QUOTA);
    half.div_euclid(MEBI).saturating_mul(MEBI)
}

fn compaction_flags(spec: &EtcdCluster) -> Vec<Flag> {
    let (mode, retention) = ("auto-compaction-mode", "auto-compaction-retention");
    let mut all = match spec.options.compaction {
        Some(Compaction::Age(age)) => {
            vec![from_spec(mode, "periodic"), from_spec(retention, &format!("{}s", age.as_secs()))]
        }
        Some(Compaction::Count(count)) => {
            vec![from_spec(mode, "revision"), from_spec(retention, &count)]
        }
        None => {
            let reason = "without compaction every revision is kept until the quota is reached and writes are \
                       rejected; one hour lets disconnected watchers resume";
            vec![from_spec(mode, "periodic"), derived(retention, "1h", reason)]
        }
    };
    all.push(match spec.options.snapshot_count {
        Some(count) => from_spec(SNAPSHOT_COUNT_FLAG, &count),
        None => derived(
            SNAPSHOT_COUNT_FLAG,
            &DEFAULT_SNAPSHOT_COUNT,
            "default of etcd 3.6: raft entries since the last snapshot are kept in memory and replayed \
             at each start",
        ),
    });
    all
}

/// The number of raft entries between snapshots.
pub(crate) fn snapshot_count(spec: &EtcdCluster) -> u32 {
    spec.options.snapshot_count.unwrap_or(DEFAULT_SNAPSHOT_COUNT)
}

/// etcd does not start if the election timeout is below five heartbeats, so one is derived from the
/// other.
fn heartbeat_flags(spec: &EtcdCluster, pace: HeartbeatProfile) -> Vec<Flag> {
    let (heartbeat, election) = (heartbeat::HEARTBEAT_FLAG, heartbeat::ELECTION_FLAG);
    let set = (spec.options.heartbeat, spec.options.election);
    let [heartbeat, election] = match set {
        // A flag with etcd's default would recreate members that were created without it.
        (None, None) if pace.is_default() => return Vec::new(),
        (None, None) => {
            let reason = "measured peer round-trip times exceed the next shorter interval: followers would miss \
                       heartbeats with it";
            let wait = "ten times the heartbeat";
            [
                derived(heartbeat, &pace.heartbeat(), reason),
                derived(election, &pace.election(), wait),
            ]
        }
        (Some(beat), Some(wait)) => {
            [from_spec(heartbeat, &millis(beat)), from_spec(election, &millis(wait))]
        }
        (Some(beat), None) => {
            let wait = millis(beat).saturating_mul(10).clamp(DEFAULT_ELECTION_MS, MAX_ELECTION_MS);
            let reason = "ten times the heartbeat, at least 1s";
            [from_spec(heartbeat, &millis(beat)), derived(election, &wait, reason)]
        }
        (None, Some(wait)) => {
            let beat = millis(wait).div_euclid(10).clamp(1, DEFAULT_HEARTBEAT_MS);
            let reason = "a tenth of the election timeout, at most 100ms";
            [derived(heartbeat, &beat, reason), from_spec(election, &millis(wait))]
        }
    };
    vec![heartbeat, election]
}

/// Whether the spec sets the heartbeat or the election timeout.
pub(crate) const fn heartbeat_is_set(spec: &EtcdCluster) -> bool {
    spec.options.heartbeat.is_some() || spec.options.election.is_some()
}

/// etcd's defaults, reported where they fit the measurements.
fn default_heartbeat(spec: &EtcdCluster, pace: HeartbeatProfile) -> Vec<Flag> {
    if heartbeat_is_set(spec) || !pace.is_default() {
        return Vec::new();
    }
    let reason = "etcd default: measured peer round-trip times fit it";
    let wait = "etcd default: ten times the heartbeat";
    vec![
        derived(heartbeat::HEARTBEAT_FLAG, &pace.heartbeat(), reason),
        derived(heartbeat::ELECTION_FLAG, &pace.election(), wait),
    ]
}

fn millis(time: Duration) -> u128 {
    time.as_millis()
}

fn corruption_check_flags(minor: Minor) -> Result<Vec<Flag>, RenderError> {
    let entry = CORRUPTION_CHECKS.iter().find(|(known, _)| *known == minor);
    let (_, flags) = entry.ok_or(RenderError::UnsupportedVersion(minor))?;
    let reason = "detects members whose data differs and stops them from serving it";
    Ok(flags.iter().map(|(name, value)| derived(name, *value, reason)).collect())
}

/// The environment of the Go runtime, which by default assumes the node's CPUs and memory.
pub(super) fn go_env(spec: &EtcdCluster) -> Vec<Flag> {
    let limits = spec.pods.resources.limits.as_ref();
    let limit = |resource: &str| limits.and_then(|limits| limits.get(resource));
    let processors = limit("cpu").and_then(gomaxprocs).map(|count| {
        let reason = "CPU limit rounded up: more threads would be throttled and miss heartbeats";
        derived("GOMAXPROCS", &count, reason)
    });
    let memory = limit("memory").and_then(|limit| gomemlimit(spec, limit)).map(|bytes| {
        let reason =
            "90% of the memory limit: garbage is collected before the container is OOM killed";
        derived("GOMEMLIMIT", &bytes, reason)
    });
    processors.into_iter().chain(memory).collect()
}

fn gomaxprocs(limit: &Quantity) -> Option<u128> {
    Some(milli_units(limit)?.div_ceil(1000).max(1))
}

fn gomemlimit(spec: &EtcdCluster, limit: &Quantity) -> Option<u128> {
    let limit = milli_units(limit)?.div_euclid(1000);
    // Data in memory counts towards the container's limit, and Go cannot collect it.
    let data = match spec.storage.medium {
        Medium::Disk => 0,
        Medium::Memory => u128::from(spec.storage.bytes).min(limit.div_euclid(2)),
    };
    let heap = limit.saturating_sub(data).checked_mul(9)?.div_euclid(10);
    (heap > 0).then_some(heap)
}

fn from_spec(name: &'static str, value: &(impl ToString + ?Sized)) -> Flag {
    Flag { name, value: value.to_string(), reason: None }
}

fn derived(name: &'static str, value: &(impl ToString + ?Sized), reason: &'static str) -> Flag {
    Flag { name, value: value.to_string(), reason: Some(reason) }
}
