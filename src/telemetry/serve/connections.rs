//! Limits the connections of each peer address to the probe server.
//!
//! Several clients behind one address share its limit.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Counts = BTreeMap<IpAddr, usize>;

/// The connections of all peers.
pub(super) struct PeerConnections {
    max_per_peer: usize,
    counts: Arc<Mutex<Counts>>,
}

/// A connection of a peer; dropping it frees the slot.
pub(super) struct ConnectionSlot {
    peer: IpAddr,
    counts: Arc<Mutex<Counts>>,
}

impl PeerConnections {
    /// At most so many connections for each peer.
    pub(super) fn new(max_per_peer: usize) -> Self {
        Self { max_per_peer, counts: Arc::default() }
    }

    /// A slot for `peer`; none if the peer is at its limit.
    pub(super) fn take(&self, peer: IpAddr) -> Option<ConnectionSlot> {
        let mut counts = lock(&self.counts);
        let count = counts.entry(peer).or_default();
        if *count >= self.max_per_peer {
            return None;
        }
        *count = count.saturating_add(1);
        Some(ConnectionSlot { peer, counts: Arc::clone(&self.counts) })
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut counts = lock(&self.counts);
        let remaining = counts.get(&self.peer).map_or(0, |count| count.saturating_sub(1));
        // Peers without connections are removed, or the map would grow with every address.
        if remaining == 0 {
            counts.remove(&self.peer);
        } else {
            counts.insert(self.peer, remaining);
        }
    }
}

/// The counts are consistent at any point, so a poisoned lock is valid.
fn lock(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn each_peer_has_its_own_limit_and_dropped_slots_are_free() {
        let peers = PeerConnections::new(2);
        let one = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
        let other = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
        let (first, second) = (peers.take(one), peers.take(one));
        assert!(first.is_some() && second.is_some());
        assert!(peers.take(one).is_none());
        assert!(peers.take(other).is_some());
        drop(first);
        assert!(peers.take(one).is_some());
        drop(second);
        assert!(lock(&peers.counts).is_empty());
    }
}
