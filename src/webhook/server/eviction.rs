//! Picks the connection to evict when all slots are taken.
//!
//! The client address with most connections loses one: a client with ten thousand connections
//! evicts itself, and the API server still gets a slot.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::activity::{Activity, BlockedOn};

/// A connection that may be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The ID of its slot.
    pub(super) id: u64,
    /// The client address.
    pub(super) peer: IpAddr,
    /// What the connection is doing.
    pub(super) activity: Activity,
    /// When that started, in milliseconds since the server started.
    pub(super) since: u64,
}

/// The connection to evict. Of the address with most connections, it is the one that has been idle
/// longest. If none of them is idle, it is the one whose peer has kept the server waiting longest,
/// but only if the new peer has fewer connections: an address does not interrupt its own requests.
pub(super) fn pick(candidates: &[Candidate], new_peer: IpAddr) -> Option<u64> {
    let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
    for candidate in candidates {
        let count = counts.entry(candidate.peer).or_default();
        *count = count.saturating_add(1);
    }
    let own_count = counts.get(&new_peer).copied().unwrap_or(0);
    let count = |candidate: &Candidate| counts.get(&candidate.peer).copied().unwrap_or(0);
    let may_go = |candidate: &&Candidate| match candidate.activity.blocked_on() {
        BlockedOn::Nothing => count(candidate) >= own_count,
        BlockedOn::Peer => count(candidate) > own_count,
        BlockedOn::Server => false,
    };
    // The smallest key is evicted first: most connections, then idle before busy, then longest
    // first.
    let order = |candidate: &&Candidate| {
        let busy = candidate.activity.blocked_on() != BlockedOn::Nothing;
        (usize::MAX.saturating_sub(count(candidate)), busy, candidate.since, candidate.id)
    };
    candidates.iter().filter(may_go).min_by_key(order).map(|candidate| candidate.id)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const API_SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const HOSTILE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
    const OTHER_CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3));

    fn candidate(id: u64, peer: IpAddr, activity: Activity, since: u64) -> Candidate {
        Candidate { id, peer, activity, since }
    }

    #[test]
    fn client_with_most_connections_is_evicted_before_a_longer_idle_api_server() {
        let candidates = [
            candidate(1, API_SERVER, Activity::Idle, 0),
            candidate(2, HOSTILE, Activity::Idle, 50),
            candidate(3, HOSTILE, Activity::AwaitingRequest, 40),
        ];
        for new_peer in [API_SERVER, HOSTILE, OTHER_CLIENT] {
            assert_eq!(pick(&candidates, new_peer), Some(3));
        }
    }

    #[test]
    fn client_with_stalled_requests_is_evicted_before_an_idle_api_server() {
        let candidates = [
            candidate(1, API_SERVER, Activity::Idle, 0),
            candidate(2, HOSTILE, Activity::ReadingBody, 60),
            candidate(3, HOSTILE, Activity::ReadingHeaders, 50),
        ];
        assert_eq!(pick(&candidates, API_SERVER), Some(3));
        assert_eq!(pick(&candidates, OTHER_CLIENT), Some(3));
        assert_eq!(pick(&candidates, HOSTILE), None);
    }

    #[test]
    fn address_evicts_its_own_idle_connections_but_no_request_in_progress() {
        let started = [
            candidate(1, API_SERVER, Activity::ReadingBody, 0),
            candidate(2, API_SERVER, Activity::Handling, 0),
        ];
        assert_eq!(pick(&started, API_SERVER), None);
        let idle = [
            candidate(1, API_SERVER, Activity::ReadingBody, 0),
            candidate(2, API_SERVER, Activity::Idle, 9),
        ];
        assert_eq!(pick(&idle, API_SERVER), Some(2));
    }

    #[test]
    fn connection_is_not_evicted_while_its_review_is_handled() {
        let handling = [
            candidate(1, HOSTILE, Activity::Handling, 0),
            candidate(2, HOSTILE, Activity::Aborted, 0),
        ];
        assert_eq!(pick(&handling, API_SERVER), None);
        assert_eq!(pick(&[], API_SERVER), None);
    }
}
