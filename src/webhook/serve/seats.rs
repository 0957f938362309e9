//! Who is connected to the webhook port.
//! Comes in: the addresses of newcomers, and the round that looks for slow ones. Goes out: a seat
//! for each, free again once it is dropped, and who had to go. May touch: the metrics' count of
//! connections.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::activity::Activity;
use super::displace::{self, Occupant};
use super::limits::Limits;
use super::pulse::{Pulse, millis};
use crate::telemetry::{Refused, WebhookMetrics};

/// A chosen one may wake up in that very moment; then another is chosen.
const CHOICES: usize = 4;

/// All seats.
pub(super) struct Seats {
    limits: Limits,
    opened: Instant,
    metrics: WebhookMetrics,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    next: u64,
    seats: BTreeMap<u64, (IpAddr, Arc<Pulse>)>,
    peers: BTreeMap<IpAddr, Peer>,
}

/// What the connections of one address share.
struct Peer {
    count: usize,
    handshakes: Arc<Semaphore>,
}

/// One seat, as long as it lives.
pub(super) struct Seat {
    id: u64,
    seats: Arc<Seats>,
    /// Where its connection comes from.
    pub(super) peer: IpAddr,
    /// What its connection is doing.
    pub(super) pulse: Arc<Pulse>,
    /// The handshakes that its address may have at once.
    pub(super) handshakes: Arc<Semaphore>,
}

/// What became of a newcomer.
pub(super) enum Taking {
    /// There was a seat.
    Free(Seat),
    /// There is one now; the connection of that address had to go.
    Cleared(Seat, IpAddr),
    /// There is none.
    Full,
}

/// A connection that had to go because it took too long for something.
pub(super) struct Overdue {
    /// Where it came from.
    pub(super) peer: IpAddr,
    /// What it was doing.
    pub(super) activity: Activity,
}

impl Seats {
    /// Empty seats.
    pub(super) fn new(limits: Limits, metrics: WebhookMetrics) -> Self {
        Self { limits, opened: Instant::now(), metrics, taken: Mutex::default() }
    }

    /// A seat for `peer`. If all are taken, another connection may have to go.
    pub(super) fn take(self: &Arc<Self>, peer: IpAddr) -> Taking {
        let mut taken = self.lock();
        if taken.seats.len() < self.limits.connections {
            return Taking::Free(self.sit(&mut taken, peer));
        }
        for _ in 0..CHOICES {
            let Some(other) = displace::choose(&taken.occupants(), peer) else {
                return Taking::Full;
            };
            if let Some(gone) = taken.clear(other) {
                return Taking::Cleared(self.sit(&mut taken, peer), gone);
            }
        }
        Taking::Full
    }

    fn sit(self: &Arc<Self>, taken: &mut Taken, peer: IpAddr) -> Seat {
        let id = taken.next;
        taken.next = taken.next.saturating_add(1);
        let pulse = Arc::new(Pulse::new(self.opened));
        taken.seats.insert(id, (peer, Arc::clone(&pulse)));
        let shared = taken.peers.entry(peer).or_insert_with(|| Peer {
            count: 0,
            handshakes: Arc::new(Semaphore::new(self.limits.handshakes_of_one_peer)),
        });
        shared.count = shared.count.saturating_add(1);
        let handshakes = Arc::clone(&shared.handshakes);
        self.metrics.connections(taken.seats.len());
        Seat { id, seats: Arc::clone(self), peer, pulse, handshakes }
    }

    /// Ends every connection that has taken too long for what it does.
    pub(super) fn round(&self) -> Vec<Overdue> {
        let mut overdue = Vec::new();
        let now = millis(self.opened);
        for (peer, pulse) in self.lock().seats.values() {
            let seen = pulse.feel();
            let (activity, since) = seen;
            let spent = Duration::from_millis(now.saturating_sub(since));
            let too_long = activity.patience(&self.limits).is_some_and(|limit| spent >= limit);
            if too_long && pulse.cut(seen) {
                overdue.push(Overdue { peer: *peer, activity });
            }
        }
        overdue
    }

    /// Wakes every connection, so that it looks around.
    pub(super) fn ring(&self) {
        for (_, pulse) in self.lock().seats.values() {
            pulse.ring();
        }
    }

