//! What one look makes of objects and answers, one sentence each.
#![expect(clippy::needless_pass_by_value, reason = "JSON is written where it is handed over")]

use serde_json::{Value, json};

use super::*;
use crate::api::etcd_types::{EndpointStatus, MemberEntry};
use crate::api::names;
use crate::etcd_cluster::observe::etcd::MemberProbe;
use crate::etcd_cluster::render::tests::{UID, blueprint, cluster, name};
use crate::etcd_cluster::state::AuthState;

pub(crate) const NOW: &str = "2026-11-16T12:00:00Z";

pub(crate) fn object<K: serde::de::DeserializeOwned>(json: Value) -> K {
    serde_json::from_value(json).unwrap()
}

pub(crate) fn stock(members: Vec<Value>, pods: Vec<Value>, claims: Vec<Value>) -> ClusterObjects {
    ClusterObjects {
        cluster: object(json!({
            "apiVersion": "etcd.appdelivery.cncf.io/v1", "kind": "EtcdCluster",
            "metadata": {"name": "main", "namespace": "space", "uid": UID}, "spec": {"version": "3.6.16"},
        })),
        members: members.into_iter().map(object).collect(),
        pods: pods.into_iter().map(object).collect(),
        pvcs: claims.into_iter().map(object).collect(),
        services: Vec::new(),
        pdbs: Vec::new(),
        previous_cluster_objects: Vec::new(),
    }
}

pub(crate) fn member(name: &str, made: &str, status: Value) -> Value {
    json!({
        "apiVersion": "etcd.appdelivery.cncf.io/v1", "kind": "EtcdMember",
        "metadata": {"name": name, "creationTimestamp": made},
        "spec": {"clusterName": "main", "name": name, "peerURL": "https://x:2380", "intent": "Join", "started": true},
        "status": status,
    })
}

pub(crate) fn pod(name: &str, container: Value) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"containers": []},
        "status": {"containerStatuses": [container]},
    })
}

pub(crate) fn container(state: Value, last: Value, restarts: i32) -> Value {
    json!({"name": "etcd", "image": "", "imageID": "", "ready": false, "restartCount": restarts,
           "state": state, "lastState": last})
}

fn claim(name: &str, uid: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {names::CLUSTER_UID_LABEL: uid}}})
}

