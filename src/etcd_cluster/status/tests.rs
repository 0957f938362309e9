//! Tests of the status: figures, reported plans and conditions.

use serde_json::{Value, json};

use super::*;
use crate::api::condition::{ISOLATED, POD_REJECTED, REACHABLE, UPDATING};
use crate::etcd_cluster::decide::decide;
use crate::etcd_cluster::decide::tests::three;
use crate::etcd_cluster::plan::Step;
use crate::etcd_cluster::render::tests::cluster as spec;
use crate::etcd_cluster::state::DesiredState;
use crate::etcd_cluster::state::build::tests::{
    NOW, member as member_of, objects, probe, with_inputs,
};

#[test]
fn sizes_are_rounded_up_in_steps() {
    assert_eq!(round_bytes(0), 0);
    assert_eq!(round_bytes(20_480), 16 << 20);
    assert_eq!(round_bytes((16 << 20) + 1), 32 << 20);
    let large = 1_i64 << 32;
    assert_eq!(round_bytes(large + 1), large + (1 << 30), "a quarter of four gigabytes");
    assert!(round_bytes(i64::MAX) > 0);
}

#[test]
fn lag_below_a_thousand_entries_is_not_reported() {
    assert_eq!(round_lag(10_999, 10_000), 0);
    assert_eq!(round_lag(12_000, 10_000), 2048);
    assert_eq!(round_lag(5, 10), 0);
}

/// Three voters, of which one is unhealthy.
fn one_unhealthy(failing: bool) -> ObservedState {
    let (mut state, mut etcd) = three();
    state.members[2].failing = failing;
    etcd.members[2].healthy = Reading::Known(false);
    ObservedState { etcd: Reading::Known(etcd), ..state }
}

#[test]
fn last_member_to_recover_from_an_update_is_part_of_the_update() {
    let reported = |updating: &str, failing: bool| {
        let cluster: EtcdCluster = serde_json::from_value(serde_json::json!({
            "apiVersion": "etcd.appdelivery.cncf.io/v1", "kind": "EtcdCluster",
            "metadata": {"name": "main"}, "spec": {"version": "3.6.16"},
            "status": {"conditions": [{"type": UPDATING, "status": updating, "reason": "RollingUpdate"}]},
        }))
        .unwrap();
        let state = one_unhealthy(failing);
        let plan = decide(&state);
        assert_eq!(plan.reason, Reason::MemberUnhealthy);
        reported_plan(&cluster, &state, plan).reason
    };
    assert_eq!(reported("True", false), Reason::RollingUpdate);
    assert_eq!(reported("True", true), Reason::MemberUnhealthy, "the member fails to start");
    assert_eq!(reported("False", false), Reason::MemberUnhealthy, "no update is in progress");
}

/// The conditions by type: whether each is true, and its reason.
fn conditions(
    state: &ObservedState,
    reason: Reason,
    rejected_pods: BTreeMap<MemberName, String>,
) -> BTreeMap<String, (bool, String)> {
    let plan = Plan { tasks: Vec::new(), step: Step::Wait, reason };
    let objects = objects(Vec::new(), Vec::new(), Vec::new());
    let probe = probe(&[("main-a", 1, 1, true)], &[(1, "main-a", false)]);
    with_inputs(&spec(json!({})), &objects, &probe, |inputs: &StateInputs<'_>| {
        let certificates = CertificateReport::default();
        let input =
            StatusInput { inputs, state, plan: &plan, error: None, certificates, rejected_pods };
        let reported = json!(conditions::all(&input, &EtcdClusterStatus::default()));
        let all = reported.as_array().unwrap().iter();
        let text = |condition: &Value, key: &str| condition[key].as_str().unwrap().to_owned();
        all.map(|condition| {
            let is_true = condition["status"] == "True";
            (text(condition, "type"), (is_true, text(condition, "reason")))
        })
        .collect()
    })
}

#[test]
fn rollback_stays_reported_during_defragmentation() {
    let reported = |rollback, version| {
        let mut state = one_unhealthy(false);
        state.desired = DesiredState { version, rollback, ..state.desired };
        if let Reading::Known(etcd) = &mut state.etcd {
            etcd.members[2].healthy = Reading::Known(true);
        }
        let all = conditions(&state, Reason::Defragmenting, BTreeMap::new());
        ["Ready", "Stalled", UPDATING].map(|name| all[name].clone())
    };
    let with = |is_true, reason: &str| (is_true, reason.to_owned());
    let [ready, stalled, _] = reported(Rollback::Unavailable, VersionProgress::AtTarget);
    assert_eq!((ready, stalled), (with(true, "Defragmenting"), with(false, "NotStalled")));
    let rolled_back = Reason::RolledBack.name();
    let [ready, stalled, updating] = reported(Rollback::Active, VersionProgress::AtTarget);
    assert_eq!((ready, stalled), (with(false, rolled_back), with(true, rolled_back)));
    assert_eq!(updating, with(false, rolled_back));
    let [ready, stalled, _] = reported(Rollback::Unavailable, VersionProgress::NoPath);
    let no_path = Reason::NoUpgradePath.name();
    assert_eq!((ready, stalled), (with(false, no_path), with(true, no_path)));
}

#[test]
fn cluster_is_stalled_only_if_the_user_must_act() {
    let is_stalled = |failing, blocking_alarm, reason| {
        let mut state = one_unhealthy(failing);
        if let Reading::Known(etcd) = &mut state.etcd {
            etcd.blocking_alarm = blocking_alarm;
        }
        conditions(&state, reason, BTreeMap::new())["Stalled"].0
    };
    assert!(is_stalled(true, false, Reason::RollingUpdateBlocked), "no rollback is available");
    assert!(!is_stalled(true, true, Reason::RollingUpdateBlocked), "the alarm is resolved first");
    assert!(is_stalled(true, false, Reason::QuorumLost), "the member fails to start");
    assert!(!is_stalled(false, false, Reason::QuorumLost), "the member may lack only the quorum");
}

#[test]
fn member_reports_a_rejected_pod_and_isolation() {
    let healthy_reason = |read_ok: Option<bool>, rejected: &[(&str, &str)]| {
        let object = member_of("main-a", NOW, json!({}));
        let objects = objects(vec![object], Vec::new(), Vec::new());
        let reachable: Vec<_> = read_ok.map(|ok| ("main-a", 1, 1, ok)).into_iter().collect();
        let probe = probe(&reachable, &[(1, "main-a", false)]);
        let rejected =
            rejected.iter().map(|(name, error)| (MemberName((*name).into()), (*error).into()));
        with_inputs(&spec(json!({})), &objects, &probe, |inputs: &StateInputs<'_>| {
            let state = inputs.build();
            let plan = decide(&state);
            let input = StatusInput {
                inputs,
                state: &state,
                plan: &plan,
                error: None,
                certificates: CertificateReport::default(),
                rejected_pods: rejected.collect(),
            };
            let reported = json!(member_status(&input, &objects.members[0]));
            reported["conditions"][0]["reason"].as_str().unwrap().to_owned()
        })
    };
    assert_eq!(healthy_reason(Some(true), &[]), REACHABLE);
    assert_eq!(healthy_reason(Some(false), &[]), ISOLATED);
    assert_eq!(healthy_reason(None, &[]), "PodMissing");
    assert_eq!(healthy_reason(None, &[("main-a", "exceeded quota")]), POD_REJECTED);
}
