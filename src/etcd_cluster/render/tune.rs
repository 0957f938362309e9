//! The settings of etcd that are not the same for every member of every cluster, and why.
//! Comes in: what the user wants, and what was found where members run. Goes out: flags and variables, and the words for `status.tuning`.
//! May touch: `api`, Kubernetes' own types; pure. One list serves both, so that what is told is what runs.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::NotInThisRelease;
use super::quantity::thousandths;
use crate::api::etcd_cluster::checked::{Compaction, EtcdCluster};
use crate::api::etcd_cluster::v1::Medium;
use crate::api::etcd_cluster::v1::status::Tuned;
use crate::api::etcd_version::Minor;
use crate::api::field::Field;
use crate::etcd_cluster::pace::{self, Pace};
use crate::etcd_cluster::stock::{Stock, name_of, stays};

const MEBI: u64 = 1 << 20;
/// Below this a disk has no room for as much log as etcd keeps by itself.
const SMALL_DISK: u64 = 1024 * MEBI;
/// What the log takes: five pieces of 64 MB and the one that is prepared, and some for snapshots.
const LOG: u64 = 384 * MEBI;
/// The same with two pieces.
const SHORT_LOG: u64 = 192 * MEBI;
const LEAST_QUOTA: u64 = 16 * MEBI;
const MOST_QUOTA: u64 = 8 * 1024 * MEBI;
/// etcd's names for these flags.
pub(crate) const QUOTA: &str = "quota-backend-bytes";
pub(crate) const SNAPSHOT_COUNT: &str = "snapshot-count";
/// What etcd 3.6 does by itself.
const USUAL_SNAPSHOT_COUNT: u32 = 10_000;
/// What etcd does by itself, in milliseconds.
const HEARTBEAT: u128 = 100;
const ELECTION: u128 = 1000;
/// More etcd does not take.
const MOST_ELECTION: u128 = 50_000;

/// The checks for data that differs between members, in the words of each minor version.
const CHECKS: [(Minor, &[(&str, &str)]); 3] = [
    (
        Minor { major: 3, minor: 5 },
        &[
            ("experimental-initial-corrupt-check", "true"),
            ("experimental-compact-hash-check-enabled", "true"),
        ],
    ),
    (Minor { major: 3, minor: 6 }, GATED),
    (Minor { major: 3, minor: 7 }, GATED),
];
const GATED: &[(&str, &str)] =
    &[("feature-gates", "InitialCorruptCheck=true,CompactHashCheck=true")];

/// What was found where members run, and is chosen by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// The pace that suits them.
    pub(crate) pace: Pace,
    /// How large the smallest of their disks is, if there are any. A disk that was asked to grow may not have grown, and never may.
    pub(crate) disk: Option<u64>,
}

impl Found {
    /// How large the disks are on which quotas must fit.
    fn disk(self, spec: &EtcdCluster) -> u64 {
        self.disk.map_or(spec.storage.bytes, |it| it.min(spec.storage.bytes))
    }
}

/// How large the smallest disk is of the members that stay.
pub(crate) fn smallest_disk(stock: &Stock) -> Option<u64> {
    let staying = stock.members.iter().filter(|it| stays(it));
    let claims = staying.filter_map(|it| stock.claim(&name_of(it)));
    let sizes = claims.filter_map(|it| {
        let size = it.status.as_ref()?.capacity.as_ref()?.get("storage")?;
        u64::try_from(thousandths(size)?.div_euclid(1000)).ok()
    });
    sizes.min()
}

/// One setting. Why is only said of what the user did not choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// A flag without its dashes, or a variable.
    pub(super) option: &'static str,
    pub(super) value: String,
    pub(super) why: Option<&'static str>,
}

/// The flag by which a member takes another's certificate without looking up the name in it.
pub(super) const fn trusts_its_authority(minor: Minor) -> &'static str {
    match minor {
        Minor { major: 3, minor: 5 } => "experimental-peer-skip-client-san-verification",
        Minor { .. } => "peer-skip-client-san-verification",
    }
}

