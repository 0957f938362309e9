//! How long messages between the members of a cluster take, asked now and then.
//! Comes in: where members are. Goes out: what they measured of each other. May touch: `clients`. It chooses nothing. What was
//! counted is remembered between two looks, because members count from their start, and what was hours ago is no matter.

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

/// Between two looks. Each pair is measured a dozen times meanwhile.
const RTT_INTERVAL: Duration = Duration::from_mins(3);

/// What is remembered of a cluster.
struct Known {
    at: Timestamp,
    /// What each pod had `parse_histogram`, by its uid.
    counts: BTreeMap<String, RttHistogram>,
    measured: Option<RoundTrip>,
}

/// What came of the last look.
enum Cached {
    /// It is not long ago: what was measured, if anything was.
    Known(Option<RoundTrip>),
    /// It is time for another one.
    Due,
}

/// What is remembered of every cluster, by the uid of its EtcdCluster.
#[derive(Default)]
pub(crate) struct PeerRttObserver {
    known: Mutex<BTreeMap<String, Known>>,
}

impl PeerRttObserver {
    /// How long messages take, as far as that is known. Now and then members are asked for it.
    pub(crate) async fn ask(
        &self,
        stock: &ClusterObjects,
        council: &QuorumView,
        now: Timestamp,
    ) -> Option<RoundTrip> {
        let cluster = uid(&stock.cluster);
        if let Cached::Known(measured) = self.cached(&cluster, now) {
            return measured;
        }
        let listed: BTreeSet<String> =
            council.members.iter().map(|it| format!("{:x}", it.id)).collect();
        let counts = look(stock, &listed, now).await;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.get(&cluster);
        let pairs = before.map(|it| matched(&it.counts, &counts)).unwrap_or_default();
        // Each member must have been there all the time, or the one that is furthest away may be missing.
        let knows_all = |it: &RttHistogram| it.len().saturating_add(1) == listed.len();
        let is_whole = pairs.len() == counts.len()
            && counts.len() == listed.len()
            && counts.values().all(knows_all);
        let measured = is_whole.then(|| round_trip(pairs)).flatten();
        known.insert(cluster, Known { at: now, counts, measured });
        measured
    }

    /// Forgets a cluster that is gone.
    pub(crate) fn forget(&self, uid: &str) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }

    /// What came of the last look, unless it is time for another one.
    fn cached(&self, uid: &str, now: Timestamp) -> Cached {
        let window = SignedDuration::try_from(RTT_INTERVAL).unwrap_or(SignedDuration::ZERO);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let last = known.get(uid).filter(|it| now.duration_since(it.at) < window);
        last.map_or(Cached::Due, |it| Cached::Known(it.measured))
    }
}

fn matched<'a>(
    before: &'a BTreeMap<String, RttHistogram>,
    now: &'a BTreeMap<String, RttHistogram>,
) -> Vec<(&'a RttHistogram, &'a RttHistogram)> {
    now.iter().filter_map(|(pod, counts)| Some((before.get(pod)?, counts))).collect()
}

/// Asks every member that has an address. Who does not answer is left out.
async fn look(
    stock: &ClusterObjects,
    listed: &BTreeSet<String>,
    now: Timestamp,
) -> BTreeMap<String, RttHistogram> {
    let places = stock
        .pods
        .iter()
        .filter_map(|pod| Some((uid(pod), member_endpoint(stock, pod, now)?.1.address)));
    let asked = places.map(async |(pod, address)| (pod, metrics(address).await));
    let told = join_all(asked).await.into_iter();
    told.filter_map(|(pod, text)| Some((pod, parse_histogram(&text.ok()?, listed)))).collect()
}
