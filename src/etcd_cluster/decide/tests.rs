//! Rules that meet, one sentence each. What follows from them step by step is walked in `tests/convergence.rs`.

use super::*;
use crate::etcd_cluster::doors::Scheme;
use crate::etcd_cluster::seen::upkeep::{Occasion, Round, Space, Upkeep};
use crate::etcd_cluster::seen::{
    ClusterId, Intent, Lowering, Made, Member, MemberId, Name, Pod, Record, Registered, Volume,
    Wanted,
};

fn name(text: &str) -> Name {
    Name(text.to_owned())
}

fn member(text: &str) -> Member {
    Member {
        name: name(text),
        intent: Intent::Bootstrap,
        had_pod: true,
        pod: Reading::Known(Pod::Started),
        volume: Reading::Known(Volume::There),
        made: Made::AsWanted,
        given_up: false,
        fails: false,
        address: Scheme::Https,
    }
}

pub(crate) fn entry(id: u64, text: &str) -> Registered {
    Registered {
        id: MemberId(id),
        name: name(text),
        learner: false,
        healthy: Reading::Known(true),
        peer: Scheme::Https,
        worth: false,
        copy: None,
    }
}

/// Three voters that are well.
pub(crate) fn three() -> (Seen, Etcd) {
    let etcd = Etcd {
        cluster: ClusterId(7),
        leader: Some(MemberId(1)),
        list: vec![entry(1, "a"), entry(2, "b"), entry(3, "c")],
        alarmed: false,
        space: Space::Enough,
        corrupt: false,
        log_lacks: 0,
        lowering: Lowering::No,
        auth: Auth::AsWanted,
    };
    let seen = Seen {
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
        members: vec![member("a"), member("b"), member("c")],
        orphans: Vec::new(),
        retained: Vec::new(),
        predecessors: Vec::new(),
        etcd: Reading::Unknown,
        free_names: Vec::new(),
        upkeep: Upkeep::default(),
    };
    (seen, etcd)
}

fn decided(seen: Seen, etcd: Etcd) -> (Step, Because) {
    let plan = decide(&Seen { etcd: Reading::Known(etcd), ..seen });
    (plan.step, plan.because)
}

#[test]
fn who_does_not_answer_may_complete_a_majority_as_long_as_it_is_not_given_up() {
    let copies = |of: [Option<u64>; 3], is_well: bool, given_up: bool| {
        let (mut seen, mut etcd) = three();
        etcd.corrupt = true;
        for (entry, copy) in etcd.list.iter_mut().zip(of) {
            entry.copy = copy;
        }
        etcd.list[1].healthy = Reading::Known(is_well);
        seen.members[1].given_up = given_up;
        decided(seen, etcd).1
    };
    assert_eq!(copies([Some(1), None, Some(2)], false, false), Because::DataDiffers);
    assert_eq!(copies([Some(1), None, Some(2)], false, true), Because::DataDiffersBlocked);
    assert_eq!(copies([Some(1), None, Some(2)], true, false), Because::DataDiffersBlocked);
    assert_eq!(copies([Some(1), Some(3), Some(2)], true, false), Because::DataDiffersBlocked);
    assert_eq!(copies([Some(1), None, Some(1)], true, false), Because::DataDiffersBlocked);
    assert_eq!(copies([Some(1), None, Some(1)], false, false), Because::DataDiffers);
}

#[test]
fn a_change_that_nobody_starts_with_is_taken_back_also_where_data_differs() {
    let (mut seen, mut etcd) = three();
    etcd.corrupt = true;
    for entry in &mut etcd.list {
        entry.copy = Some(1);
    }
    etcd.list[1] = Registered { healthy: Reading::Known(false), copy: None, ..entry(2, "b") };
    seen.wanted.way_back = WayBack::Known;
    seen.members[0].made = Made::Outdated;
    seen.members[2].made = Made::Outdated;
    assert_eq!(decided(seen.clone(), etcd.clone()), (Step::Wait, Because::DataDiffers));
    seen.members[1].fails = true;
    assert_eq!(decided(seen, etcd), (Step::TakeBack(name("b")), Because::ChangeFails));
}

#[test]
fn while_an_alarm_forbids_it_nobody_is_made_anew_not_even_who_is_down() {
    let (mut seen, mut etcd) = three();
    seen.members[1].made = Made::Outdated;
    etcd.list[1].healthy = Reading::Known(false);
    let (step, because) = decided(seen.clone(), etcd.clone());
    assert_eq!((step, because), (Step::Restart(name("b")), Because::Rolling));
    etcd.alarmed = true;
    assert_eq!(decided(seen, etcd), (Step::Wait, Because::RollingBlocked));
}

#[test]
fn one_of_few_that_rewrites_its_file_is_no_loss() {
    let because = |count: usize, occasion: Option<Occasion>| {
        let (mut seen, _) = three();
        seen.members.truncate(count);
        seen.wanted.replicas = count;
        let turns = vec![name("a")];
        seen.upkeep.rewriting = occasion.map(|_| name("a"));
        seen.upkeep.round = occasion.map(|occasion| Round { occasion, turns });
        decide(&seen).because
    };
    assert_eq!(because(1, Some(Occasion::Schedule)), Because::Defragmenting);
    assert_eq!(because(2, Some(Occasion::NoSpace)), Because::NoSpace);
    assert_eq!(because(1, None), Because::QuorumLost);
    assert_eq!(because(3, Some(Occasion::Schedule)), Because::QuorumLost, "two more are away");
    let (mut seen, _) = three();
    seen.members.truncate(1);
    seen.upkeep.rewriting = Some(name("a"));
    seen.upkeep.round = Some(Round { occasion: Occasion::Schedule, turns: vec![name("a")] });
    seen.members[0].fails = true;
    assert_eq!(decide(&seen).because, Because::QuorumLost, "it crashes");
}

#[test]
fn files_are_looked_after_also_while_a_password_is_missing() {
    let (mut seen, mut etcd) = three();
    etcd.auth = Auth::NoPassword;
    assert_eq!(decided(seen.clone(), etcd.clone()), (Step::Wait, Because::AuthBlocked));
    etcd.list[1].worth = true;
    seen.upkeep.due = Some(Occasion::Threshold);
    let (step, because) = decided(seen, etcd);
    assert_eq!((step, because), (Step::Defragment(name("b")), Because::Defragmenting));
}

#[test]
fn an_operator_that_would_not_be_known_says_why_nobody_is_asked() {
    let (seen, mut etcd) = three();
    etcd.auth = Auth::Unnamed;
    assert_eq!(decided(seen, etcd), (Step::Wait, Because::ChangingAuth));
}
