//! What is told, one sentence each.

use serde_json::{Value, json};

use super::*;
use crate::etcd_cluster::compose::tests::{NOW, heard, look_for, member as member_of, stock};
use crate::etcd_cluster::decide::decide;
use crate::etcd_cluster::decide::tests::three;
use crate::etcd_cluster::plan::Step;
use crate::etcd_cluster::render::tests::cluster as spec;
use crate::etcd_cluster::seen::Wanted;

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
    let (mut seen, mut etcd) = three();
    seen.members[2].fails = fails;
    etcd.list[2].healthy = Reading::Known(false);
    Seen { etcd: Reading::Known(etcd), ..seen }
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

/// The conditions that are told, by their names: whether each holds, and why.
fn conditions(
    seen: &Seen,
    because: Because,
    refused: BTreeMap<Name, String>,
) -> BTreeMap<String, (bool, String)> {
    let plan = Plan { chores: Vec::new(), step: Step::Wait, because };
    let stock = stock(Vec::new(), Vec::new(), Vec::new());
    let heard = heard(&[("main-a", 1, 1, true)], &[(1, "main-a", false)]);
    look_for(&spec(json!({})), &stock, &heard, |look: &Look<'_>| {
        let tidings = Tidings::default();
        let tale = Tale { look, seen, plan: &plan, trouble: None, tidings, refused };
        let told = json!(conditions::all(&tale, &EtcdClusterStatus::default()));
        let all = told.as_array().unwrap().iter();
        let text = |it: &Value, key: &str| it[key].as_str().unwrap().to_owned();
        all.map(|it| (text(it, "type"), (it["status"] == "True", text(it, "reason")))).collect()
    })
}

#[test]
fn what_was_taken_back_stays_told_while_files_are_looked_after() {
    let told = |way_back, course| {
        let mut seen = one_is_away(false);
        seen.wanted = Wanted { course, way_back, ..seen.wanted };
        if let Reading::Known(etcd) = &mut seen.etcd {
            etcd.list[2].healthy = Reading::Known(true);
        }
        let all = conditions(&seen, Because::Defragmenting, BTreeMap::new());
        ["Ready", "Stalled", "Upgrading"].map(|it| all[it].clone())
    };
    let of = |holds, reason: &str| (holds, reason.to_owned());
    let [ready, stalled, _] = told(WayBack::Unknown, Course::Reached);
    assert_eq!((ready, stalled), (of(true, "Defragmenting"), of(false, "NotStalled")));
    let [ready, stalled, upgrading] = told(WayBack::Taken, Course::Reached);
    assert_eq!((ready, stalled), (of(false, "TakenBack"), of(true, "TakenBack")));
    assert_eq!(upgrading, of(false, "TakenBack"));
    let [ready, stalled, _] = told(WayBack::Unknown, Course::NoWay);
    let unreachable = "VersionUnreachable";
    assert_eq!((ready, stalled), (of(false, unreachable), of(true, unreachable)));
}

#[test]
fn a_person_is_asked_for_where_nothing_goes_on_without_one() {
    let is_stalled = |fails, alarmed, because| {
        let mut seen = one_is_away(fails);
        if let Reading::Known(etcd) = &mut seen.etcd {
            etcd.alarmed = alarmed;
        }
        conditions(&seen, because, BTreeMap::new())["Stalled"].0
    };
    assert!(is_stalled(true, false, Because::RollingBlocked), "there is no way back");
    assert!(!is_stalled(true, true, Because::RollingBlocked), "the alarm is to end first");
    assert!(is_stalled(true, false, Because::QuorumLost), "it does not start");
    assert!(!is_stalled(false, false, Because::QuorumLost), "it may lack only the others");
}

#[test]
fn a_member_says_that_its_pod_is_refused_or_that_it_is_left_out() {
    let healthy = |agrees: Option<bool>, refused: &[(&str, &str)]| {
        let object = member_of("main-a", NOW, json!({}));
        let stock = stock(vec![object], Vec::new(), Vec::new());
        let voices: Vec<_> = agrees.map(|it| ("main-a", 1, 1, it)).into_iter().collect();
        let heard = heard(&voices, &[(1, "main-a", false)]);
        let refused = refused.iter().map(|(name, why)| (Name((*name).into()), (*why).into()));
        look_for(&spec(json!({})), &stock, &heard, |look: &Look<'_>| {
            let seen = look.seen();
            let plan = decide(&seen);
            let (tidings, refused) = (Tidings::default(), refused.collect());
            let tale = Tale { look, seen: &seen, plan: &plan, trouble: None, tidings, refused };
            let told = json!(member(&tale, &stock.members[0]));
            told["conditions"][0]["reason"].as_str().unwrap().to_owned()
        })
    };
    assert_eq!(healthy(Some(true), &[]), "Answers");
    assert_eq!(healthy(Some(false), &[]), "LeftOut");
    assert_eq!(healthy(None, &[]), "NoPod");
    assert_eq!(healthy(None, &[("main-a", "exceeded quota")]), "PodRefused");
}