pub(crate) fn seen(stock: &ClusterObjects, heard: &EtcdProbe) -> ObservedState {
    look_for(&cluster(json!({})), stock, heard, |inputs: &StateInputs<'_>| inputs.build())
}

pub(crate) fn look_for<T>(
    spec: &crate::api::etcd_cluster::validated::EtcdCluster,
    stock: &ClusterObjects,
    heard: &EtcdProbe,
    what: impl FnOnce(&StateInputs<'_>) -> T,
) -> T {
    let blueprint = blueprint(spec);
    let names = vec![name("main-a"), name("main-z")];
    let worked = rollback::last_working_template(&blueprint, stock, heard);
    let before = worked.map(|text| {
        let object = rollback::with_template_fields(&stock.cluster, &text).unwrap();
        PreviousSpec { template: text, spec: cluster(object["spec"].clone()) }
    });
    what(&StateInputs {
        blueprint: &blueprint,
        objects: stock,
        probe: heard,
        path: UpgradePath::new(spec.version, stock, heard),
        previous: before.as_ref(),
        now: NOW.parse().unwrap(),
        observing_since: Timestamp::UNIX_EPOCH,
        names,
        trust: None,
    })
}

fn standing(id: u64, applied: u64) -> EndpointStatus {
    EndpointStatus {
        cluster: 7,
        member: id,
        leader: 1,
        applied_index: applied,
        raft_index: applied,
        ..EndpointStatus::default()
    }
}

pub(crate) fn heard(voices: &[(&str, u64, u64, bool)], list: &[(u64, &str, bool)]) -> EtcdProbe {
    let voice = |(of, id, applied, agrees): &(&str, u64, u64, bool)| {
        let standing = Some(standing(*id, *applied));
        (name(of), MemberProbe { status: standing, linearizable_read_ok: *agrees, error: None })
    };
    let listed = |(id, url, learner): &(u64, &str, bool)| MemberEntry {
        id: *id,
        peer_urls: vec![format!("https://{url}.space.svc:2380")],
        is_learner: *learner,
    };
    let council = QuorumView {
        queried_member: name("main-a"),
        cluster_id: 7,
        leader: 1,
        members: list.iter().map(listed).collect(),
        alarms: Vec::new(),
        revision: 1,
    };
    EtcdProbe {
        members: voices.iter().map(voice).collect(),
        quorum: Reading::Known(council),
        auth: AuthState::InSync,
        data_hashes: std::collections::BTreeMap::new(),
    }
}

#[test]
fn members_are_in_the_order_in_which_they_were_made() {
    let late = member("main-a", "2026-11-16T11:00:00Z", json!({}));
    let early = member("main-b", "2026-11-16T10:00:00Z", json!({}));
    let seen = seen(&stock(vec![late, early], vec![], vec![]), &EtcdProbe::none());
    let names: Vec<_> = seen.members.iter().map(|it| it.name.0.as_str()).collect();
    assert_eq!(names, ["main-b", "main-a"]);
    assert_eq!(seen.etcd, Reading::Unknown, "nobody was asked");
    assert_eq!(seen.candidate_names, [name("main-z")], "a name that is taken is not free");
}

#[test]
fn a_volume_of_another_cluster_is_not_ours() {
    let claims = vec![claim("main-old", "another"), claim("main-own", UID)];
    let seen = seen(&stock(vec![], vec![], claims), &EtcdProbe::none());
    assert_eq!(seen.retained_volumes, [name("main-old")]);
    assert_eq!(seen.orphaned_volumes, [name("main-own")]);
}

#[test]
fn members_and_entries_belong_together_by_their_peer_urls() {
    let heard = heard(
        &[("main-b", 2, 10, true), ("main-a", 1, 10, true)],
        &[(1, "main-a", false), (2, "main-b", false), (3, "main-c", false)],
    );
    let seen = seen(&stock(vec![], vec![], vec![]), &heard);
    let etcd = seen.etcd.known().unwrap();
    assert!(etcd.entry(&name("main-a")).unwrap().is_healthy());
    assert!(!etcd.entry(&name("main-c")).unwrap().is_healthy(), "it was not heard");
    assert_eq!(etcd.entry(&name("main-b")).unwrap().id, MemberId(2));
}

#[test]
fn an_answer_of_somebody_else_under_a_name_is_none_of_its_members() {
    let heard = heard(&[("main-a", 9, 10, true)], &[(1, "main-a", false)]);
    let seen = seen(&stock(vec![], vec![], vec![]), &heard);
    assert!(!seen.etcd.known().unwrap().entry(&name("main-a")).unwrap().is_healthy());
}

#[test]
fn a_learner_is_well_once_it_is_near() {
    for (applied, well) in [(9_500, true), (100, false)] {
        let heard = heard(
            &[("main-a", 1, 10_000, true), ("main-b", 2, applied, false)],
            &[(1, "main-a", false), (2, "main-b", true)],
        );
        let seen = seen(&stock(vec![], vec![], vec![]), &heard);
        let entry = seen.etcd.known().unwrap().entry(&name("main-b")).unwrap();
        assert_eq!(entry.is_healthy(), well, "{applied}");
    }
}

#[test]
fn a_refusal_is_known_by_its_code_and_by_nothing_else() {
    let ended = |code: i32| json!({"terminated": {"exitCode": code}});
    let waits = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    let runs = json!({"running": {}});
    for (state, last, expected) in [
        (ended(77), json!({}), PodState::DataMissing),
        (waits.clone(), ended(77), PodState::DataMissing),
        (waits, ended(1), PodState::Active),
        (runs, ended(77), PodState::Active),
    ] {
        let pod: k8s_openapi::api::core::v1::Pod = object(pod("main-a", container(state, last, 1)));
        assert_eq!(pod::pod_state(&pod), expected);
    }
}

#[test]
fn a_pod_that_was_made_from_another_spec_is_stale_until_etcd_runs_in_it() {
    let other = cluster(json!({"resources": {"requests": {"cpu": "7"}}}));
    let now = pod::template_hash(&blueprint(&cluster(json!({}))), &name("main-a")).unwrap();
    let then = pod::template_hash(&blueprint(&other), &name("main-a")).unwrap();
    let (waits, runs) = (json!({"waiting": {}}), json!({"running": {}}));
    for (recipe, state, restarts, expected) in [
        (&now, &waits, 0, TemplateState::UpToDate),
        (&now, &runs, 0, TemplateState::UpToDate),
        (&then, &waits, 0, TemplateState::StaleNotRunning),
        (&then, &runs, 0, TemplateState::Outdated),
        // It has run, and comes back by itself; or it has failed too often.
        (&then, &waits, 1, TemplateState::Outdated),
        (&then, &waits, 3, TemplateState::StaleNotRunning),
    ] {
        let mut made = pod("main-a", container(state.clone(), json!({}), restarts));
        made["metadata"]["annotations"] = json!({names::POD_TEMPLATE_HASH_ANNOTATION: recipe});
        let member = member("main-a", "2026-11-16T10:00:00Z", json!({}));
        let seen = seen(&stock(vec![member], vec![made], vec![]), &EtcdProbe::none());
        assert_eq!(seen.members[0].template, expected, "{recipe} {state}");
    }
}

/// If this changes, every member of every cluster is made anew with the next release. Say so in the changelog.
#[test]
fn pods_are_made_as_before() {
    let spec = cluster(json!({}));
    let recipe = pod::template_hash(&blueprint(&spec), &name("main-a"));
    assert_eq!(recipe.as_deref(), Some("f88760cf7c7b5670"));
}

#[test]
fn a_new_release_of_the_operator_makes_no_pod_outdated() {
    let spec = cluster(json!({}));
    let old = Blueprint { agent_image: "quorate/quorate:v0", ..blueprint(&spec) };
    let member = name("main-a");
    assert_eq!(pod::template_hash(&old, &member), pod::template_hash(&blueprint(&spec), &member));
}

#[test]
fn what_is_written_down_is_read_back() {
    let status: EtcdClusterStatus = object(json!({
        "clusterID": "ff", "bootstrap": {"members": ["main-a"], "started": true, "aborted": false},
    }));
    let record = record(&status);
    assert_eq!(record.members, [name("main-a")]);
    assert_eq!((record.started, record.aborted), (true, false));
    assert_eq!(record.cluster_id, Some(ClusterId(255)));
    assert_eq!(super::record(&EtcdClusterStatus::default()), BootstrapRecord::default());
}

#[test]
fn nobody_is_asked_whose_etcd_has_ended_for_good() {
    let ended = || container(json!({"terminated": {"exitCode": 0}}), json!({}), 0);
    let runs = || container(json!({"running": {}}), json!({}), 0);
    let going = |mut pod: Value| {
        pod["metadata"]["deletionTimestamp"] = json!(NOW);
        object(pod)
    };
    assert!(pod::has_ended(&going(pod("a", ended()))));
    assert!(!pod::has_ended(&going(pod("a", runs()))), "it may still answer");
    assert!(!pod::has_ended(&object(pod("a", ended()))), "the kubelet starts it again");
    let mut failed = pod("a", ended());
    failed["status"]["phase"] = json!("Failed");
    assert!(pod::has_ended(&object(failed)), "nothing runs in it ever again");
}

#[test]
fn nobody_is_asked_who_is_ending_as_long_as_there_is_time_for_it() {
    let until: Timestamp = "2026-11-16T12:00:30Z".parse().unwrap();
    let soon: Timestamp = "2026-11-16T12:00:29Z".parse().unwrap();
    let runs = pod("a", container(json!({"running": {}}), json!({}), 0));
    let mut ending = runs.clone();
    ending["metadata"]["deletionTimestamp"] = json!(until.to_string());
    let (runs, ending) = (object(runs), object(ending));
    assert!(!pod::is_ending(&runs, soon));
    assert!(pod::is_ending(&ending, soon));
    assert!(!pod::is_ending(&ending, until), "it may never end, and may still answer");
}

#[test]
fn what_worked_is_known_from_a_member_that_runs_as_it_was_made_before() {
    let before = pod::template_hash(
        &blueprint(&cluster(json!({"image": {"repository": "old"}}))),
        &name("main-a"),
    );
    let (old, same) = (json!(r#"{"version":"3.6.10"}"#), json!(r#"{"version":"3.6.16"}"#));
    for (recipe, made_of, said, ready, expected) in [
        (&before, &old, Some(true), false, true),
        (&before, &same, Some(true), false, false),
        (&None, &old, Some(true), false, false),
        // It lacks only the others; or nobody could ask it, and the kubelet could.
        (&before, &old, Some(false), false, true),
        (&before, &old, None, true, true),
        (&before, &old, None, false, false),
    ] {
        let mut container = container(json!({"running": {}}), json!({}), 0);
        container["ready"] = json!(ready);
        let mut made = pod("main-a", container);
        made["metadata"]["annotations"] = json!({names::POD_TEMPLATE_HASH_ANNOTATION: recipe, names::POD_TEMPLATE_ANNOTATION: made_of});
        if recipe.is_none() {
            made["metadata"]["annotations"] = json!({names::POD_TEMPLATE_ANNOTATION: made_of});
        }
        let stock =
            stock(vec![member("main-a", "2026-11-16T10:00:00Z", json!({}))], vec![made], vec![]);
        let heard = said.map_or_else(EtcdProbe::none, |agrees| {
            heard(&[("main-a", 1, 1, agrees)], &[(1, "main-a", false)])
        });
        let is_known = seen(&stock, &heard).desired.rollback == Rollback::Available;
        assert_eq!(is_known, expected, "{made_of} {said:?} {ready}");
    }
}

#[test]
fn a_pod_that_has_yet_to_run_is_as_before_if_others_run_that_were_made_so() {
    let old = cluster(json!({"version": "3.6.10"}));
    let mut pods = Vec::new();
    for (of, state) in [("main-a", json!({"running": {}})), ("main-b", json!({"waiting": {}}))] {
        let mut made = pod(of, container(state, json!({}), 0));
        made["metadata"]["annotations"] = json!({
            names::POD_TEMPLATE_HASH_ANNOTATION: pod::template_hash(&blueprint(&old), &name(of)),
            names::POD_TEMPLATE_ANNOTATION: r#"{"version":"3.6.10"}"#,
        });
        pods.push(made);
    }
    let made_at = "2026-11-16T10:00:00Z";
    let members = ["main-a", "main-b"].map(|it| member(it, made_at, json!({}))).to_vec();
    let stock = stock(members, pods, vec![]);
    let made = |heard: &EtcdProbe| {
        seen(&stock, heard).members.iter().map(|it| it.template).collect::<Vec<_>>()
    };
    let one = heard(&[("main-a", 1, 1, true)], &[(1, "main-a", false), (2, "main-b", false)]);
    assert_eq!(made(&one), [TemplateState::Outdated, TemplateState::PreviousNotRunning]);
    assert_eq!(
        made(&EtcdProbe::none()),
        [TemplateState::Outdated, TemplateState::StaleNotRunning],
        "nobody shows that it works"
    );
}

#[test]
fn a_way_down_that_etcd_was_told_is_wanted_if_the_spec_asks_for_it() {
    for (told, expected) in
        [("", Downgrade::None), ("3.6.0", Downgrade::Requested), ("3.5.0", Downgrade::Unwanted)]
    {
        let mut heard = heard(&[("main-a", 1, 1, true)], &[(1, "main-a", false)]);
        let voice = heard.members.get_mut(&name("main-a")).unwrap();
        voice.status.as_mut().unwrap().downgrade_target = told.to_owned();
        let seen = seen(&stock(vec![], vec![], vec![]), &heard);
        assert_eq!(seen.etcd.known().unwrap().downgrade, expected, "{told}");
    }
}

#[test]
fn a_snapshot_is_made_when_the_count_has_come_that_a_member_runs_with() {
    let lacks = |running: &str| {
        let mut made = pod("main-a", container(json!({"running": {}}), json!({}), 0));
        made["spec"]["containers"] =
            json!([{"name": "etcd", "args": [format!("--snapshot-count={running}")]}]);
        let mut stock = stock(vec![member("main-a", NOW, json!({}))], vec![made], vec![]);
        stock.cluster.status = Some(object(
            json!({"currentVersion": "3.6.16", "raftLog": {"oldestWriter": "3.6", "sinceIndex": 40}}),
        ));
        let mut heard = heard(&[("main-a", 1, 50, true)], &[(1, "main-a", false)]);
        let voice = heard.members.get_mut(&name("main-a")).unwrap();
        voice.status.as_mut().unwrap().version = "3.6.16".to_owned();
        let spec = cluster(json!({"version": "3.7.3", "options": {"snapshotCount": 6000}}));
        look_for(&spec, &stock, &heard, |look| {
            look.raft_log_requirement().unwrap().missing_entries(&heard)
        })
    };
    assert_eq!(lacks("6000"), 40 + 6000 + 1000 - 50);
    assert_eq!(lacks("20000"), 40 + 20_000 + 1000 - 50, "it is not made anew yet");
    assert_eq!(lacks("100"), lacks("6000"), "it may be made anew at any time");
}

#[test]
fn who_has_left_says_nothing_of_what_runs_also_where_nobody_can_be_asked() {
    let ran = |name: &str, version: &str, phase: &str| {
        member(name, NOW, json!({"version": version, "phase": phase}))
    };
    let runs = |phase: &str| {
        let members = vec![ran("main-a", "3.7.3", "Voter"), ran("main-b", "3.6.10", phase)];
        let asked = crate::api::etcd_version::Release::new(3, 7, 3);
        UpgradePath::new(asked, &stock(members, vec![], vec![]), &EtcdProbe::none())
            .lowest_running
            .unwrap()
            .to_string()
    };
    assert_eq!(runs("Removing"), "3.6.10", "it may still be one of them");
    assert_eq!(runs("Removed"), "3.7.3");
}

#[test]
fn a_member_that_is_called_in_the_other_way_is_still_ours() {
    let made = member("main-a", NOW, json!({}));
    let mut heard = heard(&[("main-a", 1, 10, true)], &[(1, "main-a", false)]);
    if let Reading::Known(council) = &mut heard.quorum {
        council.members[0].peer_urls = vec!["http://main-a.space.svc:2380".to_owned()];
    }
    let seen = seen(&stock(vec![made], vec![], vec![]), &heard);
    let etcd = seen.etcd.known().unwrap();
    let entry = etcd.entry(&name("main-a")).unwrap();
    assert_eq!((entry.peer_scheme, seen.members[0].peer_scheme), (Scheme::Http, Scheme::Https));
    assert!(entry.is_healthy());
}
