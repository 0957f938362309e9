//! Rules that meet, one sentence each. What follows from them step by step is walked in `tests/convergence.rs`.

use super::*;
use crate::etcd_cluster::state::defragmentation::{
    DefragRun, DefragTrigger, Defragmentation, Quota,
};
use crate::etcd_cluster::state::{
    BootstrapRecord, ClusterId, DesiredState, Downgrade, Intent, ListedMember, Member, MemberId,
    MemberName, PodState, TemplateState, VolumeState,
};
use crate::etcd_cluster::transport::Scheme;

fn name(text: &str) -> MemberName {
    MemberName(text.to_owned())
}

fn member(text: &str) -> Member {
    Member {
        name: name(text),
        intent: Intent::Bootstrap,
        had_pod: true,
        pod: Reading::Known(PodState::Active),
        volume: Reading::Known(VolumeState::Present),
        made: TemplateState::UpToDate,
        given_up: false,
        fails: false,
        address: Scheme::Https,
    }
}

pub(crate) fn entry(id: u64, text: &str) -> ListedMember {
    ListedMember {
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
pub(crate) fn three() -> (ObservedState, EtcdState) {
    let etcd = EtcdState {
        cluster: ClusterId(7),
        leader: Some(MemberId(1)),
        list: vec![entry(1, "a"), entry(2, "b"), entry(3, "c")],
        alarmed: false,
        space: Quota::Ok,
        corrupt: false,
        log_lacks: 0,
        lowering: Downgrade::None,
        auth: AuthState::InSync,
    };
    let state = ObservedState {
        wanted: DesiredState {
            replicas: 3,
            paused: false,
            durable: true,
            course: VersionProgress::AtTarget,
            way_back: Rollback::Unavailable,
            peers: Scheme::Https,
            clients_move: false,
        },
        record: BootstrapRecord { formed: Some(ClusterId(7)), ..BootstrapRecord::default() },
        members: vec![member("a"), member("b"), member("c")],
        orphans: Vec::new(),
        retained: Vec::new(),
        predecessors: Vec::new(),
        etcd: Reading::Unknown,
        free_names: Vec::new(),
        upkeep: Defragmentation::default(),
    };
    (state, etcd)
}

fn decision(state: ObservedState, etcd: EtcdState) -> (Step, Reason) {
    let plan = decide(&ObservedState { etcd: Reading::Known(etcd), ..state });
    (plan.step, plan.reason)
}

#[test]
fn who_does_not_answer_may_complete_a_majority_as_long_as_it_is_not_given_up() {
    let reason_for = |of: [Option<u64>; 3], is_well: bool, given_up: bool| {
        let (mut state, mut etcd) = three();
        etcd.corrupt = true;
        for (entry, copy) in etcd.list.iter_mut().zip(of) {
            entry.copy = copy;
        }
        etcd.list[1].healthy = Reading::Known(is_well);
        state.members[1].given_up = given_up;
        decision(state, etcd).1
    };
    assert_eq!(reason_for([Some(1), None, Some(2)], false, false), Reason::CorruptMember);
    assert_eq!(reason_for([Some(1), None, Some(2)], false, true), Reason::CorruptionUnresolved);
    assert_eq!(reason_for([Some(1), None, Some(2)], true, false), Reason::CorruptionUnresolved);
    assert_eq!(reason_for([Some(1), Some(3), Some(2)], true, false), Reason::CorruptionUnresolved);
    assert_eq!(reason_for([Some(1), None, Some(1)], true, false), Reason::CorruptionUnresolved);
    assert_eq!(reason_for([Some(1), None, Some(1)], false, false), Reason::CorruptMember);
}

#[test]
fn a_change_that_nobody_starts_with_is_taken_back_also_where_data_differs() {
    let (mut state, mut etcd) = three();
    etcd.corrupt = true;
    for entry in &mut etcd.list {
        entry.copy = Some(1);
    }
    etcd.list[1] = ListedMember { healthy: Reading::Known(false), copy: None, ..entry(2, "b") };
    state.wanted.way_back = Rollback::Available;
    state.members[0].made = TemplateState::Outdated;
    state.members[2].made = TemplateState::Outdated;
    assert_eq!(decision(state.clone(), etcd.clone()), (Step::Wait, Reason::CorruptMember));
    state.members[1].fails = true;
    assert_eq!(decision(state, etcd), (Step::RollBack(name("b")), Reason::UpdateFailed));
}

#[test]
fn while_an_alarm_forbids_it_nobody_is_made_anew_not_even_who_is_down() {
    let (mut state, mut etcd) = three();
    state.members[1].made = TemplateState::Outdated;
    etcd.list[1].healthy = Reading::Known(false);
    let (step, reason) = decision(state.clone(), etcd.clone());
    assert_eq!((step, reason), (Step::RecreatePod(name("b")), Reason::RollingUpdate));
    etcd.alarmed = true;
    assert_eq!(decision(state, etcd), (Step::Wait, Reason::RollingUpdateBlocked));
}

#[test]
fn one_of_few_that_rewrites_its_file_is_no_loss() {
    let reason = |count: usize, occasion: Option<DefragTrigger>| {
        let (mut state, _) = three();
        state.members.truncate(count);
        state.wanted.replicas = count;
        let turns = vec![name("a")];
        state.upkeep.rewriting = occasion.map(|_| name("a"));
        state.upkeep.round = occasion.map(|occasion| DefragRun { occasion, turns });
        decide(&state).reason
    };
    assert_eq!(reason(1, Some(DefragTrigger::Schedule)), Reason::Defragmenting);
    assert_eq!(reason(2, Some(DefragTrigger::NoSpace)), Reason::NoSpace);
    assert_eq!(reason(1, None), Reason::QuorumLost);
    assert_eq!(reason(3, Some(DefragTrigger::Schedule)), Reason::QuorumLost, "two more are away");
    let (mut state, _) = three();
    state.members.truncate(1);
    state.upkeep.rewriting = Some(name("a"));
    state.upkeep.round =
        Some(DefragRun { occasion: DefragTrigger::Schedule, turns: vec![name("a")] });
    state.members[0].fails = true;
    assert_eq!(decide(&state).reason, Reason::QuorumLost, "it crashes");
}

#[test]
fn files_are_looked_after_also_while_a_password_is_missing() {
    let (mut state, mut etcd) = three();
    etcd.auth = AuthState::RootPasswordMissing;
    assert_eq!(decision(state.clone(), etcd.clone()), (Step::Wait, Reason::RootPasswordMissing));
    etcd.list[1].worth = true;
    state.upkeep.due = Some(DefragTrigger::Threshold);
    let (step, reason) = decision(state, etcd);
    assert_eq!((step, reason), (Step::Defragment(name("b")), Reason::Defragmenting));
}

#[test]
fn an_operator_that_would_not_be_known_says_why_nobody_is_asked() {
    let (state, mut etcd) = three();
    etcd.auth = AuthState::OperatorNotRecognized;
    assert_eq!(decision(state, etcd), (Step::Wait, Reason::ConfiguringAuth));
}
