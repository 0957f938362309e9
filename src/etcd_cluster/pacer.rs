//! How long messages between the members of a cluster take, asked now and then.
//! Comes in: where members are. Goes out: what they measured of each other. May touch: `ports`. It chooses nothing. What was
//! counted is remembered between two looks, because members count from their start, and what was hours ago is no matter.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};

use super::compose::uid;
use super::heard::Council;
use super::observe::place;
use super::pace::{Counted, RoundTrip, counted, round_trip};
use super::stock::Stock;
use crate::ports::etcd::metrics::metrics;

/// Between two looks. Each pair is measured a dozen times meanwhile.
const WINDOW: Duration = Duration::from_mins(3);

/// What is remembered of a cluster.
struct Known {
    at: Timestamp,
    /// What each pod had counted, by its uid.
    counts: BTreeMap<String, Counted>,
    measured: Option<RoundTrip>,
}

/// What came of the last look.
enum Recalled {
    /// It is not long ago: what was measured, if anything was.
    Known(Option<RoundTrip>),
    /// It is time for another one.
    Due,
}

/// What is remembered of every cluster, by the uid of its EtcdCluster.
#[derive(Default)]
pub(crate) struct Pacer {
    known: Mutex<BTreeMap<String, Known>>,
}

impl Pacer {
    /// How long messages take, as far as that is known. Now and then members are asked for it.
    pub(crate) async fn ask(
        &self,
        stock: &Stock,
        council: &Council,
        now: Timestamp,
    ) -> Option<RoundTrip> {
        let cluster = uid(&stock.cluster);
        if let Recalled::Known(measured) = self.recall(&cluster, now) {
            return measured;
        }
        let listed: BTreeSet<String> =
            council.list.iter().map(|it| format!("{:x}", it.id)).collect();
        let counts = look(stock, &listed, now).await;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.get(&cluster);
        let pairs = before.map(|it| matched(&it.counts, &counts)).unwrap_or_default();
        // Each member must have been there all the time, or the one that is furthest away may be missing.
        let knows_all = |it: &Counted| it.len().saturating_add(1) == listed.len();
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
    fn recall(&self, uid: &str, now: Timestamp) -> Recalled {
        let window = SignedDuration::try_from(WINDOW).unwrap_or(SignedDuration::ZERO);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let last = known.get(uid).filter(|it| now.duration_since(it.at) < window);
        last.map_or(Recalled::Due, |it| Recalled::Known(it.measured))
    }
}

fn matched<'a>(
    before: &'a BTreeMap<String, Counted>,
    now: &'a BTreeMap<String, Counted>,
) -> Vec<(&'a Counted, &'a Counted)> {
    now.iter().filter_map(|(pod, counts)| Some((before.get(pod)?, counts))).collect()
}

/// Asks every member that has an address. Who does not answer is left out.
async fn look(
    stock: &Stock,
    listed: &BTreeSet<String>,
    now: Timestamp,
) -> BTreeMap<String, Counted> {
    let places =
        stock.pods.iter().filter_map(|pod| Some((uid(pod), place(stock, pod, now)?.1.address)));
    let asked = places.map(async |(pod, address)| (pod, metrics(address).await));
    let told = join_all(asked).await.into_iter();
    told.filter_map(|(pod, text)| Some((pod, counted(&text.ok()?, listed)))).collect()
}
