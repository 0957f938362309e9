//! Every bound of the webhook port, in one place.
//! Comes in: nothing. Goes out: numbers and spans. May touch: nothing.
//! The API server parks idle connections for 90 seconds and does not repeat a request that it lost,
//! so an idle connection must outlive that; whoever is slower than a network ever is, must not.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// The bounds of one webhook port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Connections at once.
    pub(crate) connections: usize,
    /// Handshakes at once.
    pub(crate) handshakes: usize,
    /// Handshakes of one address at once, so that no single one can take all of them.
    pub(crate) handshakes_of_one_peer: usize,
    /// From the connection to the handshake's first byte, and from there to its end.
    pub(crate) handshake: Duration,
    /// From the handshake to the first byte of the first request.
    pub(crate) first_request: Duration,
    /// Between two requests.
    pub(crate) idle: Duration,
    /// From a header's first byte to its end.
    pub(crate) header: Duration,
    /// A whole body, and the wait for room for it.
    pub(crate) body: Duration,
    /// The wait for a place among the big reviews.
    pub(crate) turn: Duration,
    /// Until the answer has been taken.
    pub(crate) answer: Duration,
    /// For a peer that still sends after it was told the end, so that it reads what it was told.
    pub(crate) goodbye: Duration,
    /// For answers that were begun when the end was asked for.
    pub(crate) last_answers: Duration,
    /// How often somebody looks for those that are too slow.
    pub(crate) round: Duration,
    /// The body of an admission review: two objects of 3 MiB, the most that the API server takes,
    /// and what is around them.
    pub(crate) admission_bytes: usize,
    /// The body of a conversion review, which may carry many objects.
    pub(crate) conversion_bytes: usize,
    /// Up to here a body is answered on the spot and needs no room from the budget. There are never
    /// more of them than connections.
    pub(crate) small_bytes: usize,
    /// What all bigger bodies, and their answers, may take together.
    pub(crate) room_bytes: usize,
    /// Big reviews that are answered at once; the event loop keeps the other threads.
    pub(crate) big_at_once: usize,
    /// Reviews that have come and are not answered yet.
    pub(crate) reviews: usize,
}

impl Limits {
    /// What a replica is started with.
    pub(crate) const STANDARD: Self = Self {
        connections: 512,
        handshakes: 64,
        handshakes_of_one_peer: 16,
        handshake: Duration::from_secs(5),
        first_request: Duration::from_secs(10),
        idle: Duration::from_secs(150),
        header: Duration::from_secs(5),
        body: Duration::from_secs(10),
        turn: Duration::from_secs(10),
        answer: Duration::from_secs(10),
        goodbye: Duration::from_secs(1),
        last_answers: Duration::from_secs(5),
        round: Duration::from_millis(500),
        admission_bytes: 8 * MIB,
        conversion_bytes: 32 * MIB,
        small_bytes: 128 * KIB,
        room_bytes: 64 * MIB,
        big_at_once: 2,
        reviews: 256,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_outlives_the_pool_of_the_api_server() {
        assert!(Limits::STANDARD.idle > Duration::from_secs(90));
    }

    #[test]
    fn the_biggest_body_finds_room_when_it_is_alone() {
        let limits = Limits::STANDARD;
        assert!(limits.room_bytes >= limits.conversion_bytes);
        assert!(limits.room_bytes >= limits.admission_bytes);
    }
}
