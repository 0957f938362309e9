//! The observed state, built from objects and probes.
#![expect(clippy::needless_pass_by_value, reason = "JSON literals are passed by value")]

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

pub(crate) fn objects(members: Vec<Value>, pods: Vec<Value>, claims: Vec<Value>) -> ClusterObjects {
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
        previous_members: Vec::new(),
    }
}

pub(crate) fn member(name: &str, created: &str, status: Value) -> Value {
    json!({
        "apiVersion": "etcd.appdelivery.cncf.io/v1", "kind": "EtcdMember",
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": {"clusterName": "main", "name": name, "peerURL": "https://x:2380", "intent": "Join", "started": true},
        "status": status,
    })
}

pub(crate) fn pod(name: &str, container: Value) -> Value {
    let status = json!({"containerStatuses": [container]});
    json!({"metadata": {"name": name}, "spec": {"containers": []}, "status": status})
}

pub(crate) fn container(state: Value, last: Value, restarts: i32) -> Value {
    json!({"name": "etcd", "image": "", "imageID": "", "ready": false, "restartCount": restarts,
           "state": state, "lastState": last})
}

fn claim(name: &str, uid: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {names::CLUSTER_UID_LABEL: uid}}})
}

pub(crate) fn state(objects: &ClusterObjects, probe: &EtcdProbe) -> ObservedState {
    with_inputs(&cluster(json!({})), objects, probe, |inputs: &StateInputs<'_>| inputs.build())
}

pub(crate) fn with_inputs<T>(
    spec: &crate::api::etcd_cluster::validated::EtcdCluster,
    objects: &ClusterObjects,
    probe: &EtcdProbe,
    read: impl FnOnce(&StateInputs<'_>) -> T,
) -> T {
    let blueprint = blueprint(spec);
    let names = vec![name("main-a"), name("main-z")];
    let working = rollback::last_working_template(&blueprint, objects, probe);
    let previous = working.map(|template| {
        let object = rollback::with_template_fields(&objects.cluster, &template).unwrap();
        PreviousSpec { template, spec: cluster(object["spec"].clone()) }
    });
    read(&StateInputs {
        blueprint: &blueprint,
        objects,
        probe,
        path: UpgradePath::new(spec.version, objects, probe),
        previous: previous.as_ref(),
        now: NOW.parse().unwrap(),
        observing_since: Timestamp::UNIX_EPOCH,
        names,
        trust: None,
    })
}

fn endpoint_status(id: u64, applied: u64) -> EndpointStatus {
    EndpointStatus {
        cluster: 7,
        member: id,
        leader: 1,
        applied_index: applied,
        raft_index: applied,
        ..EndpointStatus::default()
    }
}

/// Members as (name, ID, applied index, whether linearizable reads succeed), and a member list.
pub(crate) fn probe(reachable: &[(&str, u64, u64, bool)], list: &[(u64, &str, bool)]) -> EtcdProbe {
    let member_probe = |(of, id, applied, linearizable): &(&str, u64, u64, bool)| {
        let status = Some(endpoint_status(*id, *applied));
        (name(of), MemberProbe { status, linearizable_read_ok: *linearizable, error: None })
    };
    let listed = |(id, url, learner): &(u64, &str, bool)| MemberEntry {
        id: *id,
        peer_urls: vec![format!("https://{url}.space.svc:2380")],
        is_learner: *learner,
    };
    let view = QuorumView {
        queried_member: name("main-a"),
        cluster_id: 7,
        leader: 1,
        members: list.iter().map(listed).collect(),
        alarms: Vec::new(),
        revision: 1,
    };
    EtcdProbe {
        members: reachable.iter().map(member_probe).collect(),
        quorum: Reading::Known(view),
        auth: AuthState::InSync,
        data_hashes: std::collections::BTreeMap::new(),
    }
}

#[test]
fn members_are_ordered_by_creation_time() {
    let late = member("main-a", "2026-11-16T11:00:00Z", json!({}));
    let early = member("main-b", "2026-11-16T10:00:00Z", json!({}));
    let state = state(&objects(vec![late, early], vec![], vec![]), &EtcdProbe::none());
    let names: Vec<_> = state.members.iter().map(|member| member.name.0.as_str()).collect();
    assert_eq!(names, ["main-b", "main-a"]);
    assert_eq!(state.etcd, Reading::Unknown, "no member was probed");
    assert_eq!(state.candidate_names, [name("main-z")], "main-a is in use");
}

#[test]
fn volume_of_a_previous_cluster_is_not_orphaned() {
    let claims = vec![claim("main-old", "another"), claim("main-own", UID)];
    let state = state(&objects(vec![], vec![], claims), &EtcdProbe::none());
    assert_eq!(state.retained_volumes, [name("main-old")]);
    assert_eq!(state.orphaned_volumes, [name("main-own")]);
}

#[test]
fn members_and_entries_are_matched_by_peer_url() {
    let probe = probe(
        &[("main-b", 2, 10, true), ("main-a", 1, 10, true)],
        &[(1, "main-a", false), (2, "main-b", false), (3, "main-c", false)],
    );
    let state = state(&objects(vec![], vec![], vec![]), &probe);
    let etcd = state.etcd.known().unwrap();
    assert!(etcd.entry(&name("main-a")).unwrap().is_healthy());
    assert!(!etcd.entry(&name("main-c")).unwrap().is_healthy(), "unreachable");
    assert_eq!(etcd.entry(&name("main-b")).unwrap().id, MemberId(2));
}

#[test]
fn response_with_another_member_id_does_not_count() {
    let probe = probe(&[("main-a", 9, 10, true)], &[(1, "main-a", false)]);
    let state = state(&objects(vec![], vec![], vec![]), &probe);
    assert!(!state.etcd.known().unwrap().entry(&name("main-a")).unwrap().is_healthy());
}

#[test]
fn learner_is_healthy_once_it_has_almost_caught_up() {
    for (applied, healthy) in [(9_500, true), (100, false)] {
        let probe = probe(
            &[("main-a", 1, 10_000, true), ("main-b", 2, applied, false)],
            &[(1, "main-a", false), (2, "main-b", true)],
        );
        let state = state(&objects(vec![], vec![], vec![]), &probe);
        let entry = state.etcd.known().unwrap().entry(&name("main-b")).unwrap();
        assert_eq!(entry.is_healthy(), healthy, "{applied}");
    }
}

#[test]
fn missing_data_is_recognized_by_the_exit_code_only() {
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
fn pod_of_another_template_is_stale_until_etcd_runs_in_it() {
    let other = cluster(json!({"resources": {"requests": {"cpu": "7"}}}));
    let current = pod::template_hash(&blueprint(&cluster(json!({}))), &name("main-a")).unwrap();
    let previous = pod::template_hash(&blueprint(&other), &name("main-a")).unwrap();
    let (waits, runs) = (json!({"waiting": {}}), json!({"running": {}}));
    for (hash, state, restarts, expected) in [
        (&current, &waits, 0, TemplateState::UpToDate),
        (&current, &runs, 0, TemplateState::UpToDate),
        (&previous, &waits, 0, TemplateState::StaleNotRunning),
        (&previous, &runs, 0, TemplateState::Outdated),
        // The kubelet restarts a container that has run, unless it failed too often.
        (&previous, &waits, 1, TemplateState::Outdated),
        (&previous, &waits, 3, TemplateState::StaleNotRunning),
    ] {
        let mut pod = pod("main-a", container(state.clone(), json!({}), restarts));
        pod["metadata"]["annotations"] = json!({names::POD_TEMPLATE_HASH_ANNOTATION: hash});
        let member = member("main-a", "2026-11-16T10:00:00Z", json!({}));
        let observed = self::state(&objects(vec![member], vec![pod], vec![]), &EtcdProbe::none());
        assert_eq!(observed.members[0].template, expected, "{hash} {state}");
    }
}

/// If this hash changes, the next release recreates every pod of every cluster. Note that in the
/// changelog.
#[test]
fn template_hash_is_the_same_as_in_the_previous_release() {
    let spec = cluster(json!({}));
    let hash = pod::template_hash(&blueprint(&spec), &name("main-a"));
    assert_eq!(hash.as_deref(), Some("f88760cf7c7b5670"));
}

#[test]
fn operator_upgrade_makes_no_pod_outdated() {
    let spec = cluster(json!({}));
    let old = Blueprint { agent_image: "quorate/quorate:v0", ..blueprint(&spec) };
    let member = name("main-a");
    assert_eq!(pod::template_hash(&old, &member), pod::template_hash(&blueprint(&spec), &member));
}

#[test]
fn recorded_bootstrap_is_read_back() {
    let status: EtcdClusterStatus = object(json!({
        "clusterID": "ff", "bootstrap": {"members": ["main-a"], "started": true, "aborted": false},
    }));
    let recorded = record(&status);
    assert_eq!(recorded.members, [name("main-a")]);
    assert_eq!((recorded.started, recorded.aborted), (true, false));
    assert_eq!(recorded.cluster_id, Some(ClusterId(255)));
    assert_eq!(record(&EtcdClusterStatus::default()), BootstrapRecord::default());
}

#[test]
fn terminated_etcd_is_not_probed() {
    let ended = || container(json!({"terminated": {"exitCode": 0}}), json!({}), 0);
    let runs = || container(json!({"running": {}}), json!({}), 0);
    let terminating = |mut pod: Value| {
        pod["metadata"]["deletionTimestamp"] = json!(NOW);
        object(pod)
    };
    assert!(pod::has_ended(&terminating(pod("a", ended()))));
    assert!(!pod::has_ended(&terminating(pod("a", runs()))), "still reachable");
    assert!(!pod::has_ended(&object(pod("a", ended()))), "the kubelet restarts etcd");
    let mut failed = pod("a", ended());
    failed["status"]["phase"] = json!("Failed");
    assert!(pod::has_ended(&object(failed)), "the kubelet restarts nothing");
}

#[test]
fn terminating_member_is_not_probed_within_its_grace_period() {
    let deadline: Timestamp = "2026-11-16T12:00:30Z".parse().unwrap();
    let before: Timestamp = "2026-11-16T12:00:29Z".parse().unwrap();
    let runs = pod("a", container(json!({"running": {}}), json!({}), 0));
    let mut ending = runs.clone();
    ending["metadata"]["deletionTimestamp"] = json!(deadline.to_string());
    let (runs, ending) = (object(runs), object(ending));
    assert!(!pod::is_ending(&runs, before));
    assert!(pod::is_ending(&ending, before));
    assert!(!pod::is_ending(&ending, deadline), "the pod may stay for good, and be reachable");
}

#[test]
fn working_template_is_taken_from_a_member_that_runs_with_it() {
    let hash = pod::template_hash(
        &blueprint(&cluster(json!({"image": {"repository": "old"}}))),
        &name("main-a"),
    );
    let (old, same) = (json!(r#"{"version":"3.6.10"}"#), json!(r#"{"version":"3.6.16"}"#));
    for (hash, template, linearizable, ready, expected) in [
        (&hash, &old, Some(true), false, true),
        (&hash, &same, Some(true), false, false),
        (&None, &old, Some(true), false, false),
        // No quorum; or only the kubelet could reach the member.
        (&hash, &old, Some(false), false, true),
        (&hash, &old, None, true, true),
        (&hash, &old, None, false, false),
    ] {
        let mut container = container(json!({"running": {}}), json!({}), 0);
        container["ready"] = json!(ready);
        let mut pod = pod("main-a", container);
        pod["metadata"]["annotations"] = json!({names::POD_TEMPLATE_HASH_ANNOTATION: hash, names::POD_TEMPLATE_ANNOTATION: template});
        if hash.is_none() {
            pod["metadata"]["annotations"] = json!({names::POD_TEMPLATE_ANNOTATION: template});
        }
        let objects =
            objects(vec![member("main-a", "2026-11-16T10:00:00Z", json!({}))], vec![pod], vec![]);
        let probe = linearizable.map_or_else(EtcdProbe::none, |linearizable| {
            probe(&[("main-a", 1, 1, linearizable)], &[(1, "main-a", false)])
        });
        let is_known = state(&objects, &probe).desired.rollback == Rollback::Available;
        assert_eq!(is_known, expected, "{template} {linearizable:?} {ready}");
    }
}

#[test]
fn gated_pod_of_the_previous_template_is_kept_while_other_members_run_with_it() {
    let old = cluster(json!({"version": "3.6.10"}));
    let mut pods = Vec::new();
    for (of, state) in [("main-a", json!({"running": {}})), ("main-b", json!({"waiting": {}}))] {
        let mut pod = pod(of, container(state, json!({}), 0));
        pod["metadata"]["annotations"] = json!({
            names::POD_TEMPLATE_HASH_ANNOTATION: pod::template_hash(&blueprint(&old), &name(of)),
            names::POD_TEMPLATE_ANNOTATION: r#"{"version":"3.6.10"}"#,
        });
        pods.push(pod);
    }
    let created = "2026-11-16T10:00:00Z";
    let members = ["main-a", "main-b"].map(|name| member(name, created, json!({}))).to_vec();
    let objects = objects(members, pods, vec![]);
    let templates = |probe: &EtcdProbe| {
        let members = state(&objects, probe).members;
        members.iter().map(|member| member.template).collect::<Vec<_>>()
    };
    let one = probe(&[("main-a", 1, 1, true)], &[(1, "main-a", false), (2, "main-b", false)]);
    assert_eq!(templates(&one), [TemplateState::Outdated, TemplateState::PreviousNotRunning]);
    assert_eq!(
        templates(&EtcdProbe::none()),
        [TemplateState::Outdated, TemplateState::StaleNotRunning],
        "no member confirms that the template works"
    );
}

#[test]
fn enabled_downgrade_is_requested_if_the_spec_has_that_minor_version() {
    for (target, expected) in
        [("", Downgrade::None), ("3.6.0", Downgrade::Requested), ("3.5.0", Downgrade::Unwanted)]
    {
        let mut probe = probe(&[("main-a", 1, 1, true)], &[(1, "main-a", false)]);
        let member = probe.members.get_mut(&name("main-a")).unwrap();
        member.status.as_mut().unwrap().downgrade_target = target.to_owned();
        let state = state(&objects(vec![], vec![], vec![]), &probe);
        assert_eq!(state.etcd.known().unwrap().downgrade, expected, "{target}");
    }
}

#[test]
fn raft_log_requirement_uses_the_snapshot_count_that_a_member_runs_with() {
    let missing = |running: &str| {
        let mut pod = pod("main-a", container(json!({"running": {}}), json!({}), 0));
        pod["spec"]["containers"] =
            json!([{"name": "etcd", "args": [format!("--snapshot-count={running}")]}]);
        let mut objects = objects(vec![member("main-a", NOW, json!({}))], vec![pod], vec![]);
        objects.cluster.status = Some(object(
            json!({"currentVersion": "3.6.16", "raftLog": {"oldestWriter": "3.6", "sinceIndex": 40}}),
        ));
        let mut probe = probe(&[("main-a", 1, 50, true)], &[(1, "main-a", false)]);
        let member = probe.members.get_mut(&name("main-a")).unwrap();
        member.status.as_mut().unwrap().version = "3.6.16".to_owned();
        let spec = cluster(json!({"version": "3.7.3", "options": {"snapshotCount": 6000}}));
        with_inputs(&spec, &objects, &probe, |inputs| {
            inputs.raft_log_requirement().unwrap().missing_entries(&probe)
        })
    };
    assert_eq!(missing("6000"), 40 + 6000 + 1000 - 50);
    assert_eq!(missing("20000"), 40 + 20_000 + 1000 - 50, "not recreated yet");
    assert_eq!(missing("100"), missing("6000"), "may be recreated at any time");
}

#[test]
fn removed_member_does_not_count_for_the_running_version_even_without_quorum() {
    let ran = |name: &str, version: &str, phase: &str| {
        member(name, NOW, json!({"version": version, "phase": phase}))
    };
    let runs = |phase: &str| {
        let members = vec![ran("main-a", "3.7.3", "Running"), ran("main-b", "3.6.10", phase)];
        let spec = crate::api::etcd_version::Release::new(3, 7, 3);
        UpgradePath::new(spec, &objects(members, vec![], vec![]), &EtcdProbe::none())
            .lowest_running
            .unwrap()
            .to_string()
    };
    assert_eq!(runs("Removing"), "3.6.10", "may still be a member");
    assert_eq!(runs("Removed"), "3.7.3");
}

#[test]
fn member_with_the_other_scheme_in_its_peer_url_is_managed() {
    let member = member("main-a", NOW, json!({}));
    let mut probe = probe(&[("main-a", 1, 10, true)], &[(1, "main-a", false)]);
    if let Reading::Known(view) = &mut probe.quorum {
        view.members[0].peer_urls = vec!["http://main-a.space.svc:2380".to_owned()];
    }
    let state = state(&objects(vec![member], vec![], vec![]), &probe);
    let etcd = state.etcd.known().unwrap();
    let entry = etcd.entry(&name("main-a")).unwrap();
    assert_eq!((entry.peer_scheme, state.members[0].peer_scheme), (Scheme::Http, Scheme::Https));
    assert!(entry.is_healthy());
}
