//! How members are called, by clients and by each other, and whether etcd asks for users: changed whatever happens meanwhile.

use quorate::etcd_cluster::plan::Reason;
use quorate::etcd_cluster::state::MemberName;

use super::world::{Fault, Turn};
use super::{after, ends_at, settled, walk};

#[test]
fn how_members_are_called_is_changed_whatever_happens() {
    for turn in [Turn::Peers, Turn::Clients] {
        // From TLS to none, and from none to TLS.
        let closed = settled().with_doors();
        let (open, because, _) = ends_at(&closed.struck(&Fault::Turn(turn)), None);
        assert_eq!(because, Reason::Healthy);
        for world in [closed, open] {
            let states = walk(world.struck(&Fault::Turn(turn)), 1);
            println!("3 members, {turn:?} called otherwise, 1 fault: {states} states");
        }
    }
}

#[test]
fn users_are_asked_for_and_not_any_more_whatever_happens() {
    let plain = settled().with_doors();
    let (asks, because, _) = ends_at(&plain.struck(&Fault::Turn(Turn::Users)), None);
    assert_eq!(because, Reason::Healthy);
    for world in [plain.struck(&Fault::Turn(Turn::Users)), asks] {
        let states = walk(world, 1);
        println!("3 members, users, 1 fault: {states} states");
    }
}

#[test]
fn users_may_change_their_mind_about_doors_again_and_again() {
    let states = walk(settled().with_doors().calm(), 4);
    println!("3 members, doors and users, 4 edits and crashes: {states} states");
}

/// What the long walk found once, step by step.
#[test]
fn nobody_is_called_with_tls_because_its_object_was_made_anew_on_the_way_back() {
    let away = settled().with_doors().struck(&Fault::Turn(Turn::Peers));
    for (first, second) in (0..14).flat_map(|it| (0..3).map(move |then| (it, then))) {
        for name in ["a", "b", "c"].map(|it| MemberName(it.to_owned())) {
            let lost = after(away.clone(), first).struck(&Fault::Unmake(name));
            let back = after(lost, second).struck(&Fault::Turn(Turn::Peers));
            let (_, because, _) = ends_at(&back, None);
            assert_eq!(because, Reason::Healthy);
        }
    }
}

#[test]
fn a_bad_change_has_one_member_also_where_another_pod_is_cleared_away() {
    let away = settled().with_doors().struck(&Fault::Turn(Turn::Peers));
    for (first, second) in (0..14).flat_map(|it| (0..4).map(move |then| (it, then))) {
        for name in ["a", "b", "c"].map(|it| MemberName(it.to_owned())) {
            let bad = after(after(away.clone(), first).struck(&Fault::Spoil), second);
            let (_, because, _) = ends_at(&bad.struck(&Fault::LosePod(name)), None);
            assert_ne!(because, Reason::QuorumLost);
        }
    }
}

/// What takes minutes: `make convergence-long`.
#[test]
#[ignore = "minutes; make convergence-long walks it"]
fn doors_are_changed_whatever_happens_twice() {
    for turn in [Turn::Peers, Turn::Clients, Turn::Users] {
        let world = settled().with_doors().struck(&Fault::Turn(turn));
        println!("3 members, {turn:?}, 2 faults: {} states", walk(world, 2));
    }
    println!("6 edits and crashes: {} states", walk(settled().with_doors().calm(), 6));
}
