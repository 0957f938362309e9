//! Derives heartbeat interval and election timeout from the round-trip time between members.
//!
//! A change restarts every member. So it is made only if the profile in use is certainly wrong, and
//! by one profile at a time: during the rolling update a leader with one profile must not seem dead
//! to members with the next one.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;

use super::observe::objects::flag;
use crate::api::etcd_cluster::v1::status::EtcdClusterStatus;

/// etcd's histogram of the round-trip time between members.
const RTT_METRIC: &str = "etcd_network_peer_round_trip_time_seconds_bucket";
/// etcd's flag, which is also the name in `status.tuning`.
pub(crate) const HEARTBEAT_FLAG: &str = "heartbeat-interval";
/// etcd's flag of the election timeout.
pub(crate) const ELECTION_FLAG: &str = "election-timeout";
/// With fewer samples the round-trip time of two members is unknown. A member takes four a minute.
const MIN_SAMPLES: u64 = 8;
/// The percentile of samples that decides.
const PERCENTILE: u64 = 90;
/// The next faster profile needs round trips that are this many times shorter than its heartbeat.
const SPEEDUP_FACTOR: u64 = 3;

/// The profiles, in milliseconds: each heartbeat is far below the election timeout of the previous
/// profile. The first one is etcd's default.
const PROFILES: [(u32, u32); 4] = [(100, 1000), (250, 2500), (500, 5000), (1000, 10_000)];

/// A pair of heartbeat interval and election timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HeartbeatProfile(usize);

/// Lower and upper bound of the round-trip time between two members, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoundTrip {
    pub(crate) at_least: u64,
    pub(crate) at_most: u64,
}

impl RoundTrip {
    /// The larger bounds of both.
    fn max(self, other: Self) -> Self {
        Self {
            at_least: self.at_least.max(other.at_least),
            at_most: self.at_most.max(other.at_most),
        }
    }
}

/// The histogram of each peer, as one member counts it: round trips up to this many microseconds.
pub(crate) type RttHistogram = BTreeMap<String, BTreeMap<u64, u64>>;

impl HeartbeatProfile {
    /// etcd's default.
    pub(crate) const ETCD_DEFAULT: Self = Self(0);

    /// All profiles.
    #[cfg(test)]
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..PROFILES.len()).map(Self)
    }

    /// The heartbeat interval in milliseconds.
    pub(crate) fn heartbeat(self) -> u32 {
        self.timing().0
    }

    /// The election timeout in milliseconds.
    pub(crate) fn election(self) -> u32 {
        self.timing().1
    }

    /// Whether this is etcd's default.
    pub(crate) const fn is_default(self) -> bool {
        self.0 == Self::ETCD_DEFAULT.0
    }

    fn timing(self) -> (u32, u32) {
        PROFILES.get(self.0).copied().unwrap_or((100, 1000))
    }

    /// The profile that members should use. It changes only once all members use the recorded one:
    /// otherwise samples taken during the update would skip a profile.
    pub(crate) fn desired(
        status: Option<&EtcdClusterStatus>,
        pods: &[Pod],
        measured: Option<RoundTrip>,
    ) -> Self {
        let recorded = status.map_or(Self::ETCD_DEFAULT, Self::recorded);
        if pods.iter().all(|pod| recorded.is_used_by(pod)) {
            recorded.next(measured)
        } else {
            recorded
        }
    }

    /// Whether the member in a pod uses this profile. The default is not passed as a flag.
    fn is_used_by(self, pod: &Pod) -> bool {
        let is_same = |value: &str| value == self.heartbeat().to_string();
        flag(pod, HEARTBEAT_FLAG).map_or_else(|| self.is_default(), is_same)
    }

    /// The profile that the status records; it is recorded nowhere else.
    pub(crate) fn recorded(status: &EtcdClusterStatus) -> Self {
        let tuning = status.tuning.known().into_iter().flatten();
        let is_heartbeat = |option: &str| option == HEARTBEAT_FLAG;
        let mut values = tuning.filter(|entry| {
            entry.option.known().is_some_and(|option| is_heartbeat(option.as_str()))
        });
        let value = values.find_map(|entry| entry.value.known()?.as_str().parse::<u32>().ok());
        let position = |heartbeat| PROFILES.iter().position(|(known, _)| *known == heartbeat);
        value.and_then(position).map_or(Self::ETCD_DEFAULT, Self)
    }

    /// The next profile for this round-trip time.
    fn next(self, measured: Option<RoundTrip>) -> Self {
        let Some(RoundTrip { at_least, at_most }) = measured else { return self };
        let micros = |profile: Self| u64::from(profile.heartbeat()).saturating_mul(1000);
        let slower = Self(self.0.saturating_add(1));
        if at_least >= micros(self) && slower.0 < PROFILES.len() {
            return slower;
        }
        let faster = Self(self.0.saturating_sub(1));
        if at_most.saturating_mul(SPEEDUP_FACTOR) <= micros(faster) { faster } else { self }
    }
}

