//! The registry of open connections: accepts new ones up to the limit, evicts, and aborts overdue
//! ones.
//!
//! Each connection holds a slot, which is free again once it is dropped.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::activity::Activity;
use super::eviction::{self, Candidate};
use super::limits::Limits;
use super::state::{ConnectionState, millis};
use crate::telemetry::{RejectReason, WebhookMetrics};

/// A candidate may start a request just when it is picked; then another one is picked.
const MAX_EVICTION_ATTEMPTS: usize = 4;

/// All connections.
pub(super) struct Connections {
    limits: Limits,
    epoch: Instant,
    metrics: WebhookMetrics,
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    next: u64,
    entries: BTreeMap<u64, (IpAddr, Arc<ConnectionState>)>,
    peers: BTreeMap<IpAddr, Peer>,
}

/// What the connections of one client address share.
struct Peer {
    count: usize,
    handshakes: Arc<Semaphore>,
}

/// The slot of one connection.
pub(super) struct Slot {
    id: u64,
    connections: Arc<Connections>,
    /// The client address.
    pub(super) peer: IpAddr,
    /// What the connection is doing.
    pub(super) state: Arc<ConnectionState>,
    /// The handshake permits of the client address.
    pub(super) handshakes: Arc<Semaphore>,
}

/// The result of accepting a connection.
pub(super) enum Accept {
    /// A slot was free.
    Free(Slot),
    /// A slot was freed by evicting a connection of this address.
    Evicted(Slot, IpAddr),
    /// No slot is free, and no connection can be evicted.
    Full,
}

/// A connection that was aborted by a timeout.
pub(super) struct Overdue {
    /// The client address.
    pub(super) peer: IpAddr,
    /// What the connection was doing.
    pub(super) activity: Activity,
}

impl Connections {
    /// A registry without connections.
    pub(super) fn new(limits: Limits, metrics: WebhookMetrics) -> Self {
        Self { limits, epoch: Instant::now(), metrics, slots: Mutex::default() }
    }

    /// A slot for a connection from `peer`. If none is free, another connection may be evicted.
    pub(super) fn accept(self: &Arc<Self>, peer: IpAddr) -> Accept {
        let mut slots = self.lock();
        if slots.entries.len() < self.limits.connections {
            return Accept::Free(self.register(&mut slots, peer));
        }
        for _ in 0..MAX_EVICTION_ATTEMPTS {
            let Some(id) = eviction::pick(&slots.candidates(), peer) else {
                return Accept::Full;
            };
            if let Some(evicted) = slots.evict(id) {
                return Accept::Evicted(self.register(&mut slots, peer), evicted);
            }
        }
        Accept::Full
    }

    fn register(self: &Arc<Self>, slots: &mut Slots, peer: IpAddr) -> Slot {
        let id = slots.next;
        slots.next = slots.next.saturating_add(1);
        let state = Arc::new(ConnectionState::new(self.epoch));
        slots.entries.insert(id, (peer, Arc::clone(&state)));
        let shared = slots.peers.entry(peer).or_insert_with(|| Peer {
            count: 0,
            handshakes: Arc::new(Semaphore::new(self.limits.handshakes_per_peer)),
        });
        shared.count = shared.count.saturating_add(1);
        let handshakes = Arc::clone(&shared.handshakes);
        self.metrics.connections(slots.entries.len());
        Slot { id, connections: Arc::clone(self), peer, state, handshakes }
    }

    /// Aborts every connection whose activity has timed out.
    pub(super) fn abort_overdue(&self) -> Vec<Overdue> {
        let mut overdue = Vec::new();
        let now = millis(self.epoch);
        for (peer, state) in self.lock().entries.values() {
            let observed = state.load();
            let (activity, since) = observed;
            let elapsed = Duration::from_millis(now.saturating_sub(since));
            let timed_out = activity.timeout(&self.limits).is_some_and(|limit| elapsed >= limit);
            if timed_out && state.abort(observed) {
                overdue.push(Overdue { peer: *peer, activity });
            }
        }
        overdue
    }

    /// Wakes every connection, so that it checks for abort and shutdown.
    pub(super) fn notify_all(&self) {
        for (_, state) in self.lock().entries.values() {
            state.notify();
        }
    }

