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
    NOW, member as member_of, objects as stock, probe as heard, with_inputs as look_for,
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
fn one_unhealthy(fails: bool) -> ObservedState {
    let (mut seen, mut etcd) = three();
    seen.members[2].failing = fails;
    etcd.members[2].healthy = Reading::Known(false);
    ObservedState { etcd: Reading::Known(etcd), ..seen }
}

#[test]
fn last_member_to_recover_from_an_update_is_part_of_the_update() {
    let reported = |updating: &str, fails: bool| {
        let cluster: EtcdCluster = serde_json::from_value(serde_json::json!({
            "apiVersion": "etcd.appdelivery.cncf.io/v1", "kind": "EtcdCluster",
            "metadata": {"name": "main"}, "spec": {"version": "3.6.16"},
            "status": {"conditions": [{"type": UPDATING, "status": updating, "reason": "RollingUpdate"}]},
        }))
        .unwrap();
        let seen = one_unhealthy(fails);
        let plan = decide(&seen);
        assert_eq!(plan.reason, Reason::MemberUnhealthy);
        reported_plan(&cluster, &seen, plan).reason
    };
    assert_eq!(reported("True", false), Reason::RollingUpdate);
    assert_eq!(reported("True", true), Reason::MemberUnhealthy, "it fails to start");
    assert_eq!(reported("False", false), Reason::MemberUnhealthy, "no update is in progress");
}

/// The conditions by type: whether each is true, and its reason.
fn conditions(
    seen: &ObservedState,
    because: Reason,
    rejected_pods: BTreeMap<MemberName, String>,
) -> BTreeMap<String, (bool, String)> {
    let plan = Plan { tasks: Vec::new(), step: Step::Wait, reason: because };
    let stock = stock(Vec::new(), Vec::new(), Vec::new());
    let heard = heard(&[("main-a", 1, 1, true)], &[(1, "main-a", false)]);
    look_for(&spec(json!({})), &stock, &heard, |inputs: &StateInputs<'_>| {
        let certificates = CertificateReport::default();
        let input = StatusInput {
            inputs,
            state: seen,
            plan: &plan,
            error: None,
            certificates,
            rejected_pods,
        };
        let reported = json!(conditions::all(&input, &EtcdClusterStatus::default()));
        let all = reported.as_array().unwrap().iter();
        let text = |it: &Value, key: &str| it[key].as_str().unwrap().to_owned();
        all.map(|it| (text(it, "type"), (it["status"] == "True", text(it, "reason")))).collect()
    })
}

#[test]
fn rollback_stays_reported_during_defragmentation() {
    let reported = |way_back, course| {
        let mut seen = one_unhealthy(false);
        seen.desired = DesiredState { version: course, rollback: way_back, ..seen.desired };
        if let Reading::Known(etcd) = &mut seen.etcd {
            etcd.members[2].healthy = Reading::Known(true);
        }
        let all = conditions(&seen, Reason::Defragmenting, BTreeMap::new());
        ["Ready", "Stalled", UPDATING].map(|it| all[it].clone())
    };
    let of = |holds, reason: &str| (holds, reason.to_owned());
    let [ready, stalled, _] = reported(Rollback::Unavailable, VersionProgress::AtTarget);
    assert_eq!((ready, stalled), (of(true, "Defragmenting"), of(false, "NotStalled")));
    let rolled_back = Reason::RolledBack.name();
    let [ready, stalled, updating] = reported(Rollback::Active, VersionProgress::AtTarget);
    assert_eq!((ready, stalled), (of(false, rolled_back), of(true, rolled_back)));
    assert_eq!(updating, of(false, rolled_back));
    let [ready, stalled, _] = reported(Rollback::Unavailable, VersionProgress::NoPath);
    let no_path = Reason::NoUpgradePath.name();
    assert_eq!((ready, stalled), (of(false, no_path), of(true, no_path)));
}

#[test]
fn cluster_is_stalled_only_if_the_user_must_act() {
    let is_stalled = |fails, alarmed, because| {
        let mut seen = one_unhealthy(fails);
        if let Reading::Known(etcd) = &mut seen.etcd {
            etcd.blocking_alarm = alarmed;
        }
        conditions(&seen, because, BTreeMap::new())["Stalled"].0
    };
    assert!(is_stalled(true, false, Reason::RollingUpdateBlocked), "no rollback is available");
    assert!(!is_stalled(true, true, Reason::RollingUpdateBlocked), "the alarm is resolved first");
    assert!(is_stalled(true, false, Reason::QuorumLost), "the member fails to start");
    assert!(!is_stalled(false, false, Reason::QuorumLost), "the member may lack only the quorum");
}

#[test]
fn member_reports_a_rejected_pod_and_isolation() {
    let healthy = |agrees: Option<bool>, rejected: &[(&str, &str)]| {
        let object = member_of("main-a", NOW, json!({}));
        let stock = stock(vec![object], Vec::new(), Vec::new());
        let voices: Vec<_> = agrees.map(|it| ("main-a", 1, 1, it)).into_iter().collect();
        let heard = heard(&voices, &[(1, "main-a", false)]);
        let rejected =
            rejected.iter().map(|(name, error)| (MemberName((*name).into()), (*error).into()));
        look_for(&spec(json!({})), &stock, &heard, |inputs: &StateInputs<'_>| {
            let seen = inputs.build();
            let plan = decide(&seen);
            let input = StatusInput {
                inputs,
                state: &seen,
                plan: &plan,
                error: None,
                certificates: CertificateReport::default(),
                rejected_pods: rejected.collect(),
            };
            let reported = json!(member_status(&input, &stock.members[0]));
            reported["conditions"][0]["reason"].as_str().unwrap().to_owned()
        })
    };
    assert_eq!(healthy(Some(true), &[]), REACHABLE);
    assert_eq!(healthy(Some(false), &[]), ISOLATED);
    assert_eq!(healthy(None, &[]), "PodMissing");
    assert_eq!(healthy(None, &[("main-a", "exceeded quota")]), POD_REJECTED);
}