/// What the operator chose, for `status.tuning`.
pub(crate) fn tuning(spec: &EtcdCluster, found: Found) -> Vec<Tuned> {
    // A version that nobody has looked at has no members, so there is nothing to tell of it.
    let flags = settings(spec, found).unwrap_or_default();
    let all = flags.into_iter().chain(own_pace(spec, found.pace)).chain(variables(spec));
    let chosen = all.filter_map(|Setting { option, value, why }| {
        Some(Tuned {
            option: Field::Known(option.into()),
            value: Field::Known(value.into()),
            why: Field::Known(why?.into()),
        })
    });
    chosen.collect()
}

/// The flags.
pub(super) fn settings(spec: &EtcdCluster, found: Found) -> Result<Vec<Setting>, NotInThisRelease> {
    let checks = checks(spec.version.minor())?;
    let size = size(spec, found.disk(spec)).into_iter();
    Ok(size.chain(history(spec)).chain(beat(spec, found.pace)).chain(checks).collect())
}

fn size(spec: &EtcdCluster, disk: u64) -> Vec<Setting> {
    let small = disk < SMALL_DISK;
    let quota = match spec.options.quota {
        Some(bytes) => asked(QUOTA, &bytes),
        None => chosen(
            QUOTA,
            &quota_on(disk),
            "half of the disk without its log, and 8Gi at most: when the file is rewritten, or comes \
             anew from the leader, it is there twice",
        ),
    };
    let short = small.then(|| {
        let why = "a small disk: with the usual five the log alone would fill it";
        chosen("max-wals", &2, why)
    });
    [Some(quota), short].into_iter().flatten().collect()
}

fn quota_on(disk: u64) -> u64 {
    let log = if disk < SMALL_DISK { SHORT_LOG } else { LOG };
    let half = disk.saturating_sub(log).div_euclid(2).clamp(LEAST_QUOTA, MOST_QUOTA);
    half.div_euclid(MEBI).saturating_mul(MEBI)
}

fn history(spec: &EtcdCluster) -> Vec<Setting> {
    let (mode, retention) = ("auto-compaction-mode", "auto-compaction-retention");
    let mut all = match spec.options.compaction {
        Some(Compaction::Age(age)) => {
            vec![asked(mode, "periodic"), asked(retention, &format!("{}s", age.as_secs()))]
        }
        Some(Compaction::Count(count)) => vec![asked(mode, "revision"), asked(retention, &count)],
        None => {
            let why = "without it every change is kept for ever, until the quota is reached and \
                       nothing can be written; an hour lets clients come back that were cut off";
            vec![asked(mode, "periodic"), chosen(retention, "1h", why)]
        }
    };
    all.push(match spec.options.snapshot_count {
        Some(count) => asked(SNAPSHOT_COUNT, &count),
        None => chosen(
            SNAPSHOT_COUNT,
            &USUAL_SNAPSHOT_COUNT,
            "as etcd 3.6 does by itself: the log since the last snapshot is kept in memory, and read \
             again at each start",
        ),
    });
    all
}

/// After how many entries a member makes a snapshot.
pub(crate) fn snapshot_count(spec: &EtcdCluster) -> u32 {
    spec.options.snapshot_count.unwrap_or(USUAL_SNAPSHOT_COUNT)
}