    /// Whether there are no connections.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().entries.is_empty()
    }

    /// The contents are consistent whenever the lock is free, so a panic elsewhere cannot have
    /// broken them.
    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Overdue {
    /// The rejection that the timeout counts as, if any.
    pub(super) fn rejection(&self) -> Option<RejectReason> {
        self.activity.rejection()
    }
}

impl Slots {
    fn candidates(&self) -> Vec<Candidate> {
        let candidate = |(id, (peer, state)): (&u64, &(IpAddr, Arc<ConnectionState>))| {
            let (activity, since) = state.load();
            Candidate { id: *id, peer: *peer, activity, since }
        };
        self.entries.iter().map(candidate).collect()
    }

    /// Evicts a connection, unless it has just started a request.
    fn evict(&mut self, id: u64) -> Option<IpAddr> {
        let (peer, state) = self.entries.get(&id)?;
        let (peer, observed) = (*peer, state.load());
        state.abort(observed).then(|| {
            self.remove(id);
            peer
        })
    }

    fn remove(&mut self, id: u64) {
        let Some((peer, _)) = self.entries.remove(&id) else {
            return;
        };
        // An address without connections is removed, or the map would grow with every client.
        let remaining = self.peers.get_mut(&peer).map_or(0, |shared| {
            shared.count = shared.count.saturating_sub(1);
            shared.count
        });
        if remaining == 0 {
            self.peers.remove(&peer);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut slots = self.connections.lock();
        slots.remove(self.id);
        self.connections.metrics.connections(slots.entries.len());
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use jiff::Timestamp;

    use super::*;
    use crate::telemetry::Metrics;

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const OTHER_CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

    fn connections(max: usize) -> Arc<Connections> {
        let limits = Limits { connections: max, ..Limits::DEFAULT };
        Arc::new(Connections::new(limits, Metrics::new(Timestamp::UNIX_EPOCH).webhook()))
    }

    fn free(accept: Accept) -> Slot {
        match accept {
            Accept::Free(slot) => slot,
            Accept::Evicted(..) | Accept::Full => panic!("expected a free slot"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn new_connection_evicts_the_longest_idle_one() {
        let connections = connections(2);
        let (first, second) = (free(connections.accept(CLIENT)), free(connections.accept(CLIENT)));
        tokio::time::advance(Duration::from_millis(5)).await;
        assert!(first.state.enter(Activity::Idle));
        let Accept::Evicted(third, evicted) = connections.accept(OTHER_CLIENT) else {
            panic!("no connection was evicted");
        };
        assert_eq!((evicted, second.state.load().0), (CLIENT, Activity::Aborted));
        assert_eq!(first.state.load().0, Activity::Idle);
        drop(second);
        assert_eq!(connections.lock().entries.len(), 2);
        drop((first, third));
        assert!(connections.is_empty() && connections.lock().peers.is_empty());
    }

    #[tokio::test]
    async fn registry_is_full_when_every_connection_is_being_handled() {
        let connections = connections(1);
        let only = free(connections.accept(CLIENT));
        assert!(only.state.enter(Activity::Handling));
        assert!(matches!(connections.accept(OTHER_CLIENT), Accept::Full));
    }

    #[tokio::test(start_paused = true)]
    async fn sweep_aborts_only_overdue_connections() {
        let connections = connections(9);
        let (slow, idle) = (free(connections.accept(CLIENT)), free(connections.accept(CLIENT)));
        assert!(slow.state.enter(Activity::ReadingHeaders) && idle.state.enter(Activity::Idle));
        tokio::time::advance(
            Limits::DEFAULT.header_timeout.saturating_sub(Duration::from_millis(1)),
        )
        .await;
        assert!(connections.abort_overdue().is_empty());
        tokio::time::advance(Duration::from_millis(1)).await;
        let evicted: Vec<Option<RejectReason>> =
            connections.abort_overdue().iter().map(Overdue::rejection).collect();
        assert_eq!(evicted, [Some(RejectReason::SlowHeader)]);
        tokio::time::advance(Duration::from_secs(100)).await;
        assert!(connections.abort_overdue().is_empty());
        tokio::time::advance(Duration::from_secs(50)).await;
        assert_eq!(
            connections.abort_overdue().iter().map(Overdue::rejection).collect::<Vec<_>>(),
            [None]
        );
    }
}
