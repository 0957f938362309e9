//! Switches of TLS and authentication, under faults.

use quorate::etcd_cluster::plan::Reason;
use quorate::etcd_cluster::state::MemberName;

use super::model::{AccessChange, Fault, Model};
use super::{converge, explore, healthy_cluster, reconciled};

fn with_change(change: AccessChange) -> Model {
    healthy_cluster().with_access_changes().with_fault(&Fault::ChangeAccess(change))
}

#[test]
fn tls_switch_completes_under_any_fault() {
    for change in [AccessChange::PeerTls, AccessChange::ClientTls] {
        // From TLS to plaintext, and back.
        let (plaintext, reason, _) = converge(&with_change(change), None);
        assert_eq!(reason, Reason::Healthy);
        for model in [with_change(change), plaintext.with_fault(&Fault::ChangeAccess(change))] {
            let states = explore(model, 1);
            println!("3 members, {change:?}, 1 fault: {states} states");
        }
    }
}

#[test]
fn authentication_is_enabled_and_disabled_under_any_fault() {
    let enabling = with_change(AccessChange::Auth);
    let (enabled, reason, _) = converge(&enabling, None);
    assert_eq!(reason, Reason::Healthy);
    for model in [enabling, enabled] {
        let states = explore(model, 1);
        println!("3 members, authentication, 1 fault: {states} states");
    }
}

#[test]
fn tls_and_authentication_may_be_changed_again_and_again() {
    let states = explore(healthy_cluster().with_access_changes().quiet(), 4);
    println!("3 members, TLS and authentication, 4 edits and crashes: {states} states");
}

/// A case that the long model test found once.
#[test]
fn recreated_member_object_gets_no_tls_peer_url_while_the_switch_is_reverted() {
    let switching = with_change(AccessChange::PeerTls);
    for (first, second) in (0..14).flat_map(|first| (0..3).map(move |second| (first, second))) {
        for name in ["a", "b", "c"].map(|name| MemberName(name.to_owned())) {
            let lost = reconciled(switching.clone(), first).with_fault(&Fault::DeleteMember(name));
            let reverted =
                reconciled(lost, second).with_fault(&Fault::ChangeAccess(AccessChange::PeerTls));
            let (_, reason, _) = converge(&reverted, None);
            assert_eq!(reason, Reason::Healthy);
        }
    }
}

#[test]
fn bad_update_affects_one_member_even_if_another_pod_is_deleted() {
    let switching = with_change(AccessChange::PeerTls);
    for (first, second) in (0..14).flat_map(|first| (0..4).map(move |second| (first, second))) {
        for name in ["a", "b", "c"].map(|name| MemberName(name.to_owned())) {
            let bad = reconciled(switching.clone(), first).with_fault(&Fault::BadSpec);
            let bad = reconciled(bad, second);
            let (_, reason, _) = converge(&bad.with_fault(&Fault::LosePod(name)), None);
            assert_ne!(reason, Reason::QuorumLost);
        }
    }
}

/// Takes minutes: `make convergence-long`.
#[test]
#[ignore = "takes minutes; run by make convergence-long"]
fn tls_switch_completes_under_any_two_faults() {
    for change in [AccessChange::PeerTls, AccessChange::ClientTls, AccessChange::Auth] {
        println!("3 members, {change:?}, 2 faults: {} states", explore(with_change(change), 2));
    }
    let states = explore(healthy_cluster().with_access_changes().quiet(), 6);
    println!("6 edits and crashes: {states} states");
}