/// etcd does not start if the election is not five heartbeats away, so one follows the other.
fn beat(spec: &EtcdCluster, pace: Pace) -> Vec<Setting> {
    let (heartbeat, election) = (pace::HEARTBEAT, pace::ELECTION);
    let given = (spec.options.heartbeat, spec.options.election);
    let [heartbeat, election] = match given {
        // A flag that says what etcd does anyway would start members anew that were made without it.
        (None, None) if pace.is_own() => return Vec::new(),
        (None, None) => {
            let why = "messages between members take longer than the next shorter interval: with it the \
                       leader would seem silent";
            let wait = "ten times the heartbeat";
            [chosen(heartbeat, &pace.heartbeat(), why), chosen(election, &pace.election(), wait)]
        }
        (Some(beat), Some(wait)) => {
            [asked(heartbeat, &millis(beat)), asked(election, &millis(wait))]
        }
        (Some(beat), None) => {
            let wait = millis(beat).saturating_mul(10).clamp(ELECTION, MOST_ELECTION);
            let why = "ten times the heartbeat, and a second at least";
            [asked(heartbeat, &millis(beat)), chosen(election, &wait, why)]
        }
        (None, Some(wait)) => {
            let beat = millis(wait).div_euclid(10).clamp(1, HEARTBEAT);
            let why = "a tenth of the election timeout, and 100 ms at most";
            [chosen(heartbeat, &beat, why), asked(election, &millis(wait))]
        }
    };
    vec![heartbeat, election]
}

/// Whether a user has asked for a pace.
pub(crate) const fn is_pace_given(spec: &EtcdCluster) -> bool {
    spec.options.heartbeat.is_some() || spec.options.election.is_some()
}

/// What etcd does by itself, where that is a choice.
fn own_pace(spec: &EtcdCluster, pace: Pace) -> Vec<Setting> {
    if is_pace_given(spec) || !pace.is_own() {
        return Vec::new();
    }
    let why =
        "etcd's own: members do not take longer to answer each other, as far as they have measured";
    let wait = "etcd's own: ten times the heartbeat";
    vec![
        chosen(pace::HEARTBEAT, &pace.heartbeat(), why),
        chosen(pace::ELECTION, &pace.election(), wait),
    ]
}

fn millis(time: Duration) -> u128 {
    time.as_millis()
}

fn checks(minor: Minor) -> Result<Vec<Setting>, NotInThisRelease> {
    let found = CHECKS.iter().find(|(of, _)| *of == minor);
    let (_, flags) = found.ok_or(NotInThisRelease::Version(minor))?;
    let why = "a member whose data differs from the others' is found, and does not serve it";
    Ok(flags.iter().map(|(option, value)| chosen(option, *value, why)).collect())
}

/// The variables of Go, which by itself counts the node's processors and memory.
pub(super) fn variables(spec: &EtcdCluster) -> Vec<Setting> {
    let limits = spec.pods.resources.limits.as_ref();
    let limit = |of: &str| limits.and_then(|limits| limits.get(of));
    let processors = limit("cpu").and_then(processors).map(|count| {
        let why =
            "as many as the processor limit lets run: more would be throttled, and miss heartbeats";
        chosen("GOMAXPROCS", &count, why)
    });
    let memory = limit("memory").and_then(|limit| heap(spec, limit)).map(|bytes| {
        let why =
            "nine tenths of the memory limit: memory is collected before the container is killed";
        chosen("GOMEMLIMIT", &bytes, why)
    });
    processors.into_iter().chain(memory).collect()
}

fn processors(limit: &Quantity) -> Option<u128> {
    Some(thousandths(limit)?.div_ceil(1000).max(1))
}

fn heap(spec: &EtcdCluster, limit: &Quantity) -> Option<u128> {
    let limit = thousandths(limit)?.div_euclid(1000);
    // Data in memory is counted to the container, and is not Go's to collect.
    let data = match spec.storage.medium {
        Medium::Disk => 0,
        Medium::Memory => u128::from(spec.storage.bytes).min(limit.div_euclid(2)),
    };
    let heap = limit.saturating_sub(data).checked_mul(9)?.div_euclid(10);
    (heap > 0).then_some(heap)
}

fn asked(option: &'static str, value: &(impl ToString + ?Sized)) -> Setting {
    Setting { option, value: value.to_string(), why: None }
}

fn chosen(option: &'static str, value: &(impl ToString + ?Sized), why: &'static str) -> Setting {
    Setting { option, value: value.to_string(), why: Some(why) }
}
