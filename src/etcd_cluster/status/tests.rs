//! What is told, one sentence each.

use super::*;
use crate::etcd_cluster::decide::decide;
use crate::etcd_cluster::doors::Scheme;
use crate::etcd_cluster::seen::upkeep::Upkeep;
use crate::etcd_cluster::seen::{Auth, ClusterId, Intent, MemberId, Name, Record, Volume, Wanted};

#[test]
fn sizes_move_in_steps() {
    assert_eq!(coarse(0), 0);
    assert_eq!(coarse(20_480), 16 << 20);
    assert_eq!(coarse((16 << 20) + 1), 32 << 20);
    let large = 1_i64 << 32;
    assert_eq!(coarse(large + 1), large + (1 << 30), "a quarter of four gigabytes");
    assert!(coarse(i64::MAX) > 0);
}

#[test]
fn a_member_that_is_nearly_there_is_not_behind() {
    assert_eq!(lag(10_999, 10_000), 0);
    assert_eq!(lag(12_000, 10_000), 2048);
    assert_eq!(lag(5, 10), 0);
}

/// Three voters, of which one does not answer.
fn one_is_away(fails: bool) -> Seen {
    let member = |name: &str, fails| Member {
        name: Name(name.to_owned()),
        intent: Intent::Bootstrap,
        had_pod: true,
        pod: Reading::Known(Pod::Started),
        volume: Reading::Known(Volume::There),
        made: Made::AsWanted,
        given_up: false,
        fails,
        address: Scheme::Https,
    };
    let entry = |(id, name): (u64, &str), well| Registered {
        id: MemberId(id),
        name: Name(name.to_owned()),
        learner: false,
        healthy: Reading::Known(well),
        peer: Scheme::Https,
        worth: false,
        copy: None,
    };
    Seen {
        wanted: Wanted {
            replicas: 3,
            paused: false,
            durable: true,
            course: Course::Reached,
            way_back: WayBack::Unknown,
            peers: Scheme::Https,
            clients_move: false,
        },
        record: Record { formed: Some(ClusterId(7)), ..Record::default() },
        members: vec![member("a", false), member("b", false), member("c", fails)],
        orphans: Vec::new(),
        retained: Vec::new(),
        predecessors: Vec::new(),
        etcd: Reading::Known(Etcd {
            cluster: ClusterId(7),
            leader: Some(MemberId(1)),
            list: vec![entry((1, "a"), true), entry((2, "b"), true), entry((3, "c"), false)],
            alarmed: false,
            space: crate::etcd_cluster::seen::upkeep::Space::Enough,
            corrupt: false,
            log_lacks: 0,
            lowering: Lowering::No,
            auth: Auth::default(),
        }),
        free_names: Vec::new(),
        upkeep: Upkeep::default(),
    }
}

#[test]
fn whoever_comes_back_last_from_a_change_is_a_part_of_it() {
    let told = |upgrading: &str, fails: bool| {
        let cluster: EtcdCluster = serde_json::from_value(serde_json::json!({
            "apiVersion": "etcd.appdelivery.cncf.io/v1", "kind": "EtcdCluster",
            "metadata": {"name": "main"}, "spec": {"version": "3.6.16"},
            "status": {"conditions": [{"type": "Upgrading", "status": upgrading, "reason": "Rolling"}]},
        }))
        .unwrap();
        let seen = one_is_away(fails);
        let plan = decide(&seen);
        assert_eq!(plan.because, Because::MemberUnwell);
        as_told(&cluster, &seen, plan).because
    };
    assert_eq!(told("True", false), Because::Rolling);
    assert_eq!(told("True", true), Because::MemberUnwell, "it does not come back");
    assert_eq!(told("False", false), Because::MemberUnwell, "nothing is being changed");
}
