//! Tests of replacement and of failing pods.

use serde_json::{Value, json};

use crate::etcd_cluster::observe::etcd::EtcdProbe;
use crate::etcd_cluster::state::Reading;
use crate::etcd_cluster::state::build::tests::{container, member, objects, pod, probe, state};

/// The status of a member with one condition.
fn condition(kind: &str, status: &str, since: &str) -> Value {
    json!({"conditions": [{"type": kind, "status": status, "lastTransitionTime": since,
                           "reason": "Reason", "message": "x"}]})
}

fn replacement_due(status: Value, pods: Vec<Value>, probe: &EtcdProbe) -> bool {
    let member = member("main-a", "2026-11-16T10:00:00Z", status);
    state(&objects(vec![member], pods, vec![]), probe).members[0].replacement_due
}

#[test]
fn member_is_replaced_after_its_time_unless_it_is_reachable() {
    let unreachable = |since: &str| condition("Reachable", "False", since);
    let (long, short) = ("2026-11-16T11:49:00Z", "2026-11-16T11:58:00Z");
    let nothing = EtcdProbe::none();
    assert!(replacement_due(unreachable(long), vec![], &nothing));
    assert!(!replacement_due(unreachable(short), vec![], &nothing));
    assert!(!replacement_due(json!({}), vec![], &nothing), "not recorded as unreachable");
    let crashes = vec![pod("main-a", container(json!({"waiting": {}}), json!({}), 3))];
    assert!(replacement_due(unreachable(short), crashes.clone(), &nothing), "crash loop");
    assert!(!replacement_due(unreachable("2026-11-16T11:59:30Z"), crashes, &nothing), "too early");
    let healthy = probe(&[("main-a", 1, 1, true)], &[(1, "main-a", false)]);
    assert!(!replacement_due(unreachable(long), vec![], &healthy));
}

#[test]
fn isolated_voter_has_more_time_counted_from_its_own_condition() {
    let isolated = probe(&[("main-a", 1, 1, false)], &[(1, "main-a", false)]);
    let no_quorum = EtcdProbe { quorum: Reading::Unknown, ..isolated.clone() };
    let since = |since: &str| condition("Isolated", "True", since);
    let (ages, long) = ("2026-11-16T10:00:00Z", "2026-11-16T11:49:00Z");
    assert!(!replacement_due(since(ages), vec![], &no_quorum), "no quorum");
    assert!(replacement_due(since(ages), vec![], &isolated), "the others have quorum");
    assert!(!replacement_due(since(long), vec![], &isolated), "may have much to replay");
    assert!(
        !replacement_due(condition("Reachable", "False", ages), vec![], &isolated),
        "was hibernated"
    );
    assert!(!replacement_due(since(ages), vec![], &EtcdProbe::none()), "only just unreachable");
}

#[test]
fn pod_in_a_crash_loop_or_not_created_for_a_minute_is_failing() {
    let waits = |reason: &str| json!({"waiting": {"reason": reason}});
    let (early, late) = ("2026-11-16T11:59:30Z", "2026-11-16T11:58:30Z");
    for (container_state, restarts, created, expected) in [
        (waits("CrashLoopBackOff"), 3, early, true),
        (waits("CrashLoopBackOff"), 2, late, false),
        (waits("ImagePullBackOff"), 0, late, true),
        (waits("ImagePullBackOff"), 0, early, false),
        (waits("ContainerCreating"), 0, late, false),
        (json!({"running": {}}), 3, late, false),
    ] {
        let mut pod = pod("main-a", container(container_state.clone(), json!({}), restarts));
        pod["metadata"]["creationTimestamp"] = json!(created);
        let objects =
            objects(vec![member("main-a", "2026-11-16T10:00:00Z", json!({}))], vec![pod], vec![]);
        let failing = |probe: &EtcdProbe| state(&objects, probe).members[0].failing;
        assert_eq!(failing(&EtcdProbe::none()), expected, "{container_state} {restarts} {created}");
        let probe = probe(&[("main-a", 1, 1, true)], &[(1, "main-a", false)]);
        assert!(!failing(&probe), "reachable: {container_state}");
    }
}

#[test]
fn member_with_a_rejected_pod_is_failing_after_a_minute() {
    let failing = |kind: &str, since: &str| {
        let member = member("main-a", "2026-11-16T10:00:00Z", condition(kind, "True", since));
        state(&objects(vec![member], vec![], vec![]), &EtcdProbe::none()).members[0].failing
    };
    assert!(failing("PodRejected", "2026-11-16T11:58:30Z"));
    assert!(!failing("PodRejected", "2026-11-16T11:59:30Z"), "too early");
    assert!(!failing("Isolated", "2026-11-16T11:58:30Z"), "its pod is not rejected");
}
