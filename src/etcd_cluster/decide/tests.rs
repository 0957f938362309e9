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
        started: true,
        pod: Reading::Known(PodState::Active),
        volume: Reading::Known(VolumeState::Present),
        template: TemplateState::UpToDate,
        replacement_due: false,
        failing: false,
        peer_scheme: Scheme::Https,
    }
}

pub(crate) fn entry(id: u64, text: &str) -> ListedMember {
    ListedMember {
        id: MemberId(id),
        name: name(text),
        is_learner: false,
        healthy: Reading::Known(true),
        peer_scheme: Scheme::Https,
        should_defragment: false,
        data_hash: None,
    }
}

/// Three voters that are well.
pub(crate) fn three() -> (ObservedState, EtcdState) {
    let etcd = EtcdState {
        cluster: ClusterId(7),
        leader: Some(MemberId(1)),
        members: vec![entry(1, "a"), entry(2, "b"), entry(3, "c")],
        blocking_alarm: false,
        quota: Quota::Ok,
        corrupt: false,
        raft_log_missing: 0,
        downgrade: Downgrade::None,
        auth: AuthState::InSync,
    };
    let state = ObservedState {
        desired: DesiredState {
            replicas: 3,
            paused: false,
            persistent: true,
            version: VersionProgress::AtTarget,
            rollback: Rollback::Unavailable,
            peer_scheme: Scheme::Https,
            client_tls_transition: false,
        },
        bootstrap: BootstrapRecord { cluster_id: Some(ClusterId(7)), ..BootstrapRecord::default() },
        members: vec![member("a"), member("b"), member("c")],
        orphaned_volumes: Vec::new(),
        retained_volumes: Vec::new(),
        previous_cluster_objects: Vec::new(),
        etcd: Reading::Unknown,
        candidate_names: Vec::new(),
        defragmentation: Defragmentation::default(),
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
        for (entry, copy) in etcd.members.iter_mut().zip(of) {
            entry.data_hash = copy;
        }
        etcd.members[1].healthy = Reading::Known(is_well);
        state.members[1].replacement_due = given_up;
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
    for entry in &mut etcd.members {
        entry.data_hash = Some(1);
    }
    etcd.members[1] =
        ListedMember { healthy: Reading::Known(false), data_hash: None, ..entry(2, "b") };
    state.desired.rollback = Rollback::Available;
    state.members[0].template = TemplateState::Outdated;
    state.members[2].template = TemplateState::Outdated;
    assert_eq!(decision(state.clone(), etcd.clone()), (Step::Wait, Reason::CorruptMember));
    state.members[1].failing = true;
    assert_eq!(decision(state, etcd), (Step::RollBack(name("b")), Reason::UpdateFailed));
}

#[test]
fn while_an_alarm_forbids_it_nobody_is_made_anew_not_even_who_is_down() {
    let (mut state, mut etcd) = three();
    state.members[1].template = TemplateState::Outdated;
    etcd.members[1].healthy = Reading::Known(false);
    let (step, reason) = decision(state.clone(), etcd.clone());
    assert_eq!((step, reason), (Step::RecreatePod(name("b")), Reason::RollingUpdate));
    etcd.blocking_alarm = true;
    assert_eq!(decision(state, etcd), (Step::Wait, Reason::RollingUpdateBlocked));
}

#[test]
fn one_of_few_that_rewrites_its_file_is_no_loss() {
    let reason = |count: usize, occasion: Option<DefragTrigger>| {
        let (mut state, _) = three();
        state.members.truncate(count);
        state.desired.replicas = count;
        let turns = vec![name("a")];
        state.defragmentation.in_progress = occasion.map(|_| name("a"));
        state.defragmentation.run =
            occasion.map(|occasion| DefragRun { trigger: occasion, completed: turns });
        decide(&state).reason
    };
    assert_eq!(reason(1, Some(DefragTrigger::Schedule)), Reason::Defragmenting);
    assert_eq!(reason(2, Some(DefragTrigger::NoSpace)), Reason::NoSpace);
    assert_eq!(reason(1, None), Reason::QuorumLost);
    assert_eq!(reason(3, Some(DefragTrigger::Schedule)), Reason::QuorumLost, "two more are away");
    let (mut state, _) = three();
    state.members.truncate(1);
    state.defragmentation.in_progress = Some(name("a"));
    state.defragmentation.run =
        Some(DefragRun { trigger: DefragTrigger::Schedule, completed: vec![name("a")] });
    state.members[0].failing = true;
    assert_eq!(decide(&state).reason, Reason::QuorumLost, "it crashes");
}

#[test]
fn files_are_looked_after_also_while_a_password_is_missing() {
    let (mut state, mut etcd) = three();
    etcd.auth = AuthState::RootPasswordMissing;
    assert_eq!(decision(state.clone(), etcd.clone()), (Step::Wait, Reason::RootPasswordMissing));
    etcd.members[1].should_defragment = true;
    state.defragmentation.due = Some(DefragTrigger::Threshold);
    let (step, reason) = decision(state, etcd);
    assert_eq!((step, reason), (Step::Defragment(name("b")), Reason::Defragmenting));
}

#[test]
fn an_operator_that_would_not_be_known_says_why_nobody_is_asked() {
    let (state, mut etcd) = three();
    etcd.auth = AuthState::OperatorNotRecognized;
    assert_eq!(decision(state, etcd), (Step::Wait, Reason::ConfiguringAuth));
}
