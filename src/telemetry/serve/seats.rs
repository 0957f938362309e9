//! Who sits at the probe port: so many connections of each address, and no more.
//! Comes in: the address of a peer. Goes out: a seat, which is free again once it is dropped.
//! May touch: nothing outside. Behind one address there may be many clients; they share.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Taken = BTreeMap<IpAddr, usize>;

/// The seats of all peers.
pub(super) struct Seats {
    of_one_peer: usize,
    taken: Arc<Mutex<Taken>>,
}

/// One seat, as long as it lives.
pub(super) struct Seat {
    peer: IpAddr,
    taken: Arc<Mutex<Taken>>,
}

impl Seats {
    /// So many seats for each peer.
    pub(super) fn new(of_one_peer: usize) -> Self {
        Self { of_one_peer, taken: Arc::default() }
    }

    /// A seat for `peer`, unless it has taken all of its own.
    pub(super) fn take(&self, peer: IpAddr) -> Option<Seat> {
        let mut taken = lock(&self.taken);
        let count = taken.entry(peer).or_default();
        if *count >= self.of_one_peer {
            return None;
        }
        *count = count.saturating_add(1);
        Some(Seat { peer, taken: Arc::clone(&self.taken) })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        let left = taken.get(&self.peer).map_or(0, |count| count.saturating_sub(1));
        // A peer that has left is forgotten, or the list would grow with every address.
        if left == 0 {
            taken.remove(&self.peer);
        } else {
            taken.insert(self.peer, left);
        }
    }
}

/// A count is whole at every moment, so a panic elsewhere cannot have broken it.
fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn one_peer_cannot_take_the_seats_of_another_and_gives_its_own_back() {
        let seats = Seats::new(2);
        let one = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
        let other = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
        let (first, second) = (seats.take(one), seats.take(one));
        assert!(first.is_some() && second.is_some());
        assert!(seats.take(one).is_none());
        assert!(seats.take(other).is_some());
        drop(first);
        assert!(seats.take(one).is_some());
        drop(second);
        assert!(lock(&seats.taken).is_empty());
    }
}
