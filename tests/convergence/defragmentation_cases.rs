//! Defragmentation, NOSPACE and corruption, under faults.

use std::collections::BTreeSet;

use quorate::etcd_cluster::plan::{Reason, Step};
use quorate::etcd_cluster::state::MemberName;

use super::model::{DataFault, Fault, Model};
use super::{MAX_RECONCILES, converge, decide_checked, explore, healthy_cluster, reconciled};

fn name(text: &str) -> MemberName {
    MemberName(text.to_owned())
}

fn with_data_faults(faults: &[DataFault]) -> Model {
    let model = healthy_cluster().with_db_files();
    faults.iter().fold(model, |model, fault| model.with_fault(&Fault::Data(fault.clone())))
}

fn members(model: &Model) -> BTreeSet<MemberName> {
    model.state().members.into_iter().map(|member| member.name).collect()
}

#[test]
fn defragmentation_completes_under_any_single_fault() {
    let free = ["a", "b", "c"].map(|member| DataFault::FreeSpace(name(member)));
    println!("3 members, free space, 1 fault: {} states", explore(with_data_faults(&free), 1));
    let states = explore(healthy_cluster().with_db_files(), 2);
    println!("3 members, healthy, 2 faults: {states} states");
}

#[test]
fn space_is_reclaimed_under_any_single_fault() {
    for fault in [DataFault::QuotaFilledByRevisions, DataFault::QuotaFilledByKeys] {
        let states = explore(with_data_faults(std::slice::from_ref(&fault)), 1);
        println!("3 members, {fault:?}, 1 fault: {states} states");
    }
}

#[test]
fn corruption_is_resolved_under_any_single_fault() {
    for corrupt in ["a", "b", "c"] {
        let states = explore(with_data_faults(&[DataFault::Corrupt(name(corrupt))]), 1);
        println!("3 members, {corrupt} corrupt, 1 fault: {states} states");
    }
}

#[test]
fn single_member_is_defragmented_and_reclaims_space_under_any_faults() {
    let model = reconciled(Model::new(1, true, &[1]).with_db_files(), 20);
    println!("1 member, data faults, 3 faults: {} states", explore(model, 3));
}

/// Takes minutes: `make convergence-long`.
#[test]
#[ignore = "takes minutes; run by make convergence-long"]
fn data_faults_are_resolved_under_any_two_faults() {
    for fault in [
        DataFault::QuotaFilledByRevisions,
        DataFault::QuotaFilledByKeys,
        DataFault::Corrupt(name("a")),
        DataFault::FreeSpace(name("a")),
    ] {
        let states = explore(with_data_faults(std::slice::from_ref(&fault)), 2);
        println!("3 members, {fault:?}, 2 faults: {states} states");
    }
}

/// The actions for a cluster with an exceeded quota, on one long path.
pub(super) fn actions_of_a_full_cluster() -> BTreeSet<&'static str> {
    let mut model = with_data_faults(&[DataFault::QuotaFilledByRevisions]);
    let mut done = BTreeSet::new();
    for _ in 0..20 {
        let plan = decide_checked(&model);
        done.extend(plan.action_names());
        model = model.apply(&plan, usize::MAX);
    }
    done
}

/// Every step until nothing changes.
fn steps(model: &Model) -> (Model, Vec<Step>, Reason) {
    let mut model = model.clone();
    let mut done = Vec::new();
    for _ in 0..MAX_RECONCILES {
        let plan = decide_checked(&model);
        let after = model.apply(&plan, usize::MAX);
        assert_eq!(after.violation, None);
        if plan.step != Step::Wait {
            done.push(plan.step.clone());
        }
        if after == model {
            return (model, done, plan.reason);
        }
        model = after;
    }
    panic!("no convergence: {model:#?}")
}

#[test]
fn members_are_defragmented_one_at_a_time_with_the_leader_last() {
    let free = ["a", "b", "c"].map(|member| DataFault::FreeSpace(name(member)));
    let model = with_data_faults(&free);
    let leader = model.state().etcd.known().and_then(|etcd| {
        let leader = etcd.members.iter().find(|entry| etcd.leads(entry.id));
        leader.map(|entry| entry.name.clone())
    });
    let (_, done, reason) = steps(&model);
    assert_eq!(reason, Reason::Healthy);
    let defragmented: Vec<&MemberName> = done
        .iter()
        .filter_map(|step| if let Step::Defragment(name) = step { Some(name) } else { None })
        .collect();
    assert_eq!(defragmented.len(), 3, "{done:?}");
    assert_eq!(defragmented.last().copied(), leader.as_ref(), "{done:?}");
    assert!(done.iter().any(|step| matches!(step, Step::MoveLeader(_))), "{done:?}");
    assert_eq!(done.last(), Some(&Step::FinishDefragmentation));
}

#[test]
fn quota_filled_by_keys_is_reported_and_not_retried_for_ever() {
    let (end, reason, _) = converge(&with_data_faults(&[DataFault::QuotaFilledByKeys]), None);
    assert_eq!(reason, Reason::NoSpaceUnresolved, "{end:#?}");
    let (_, done, _) = steps(&end.advance_time());
    assert!(done.is_empty(), "{done:?}");
}

#[test]
fn corrupt_member_is_replaced_if_there_is_a_majority_and_otherwise_none_is() {
    let before = members(&healthy_cluster());
    for corrupt in &before {
        let model = with_data_faults(&[DataFault::Corrupt(corrupt.clone())]);
        let (end, reason, _) = converge(&model, None);
        assert_eq!(reason, Reason::Healthy, "{end:#?}");
        let after = members(&end);
        let replaced: Vec<&MemberName> = before.difference(&after).collect();
        assert_eq!(replaced, [corrupt]);
    }
    let five = reconciled(Model::new(5, true, &[5]).with_db_files(), 30);
    let two = ["a", "d"].map(|member| Fault::Data(DataFault::Corrupt(name(member))));
    let model = two.iter().fold(five, |model, fault| model.with_fault(fault));
    let (end, reason, _) = converge(&model, None);
    let names: Vec<String> = end.state().members.into_iter().map(|member| member.name.0).collect();
    assert_eq!((reason, names.join(" ")), (Reason::Healthy, "b c e f g".to_owned()));
    let all = with_data_faults(&[DataFault::Corrupt(name("a")), DataFault::Corrupt(name("b"))]);
    // The user changes the spec as well.
    let edited = all.with_fault(&Fault::ChangeTemplate).with_fault(&Fault::SetReplicas(5));
    let (end, done, reason) = steps(&edited);
    assert_eq!((reason, done), (Reason::CorruptionUnresolved, Vec::new()), "{end:#?}");
}
