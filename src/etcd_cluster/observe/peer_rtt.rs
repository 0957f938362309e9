//! Observes the round-trip time between members from their own metrics. Histograms count from the
//! start of a member, so two reads are compared: what was hours ago does not matter.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};

use crate::clients::etcd::metrics::metrics;
use crate::etcd_cluster::heartbeat::{RoundTrip, RttHistogram, parse_histogram, round_trip};
use crate::etcd_cluster::observe::etcd::QuorumView;
use crate::etcd_cluster::observe::member_endpoint;
use crate::etcd_cluster::observe::objects::ClusterObjects;
use crate::etcd_cluster::state::build::uid;

/// Between two measurements. Each pair of members exchanges a dozen probes meanwhile.
const RTT_INTERVAL: Duration = Duration::from_mins(3);

/// The last measurement of a cluster.
struct Measurement {
    at: Timestamp,
    /// The histogram of each pod, by its uid.
    histograms: BTreeMap<String, RttHistogram>,
    measured: Option<RoundTrip>,
}

/// The last measurement, if it is recent.
enum Cached {
    /// The measured round trip, if there is one.
    Recent(Option<RoundTrip>),
    /// The next measurement is due.
    Due,
}

/// Observes the peer RTT. Caches the last measurement, by the uid of the EtcdCluster.
#[derive(Default)]
pub(crate) struct PeerRttObserver {
    cache: Mutex<BTreeMap<String, Measurement>>,
}

impl PeerRttObserver {
    /// The peer RTT, if it is known. Reads the metrics of the members when a measurement is due.
    pub(crate) async fn observe(
        &self,
        objects: &ClusterObjects,
        quorum: &QuorumView,
        now: Timestamp,
    ) -> Option<RoundTrip> {
        let cluster = uid(&objects.cluster);
        if let Cached::Recent(measured) = self.cached(&cluster, now) {
            return measured;
        }
        let listed: BTreeSet<String> =
            quorum.members.iter().map(|member| format!("{:x}", member.id)).collect();
        let histograms = read_histograms(objects, &listed, now).await;
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let last = cache.get(&cluster);
        let pairs = last.map(|last| matched(&last.histograms, &histograms)).unwrap_or_default();
        // A member that was missing part of the time may be the one that is furthest away.
        let has_all_peers = |peers: &RttHistogram| peers.len().saturating_add(1) == listed.len();
        let is_complete = pairs.len() == histograms.len()
            && histograms.len() == listed.len()
            && histograms.values().all(has_all_peers);
        let measured = is_complete.then(|| round_trip(pairs)).flatten();
        cache.insert(cluster, Measurement { at: now, histograms, measured });
        measured
    }

    /// Evicts a deleted cluster.
    pub(crate) fn evict(&self, uid: &str) {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }

    /// The last measurement, unless the next one is due.
    fn cached(&self, uid: &str, now: Timestamp) -> Cached {
        let window = SignedDuration::try_from(RTT_INTERVAL).unwrap_or(SignedDuration::ZERO);
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let last = cache.get(uid).filter(|last| now.duration_since(last.at) < window);
        last.map_or(Cached::Due, |last| Cached::Recent(last.measured))
    }
}

fn matched<'a>(
    before: &'a BTreeMap<String, RttHistogram>,
    now: &'a BTreeMap<String, RttHistogram>,
) -> Vec<(&'a RttHistogram, &'a RttHistogram)> {
    now.iter().filter_map(|(pod, histogram)| Some((before.get(pod)?, histogram))).collect()
}

/// Reads the metrics of every member whose pod has an address. Unreachable members are left out.
async fn read_histograms(
    objects: &ClusterObjects,
    listed: &BTreeSet<String>,
    now: Timestamp,
) -> BTreeMap<String, RttHistogram> {
    let address = |pod| member_endpoint(objects, pod, now).map(|(_, endpoint)| endpoint.address);
    let pods = objects.pods.iter().filter_map(|pod| Some((uid(pod), address(pod)?)));
    let reads = join_all(pods.map(async |(pod, address)| (pod, metrics(address).await)));
    let results = reads.await.into_iter();
    results.filter_map(|(pod, text)| Some((pod, parse_histogram(&text.ok()?, listed)))).collect()
}