    /// Whether nobody is connected.
    pub(super) fn are_empty(&self) -> bool {
        self.lock().seats.is_empty()
    }

    /// What is inside is whole at every moment, so a panic elsewhere cannot have broken it.
    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Overdue {
    /// What it is called, if it is an offence.
    pub(super) fn offence(&self) -> Option<Refused> {
        self.activity.offence()
    }
}

impl Taken {
    fn occupants(&self) -> Vec<Occupant> {
        let occupant = |(id, (peer, pulse)): (&u64, &(IpAddr, Arc<Pulse>))| {
            let (activity, since) = pulse.feel();
            Occupant { id: *id, peer: *peer, activity, since }
        };
        self.seats.iter().map(occupant).collect()
    }

    /// Takes a seat away from its connection, unless that has just begun something.
    fn clear(&mut self, id: u64) -> Option<IpAddr> {
        let (peer, pulse) = self.seats.get(&id)?;
        let (peer, seen) = (*peer, pulse.feel());
        pulse.cut(seen).then(|| {
            self.remove(id);
            peer
        })
    }

    fn remove(&mut self, id: u64) {
        let Some((peer, _)) = self.seats.remove(&id) else {
            return;
        };
        // An address that has left is forgotten, or the list would grow with every one.
        let left = self.peers.get_mut(&peer).map_or(0, |shared| {
            shared.count = shared.count.saturating_sub(1);
            shared.count
        });
        if left == 0 {
            self.peers.remove(&peer);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.lock();
        taken.remove(self.id);
        self.seats.metrics.connections(taken.seats.len());
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use jiff::Timestamp;

    use super::*;
    use crate::telemetry::Metrics;

    const ONE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

    fn seats(connections: usize) -> Arc<Seats> {
        let limits = Limits { connections, ..Limits::STANDARD };
        Arc::new(Seats::new(limits, Metrics::new(Timestamp::UNIX_EPOCH).webhook()))
    }

    fn free(taking: Taking) -> Seat {
        match taking {
            Taking::Free(seat) => seat,
            Taking::Cleared(..) | Taking::Full => panic!("there was a free seat"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_newcomer_gets_the_seat_of_the_one_that_was_idle_longest() {
        let seats = seats(2);
        let (first, second) = (free(seats.take(ONE)), free(seats.take(ONE)));
        tokio::time::advance(Duration::from_millis(5)).await;
        assert!(first.pulse.begin(Activity::Idle));
        let Taking::Cleared(third, gone) = seats.take(OTHER) else {
            panic!("nobody made place");
        };
        assert_eq!((gone, second.pulse.feel().0), (ONE, Activity::Cut));
        assert_eq!(first.pulse.feel().0, Activity::Idle);
        drop(second);
        assert_eq!(seats.lock().seats.len(), 2);
        drop((first, third));
        assert!(seats.are_empty() && seats.lock().peers.is_empty());
    }

    #[tokio::test]
    async fn a_port_on_which_everyone_waits_for_us_is_full() {
        let seats = seats(1);
        let only = free(seats.take(ONE));
        assert!(only.pulse.begin(Activity::Judging));
        assert!(matches!(seats.take(OTHER), Taking::Full));
    }

    #[tokio::test(start_paused = true)]
    async fn the_round_ends_whoever_is_too_slow_and_nobody_else() {
        let seats = seats(9);
        let (slow, idle) = (free(seats.take(ONE)), free(seats.take(ONE)));
        assert!(slow.pulse.begin(Activity::Header) && idle.pulse.begin(Activity::Idle));
        tokio::time::advance(Limits::STANDARD.header.saturating_sub(Duration::from_millis(1)))
            .await;
        assert!(seats.round().is_empty());
        tokio::time::advance(Duration::from_millis(1)).await;
        let gone: Vec<Option<Refused>> = seats.round().iter().map(Overdue::offence).collect();
        assert_eq!(gone, [Some(Refused::SlowHeader)]);
        tokio::time::advance(Duration::from_secs(100)).await;
        assert!(seats.round().is_empty());
        tokio::time::advance(Duration::from_secs(50)).await;
        assert_eq!(seats.round().iter().map(Overdue::offence).collect::<Vec<_>>(), [None]);
    }
}
