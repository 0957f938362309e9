//! Who makes place for a newcomer when every place is taken.
//! Comes in: who sits where, doing what and since when, and the newcomer's address. Goes out: the
//! one that must go, if any. May touch: nothing. Pure. The address with most connections pays: a
//! stranger with ten thousand of them displaces itself, and the API server finds a place.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::activity::{Activity, Waits};

/// One connection, as it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Occupant {
    /// Its number.
    pub(super) id: u64,
    /// Where it comes from.
    pub(super) peer: IpAddr,
    /// What it is doing.
    pub(super) activity: Activity,
    /// When it began to, in milliseconds of the port's own clock.
    pub(super) since: u64,
}

/// The connection that goes. Of the address with most connections, it is the one that has been idle
/// longest; or, if none of them is idle, the one that has kept us waiting longest, but only if the
/// newcomer's address has fewer: an address does not interrupt itself.
pub(super) fn choose(occupants: &[Occupant], newcomer: IpAddr) -> Option<u64> {
    let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
    for occupant in occupants {
        let count = counts.entry(occupant.peer).or_default();
        *count = count.saturating_add(1);
    }
    let own = counts.get(&newcomer).copied().unwrap_or(0);
    let count = |occupant: &Occupant| counts.get(&occupant.peer).copied().unwrap_or(0);
    let may_go = |occupant: &&Occupant| match occupant.activity.waits() {
        Waits::Idly => count(occupant) >= own,
        Waits::ForPeer => count(occupant) > own,
        Waits::ForUs => false,
    };
    // Smaller is chosen sooner: many connections, then idle before busy, then long before short.
    let order = |occupant: &&Occupant| {
        let busy = occupant.activity.waits() != Waits::Idly;
        (usize::MAX.saturating_sub(count(occupant)), busy, occupant.since, occupant.id)
    };
    occupants.iter().filter(may_go).min_by_key(order).map(|occupant| occupant.id)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const API_SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const STRANGER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
    const ANOTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3));

    fn sits(id: u64, peer: IpAddr, activity: Activity, since: u64) -> Occupant {
        Occupant { id, peer, activity, since }
    }

    #[test]
    fn the_stranger_with_most_connections_pays_though_the_api_server_is_idle_for_longer() {
        let occupants = [
            sits(1, API_SERVER, Activity::Idle, 0),
            sits(2, STRANGER, Activity::Idle, 50),
            sits(3, STRANGER, Activity::Silent, 40),
        ];
        for newcomer in [API_SERVER, STRANGER, ANOTHER] {
            assert_eq!(choose(&occupants, newcomer), Some(3));
        }
    }

    #[test]
    fn a_stranger_that_stalls_its_requests_pays_before_an_idle_api_server() {
        let occupants = [
            sits(1, API_SERVER, Activity::Idle, 0),
            sits(2, STRANGER, Activity::Body, 60),
            sits(3, STRANGER, Activity::Header, 50),
        ];
        assert_eq!(choose(&occupants, API_SERVER), Some(3));
        assert_eq!(choose(&occupants, ANOTHER), Some(3));
        assert_eq!(choose(&occupants, STRANGER), None);
    }

    #[test]
    fn an_address_gives_up_its_idle_ones_for_itself_but_no_request_that_has_begun() {
        let begun =
            [sits(1, API_SERVER, Activity::Body, 0), sits(2, API_SERVER, Activity::Judging, 0)];
        assert_eq!(choose(&begun, API_SERVER), None);
        let idle = [sits(1, API_SERVER, Activity::Body, 0), sits(2, API_SERVER, Activity::Idle, 9)];
        assert_eq!(choose(&idle, API_SERVER), Some(2));
    }

    #[test]
    fn nobody_goes_whose_answer_is_being_made() {
        let judged = [sits(1, STRANGER, Activity::Judging, 0), sits(2, STRANGER, Activity::Cut, 0)];
        assert_eq!(choose(&judged, API_SERVER), None);
        assert_eq!(choose(&[], API_SERVER), None);
    }
}
