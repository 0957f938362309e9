//! Tests of how rules interact. Sequences of decisions are tested in `tests/convergence.rs`.

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

/// Three healthy voters.
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
fn unreachable_voter_may_complete_a_majority_until_its_replacement_is_due() {
    let reason_for = |hashes: [Option<u64>; 3], is_healthy: bool, replacement_due: bool| {
        let (mut state, mut etcd) = three();
        etcd.corrupt = true;
        for (entry, hash) in etcd.members.iter_mut().zip(hashes) {
            entry.data_hash = hash;
        }
        etcd.members[1].healthy = Reading::Known(is_healthy);
        state.members[1].replacement_due = replacement_due;
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
fn failing_update_is_rolled_back_even_while_data_is_corrupt() {
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
fn blocking_alarm_stops_a_rolling_update_even_of_an_unhealthy_member() {
    let (mut state, mut etcd) = three();
    state.members[1].template = TemplateState::Outdated;
    etcd.members[1].healthy = Reading::Known(false);
    let (step, reason) = decision(state.clone(), etcd.clone());
    assert_eq!((step, reason), (Step::RecreatePod(name("b")), Reason::RollingUpdate));
    etcd.blocking_alarm = true;
    assert_eq!(decision(state, etcd), (Step::Wait, Reason::RollingUpdateBlocked));
}

#[test]
fn missing_quorum_is_expected_while_one_of_two_members_is_defragmented() {
    let reason = |count: usize, trigger: Option<DefragTrigger>| {
        let (mut state, _) = three();
        state.members.truncate(count);
        state.desired.replicas = count;
        let completed = vec![name("a")];
        state.defragmentation.in_progress = trigger.map(|_| name("a"));
        state.defragmentation.run = trigger.map(|trigger| DefragRun { trigger, completed });
        decide(&state).reason
    };
    assert_eq!(reason(1, Some(DefragTrigger::Schedule)), Reason::Defragmenting);
    assert_eq!(reason(2, Some(DefragTrigger::NoSpace)), Reason::NoSpace);
    assert_eq!(reason(1, None), Reason::QuorumLost);
    assert_eq!(reason(3, Some(DefragTrigger::Schedule)), Reason::QuorumLost, "two more are down");
    let (mut state, _) = three();
    state.members.truncate(1);
    state.defragmentation.in_progress = Some(name("a"));
    state.defragmentation.run =
        Some(DefragRun { trigger: DefragTrigger::Schedule, completed: vec![name("a")] });
    state.members[0].failing = true;
    assert_eq!(decide(&state).reason, Reason::QuorumLost, "crash loop");
}

#[test]
fn members_are_defragmented_even_while_the_root_password_is_missing() {
    let (mut state, mut etcd) = three();
    etcd.auth = AuthState::RootPasswordMissing;
    assert_eq!(decision(state.clone(), etcd.clone()), (Step::Wait, Reason::RootPasswordMissing));
    etcd.members[1].should_defragment = true;
    state.defragmentation.due = Some(DefragTrigger::Threshold);
    let (step, reason) = decision(state, etcd);
    assert_eq!((step, reason), (Step::Defragment(name("b")), Reason::Defragmenting));
}

#[test]
fn unrecognized_operator_certificate_keeps_authentication_disabled() {
    let (state, mut etcd) = three();
    etcd.auth = AuthState::OperatorNotRecognized;
    assert_eq!(decision(state, etcd), (Step::Wait, Reason::ConfiguringAuth));
}