/// The histograms of a member's current peers. etcd keeps those of removed members until it
/// restarts.
pub(crate) fn parse_histogram(metrics: &str, peers: &BTreeSet<String>) -> RttHistogram {
    let mut all = RttHistogram::new();
    for line in metrics.lines() {
        let bucket = bucket(line).filter(|(peer, _, _)| peers.contains(peer));
        let Some((peer, bound, count)) = bucket else {
            continue;
        };
        all.entry(peer).or_default().insert(bound, count);
    }
    all
}

/// One line of the histogram: peer, upper bound and count. The last bucket has no bound.
fn bucket(line: &str) -> Option<(String, u64, u64)> {
    let (labels, value) = line.strip_prefix(RTT_METRIC)?.strip_prefix('{')?.split_once('}')?;
    let label = |name: &str| {
        let mut pairs = labels.split(',').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value.trim_matches('"'))
    };
    let bound = match label("le")? {
        "+Inf" => u64::MAX,
        seconds => micros(seconds)?,
    };
    let count: f64 = value.trim().parse().ok()?;
    Some((label("To")?.to_owned(), bound, whole(count)?))
}

fn micros(seconds: &str) -> Option<u64> {
    whole((seconds.parse::<f64>().ok()? * 1e6).round())
}

/// An integer that is written as a float.
fn whole(number: f64) -> Option<u64> {
    format!("{number:.0}").parse().ok()
}

/// The round-trip time of the slowest pair, from samples between two observations. `None` if a pair
/// has too few of them: it might be the slowest.
pub(crate) fn round_trip<'a>(
    samples: impl IntoIterator<Item = (&'a RttHistogram, &'a RttHistogram)>,
) -> Option<RoundTrip> {
    let mut worst: Option<RoundTrip> = None;
    for (earlier, now) in samples {
        for (peer, counts) in now {
            let earlier = earlier.get(peer)?;
            let since = |(bound, count): (&u64, &u64)| {
                (*bound, count.saturating_sub(earlier.get(bound).copied().unwrap_or(0)))
            };
            let pair = pair_round_trip(&counts.iter().map(since).collect::<Vec<_>>())?;
            worst = Some(worst.map_or(pair, |worst| worst.max(pair)));
        }
    }
    worst
}

/// The bounds of the percentile; outliers do not count. Counts are cumulative, and the last one is
/// the total.
fn pair_round_trip(counts: &[(u64, u64)]) -> Option<RoundTrip> {
    let (_, all) = counts.last()?;
    if *all < MIN_SAMPLES {
        return None;
    }
    let is_percentile = |count: u64| count.saturating_mul(100) >= all.saturating_mul(PERCENTILE);
    let (at_most, _) = counts.iter().find(|(_, faster)| is_percentile(*faster))?;
    let mut below = counts.iter().rev();
    let at_least = below.find(|(_, faster)| is_percentile(all.saturating_sub(*faster)));
    Some(RoundTrip { at_least: at_least.map_or(0, |(bound, _)| *bound), at_most: *at_most })
}

#[cfg(test)]
mod tests;
