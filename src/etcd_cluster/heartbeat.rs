//! How often the leader is heard, from how long messages between members take.
//! Comes in: what members measured, their pods, and the pace that they were told. Goes out: the pace that they should keep.
//! May touch: `api`, Kubernetes' own types; pure. A pace is changed by starting every member anew, so it is changed only where the one that is
//! kept is surely wrong, and by one rung at a time: the leader of the faster pace must not seem silent to those who
//! already keep the slower one, nor the other way round.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;

use super::observe::objects::flag;
use crate::api::etcd_cluster::v1::status::EtcdClusterStatus;

/// etcd's own name for what members measure of each other.
const RTT_METRIC: &str = "etcd_network_peer_round_trip_time_seconds_bucket";
/// etcd's name for the flag, by which it is told in the status, too.
pub(crate) const HEARTBEAT_FLAG: &str = "heartbeat-interval";
/// etcd's name for the other one.
pub(crate) const ELECTION_FLAG: &str = "election-timeout";
/// With fewer measurements between two members nothing is known of them. A member measures each other one four times a minute.
const MIN_SAMPLES: u64 = 8;
/// Of a hundred messages so many are at most as slow as is said, and so many at least.
const PERCENTILE: u64 = 90;
/// A pace is not too slow before messages are so many times faster than the next one.
const SPEEDUP_FACTOR: u64 = 3;

/// The paces that there are, in milliseconds: each heartbeat is far below the election timeout of the pace before. The
/// first one is etcd's own.
const PROFILES: [(u32, u32); 4] = [(100, 1000), (250, 2500), (500, 5000), (1000, 10_000)];

/// A pace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HeartbeatProfile(usize);

/// Between which two times messages between two members take, there and back, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoundTrip {
    pub(crate) at_least: u64,
    pub(crate) at_most: u64,
}

impl RoundTrip {
    /// What holds for both.
    fn max(self, other: Self) -> Self {
        Self {
            at_least: self.at_least.max(other.at_least),
            at_most: self.at_most.max(other.at_most),
        }
    }
}

/// What one member has counted of each other one: how many messages took at most so many microseconds.
pub(crate) type RttHistogram = BTreeMap<String, BTreeMap<u64, u64>>;

impl HeartbeatProfile {
    /// The one that etcd keeps by itself.
    pub(crate) const ETCD_DEFAULT: Self = Self(0);

    /// Every pace.
    #[cfg(test)]
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..PROFILES.len()).map(Self)
    }

    /// How often the leader is heard, in milliseconds.
    pub(crate) fn heartbeat(self) -> u32 {
        self.timing().0
    }

    /// How long it may be silent.
    pub(crate) fn election(self) -> u32 {
        self.timing().1
    }

    /// Whether etcd keeps it by itself.
    pub(crate) const fn is_default(self) -> bool {
        self.0 == Self::ETCD_DEFAULT.0
    }

    fn timing(self) -> (u32, u32) {
        PROFILES.get(self.0).copied().unwrap_or((100, 1000))
    }

    /// The pace that members should keep from now on. Nobody is led to another one before all keep the one that is told: what was
    /// measured since would lead them over two rungs at once.
    pub(crate) fn desired(
        status: Option<&EtcdClusterStatus>,
        pods: &[Pod],
        measured: Option<RoundTrip>,
    ) -> Self {
        let recorded = status.map_or(Self::ETCD_DEFAULT, Self::recorded);
        if pods.iter().all(|it| recorded.is_used_by(it)) {
            recorded.next(measured)
        } else {
            recorded
        }
    }

    /// Whether the member in a pod keeps it. Of its own pace etcd is not told.
    fn is_used_by(self, pod: &Pod) -> bool {
        let position = |it: &str| it == self.heartbeat().to_string();
        flag(pod, HEARTBEAT_FLAG).map_or_else(|| self.is_default(), position)
    }

    /// The pace that the status tells of. It is written down there, and nowhere else.
    pub(crate) fn recorded(status: &EtcdClusterStatus) -> Self {
        let tuning = status.tuning.known().into_iter().flatten();
        let mut values =
            tuning.filter(|it| it.option.known().is_some_and(|it| it.as_str() == HEARTBEAT_FLAG));
        let value = values.find_map(|it| it.value.known()?.as_str().parse::<u32>().ok());
        let position = |heartbeat| PROFILES.iter().position(|(it, _)| *it == heartbeat);
        value.and_then(position).map_or(Self::ETCD_DEFAULT, Self)
    }

    /// The pace that should be kept from now on, where messages take so long.
    fn next(self, measured: Option<RoundTrip>) -> Self {
        let Some(RoundTrip { at_least, at_most }) = measured else { return self };
        let micros = |it: Self| u64::from(it.heartbeat()).saturating_mul(1000);
        let slower = Self(self.0.saturating_add(1));
        if at_least >= micros(self) && slower.0 < PROFILES.len() {
            return slower;
        }
        let faster = Self(self.0.saturating_sub(1));
        if at_most.saturating_mul(SPEEDUP_FACTOR) <= micros(faster) { faster } else { self }
    }
}

/// What a member's metrics say of those who are its peers now. It goes on to tell of who has left, for as long as it runs.
pub(crate) fn parse_histogram(metrics: &str, peers: &BTreeSet<String>) -> RttHistogram {
    let mut all = RttHistogram::new();
    for line in metrics.lines() {
        let Some((peer, bound, count)) = bucket(line).filter(|it| peers.contains(&it.0)) else {
            continue;
        };
        all.entry(peer).or_default().insert(bound, count);
    }
    all
}

/// One line: about whom, the longest time that it counts, and how many. What is beyond all bounds has none.
fn bucket(line: &str) -> Option<(String, u64, u64)> {
    let (labels, value) = line.strip_prefix(RTT_METRIC)?.strip_prefix('{')?.split_once('}')?;
    let label = |name: &str| {
        let pair = labels.split(',').filter_map(|it| it.split_once('='));
        pair.into_iter().find(|(key, _)| *key == name).map(|(_, it)| it.trim_matches('"'))
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

/// A number that was written as one with a point, and has nothing behind it.
fn whole(number: f64) -> Option<u64> {
    format!("{number:.0}").parse().ok()
}

/// What was counted since an earlier look, of the pairs of members that are furthest apart. Nothing, if one of the pairs was not
/// measured often enough: it might be that one.
pub(crate) fn round_trip<'a>(
    samples: impl IntoIterator<Item = (&'a RttHistogram, &'a RttHistogram)>,
) -> Option<RoundTrip> {
    let mut worst: Option<RoundTrip> = None;
    for (before, now) in samples {
        for (peer, counts) in now {
            let earlier = before.get(peer)?;
            let since = |(bound, count): (&u64, &u64)| {
                (*bound, count.saturating_sub(earlier.get(bound).copied().unwrap_or(0)))
            };
            let pair = pair_round_trip(&counts.iter().map(since).collect::<Vec<_>>())?;
            worst = Some(worst.map_or(pair, |it| it.max(pair)));
        }
    }
    worst
}

/// Where most of them are: a few that were slow, or fast, are no matter. Counts go up with their bounds, and the last one is of all.
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
