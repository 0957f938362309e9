//! Who is given up, and whose pod fails, one sentence each.

use serde_json::{Value, json};

use crate::etcd_cluster::observe::etcd::EtcdProbe;
use crate::etcd_cluster::state::Reading;
use crate::etcd_cluster::state::build::tests::{container, heard, member, pod, seen, stock};

/// What was written down of a member.
fn told(kind: &str, status: &str, since: &str) -> Value {
    json!({"conditions": [{"type": kind, "status": status, "lastTransitionTime": since,
                           "reason": "Because", "message": "x"}]})
}

fn given_up(status: Value, pods: Vec<Value>, heard: &EtcdProbe) -> bool {
    let member = member("main-a", "2026-11-16T10:00:00Z", status);
    seen(&stock(vec![member], pods, vec![]), heard).members[0].replacement_due
}

#[test]
fn a_member_is_given_up_after_its_time_and_not_while_it_is_heard() {
    let silent = |since: &str| told("Reachable", "False", since);
    let (long, short) = ("2026-11-16T11:49:00Z", "2026-11-16T11:58:00Z");
    let nothing = EtcdProbe::none();
    assert!(given_up(silent(long), vec![], &nothing));
    assert!(!given_up(silent(short), vec![], &nothing));
    assert!(!given_up(json!({}), vec![], &nothing), "nobody has seen it unwell");
    let crashes = vec![pod("main-a", container(json!({"waiting": {}}), json!({}), 3))];
    assert!(given_up(silent(short), crashes.clone(), &nothing), "it keeps crashing");
    assert!(!given_up(silent("2026-11-16T11:59:30Z"), crashes, &nothing), "too early");
    let agrees = heard(&[("main-a", 1, 1, true)], &[(1, "main-a", false)]);
    assert!(!given_up(silent(long), vec![], &agrees));
}

#[test]
fn a_voter_that_is_left_out_has_more_time_and_a_time_of_its_own() {
    let alone = heard(&[("main-a", 1, 1, false)], &[(1, "main-a", false)]);
    let nobody = EtcdProbe { quorum: Reading::Unknown, ..alone.clone() };
    let left_out = |since: &str| told("Isolated", "True", since);
    let (ages, long) = ("2026-11-16T10:00:00Z", "2026-11-16T11:49:00Z");
    assert!(!given_up(left_out(ages), vec![], &nobody), "it lacks only the others");
    assert!(given_up(left_out(ages), vec![], &alone), "they agree, and it never does");
    assert!(!given_up(left_out(long), vec![], &alone), "it may have much to read");
    assert!(!given_up(told("Reachable", "False", ages), vec![], &alone), "it was asleep");
    assert!(!given_up(left_out(ages), vec![], &EtcdProbe::none()), "it has just fallen silent");
}

#[test]
fn a_pod_fails_that_crashes_too_often_or_cannot_be_made_for_a_minute() {
    let waits = |why: &str| json!({"waiting": {"reason": why}});
    let (early, late) = ("2026-11-16T11:59:30Z", "2026-11-16T11:58:30Z");
    for (state, restarts, made_at, expected) in [
        (waits("CrashLoopBackOff"), 3, early, true),
        (waits("CrashLoopBackOff"), 2, late, false),
        (waits("ImagePullBackOff"), 0, late, true),
        (waits("ImagePullBackOff"), 0, early, false),
        (waits("ContainerCreating"), 0, late, false),
        (json!({"running": {}}), 3, late, false),
    ] {
        let mut made = pod("main-a", container(state.clone(), json!({}), restarts));
        made["metadata"]["creationTimestamp"] = json!(made_at);
        let stock =
            stock(vec![member("main-a", "2026-11-16T10:00:00Z", json!({}))], vec![made], vec![]);
        let fails = |heard: &EtcdProbe| seen(&stock, heard).members[0].failing;
        assert_eq!(fails(&EtcdProbe::none()), expected, "{state} {restarts} {made_at}");
        let heard = heard(&[("main-a", 1, 1, true)], &[(1, "main-a", false)]);
        assert!(!fails(&heard), "it is heard: {state}");
    }
}

#[test]
fn a_member_fails_whose_pod_is_refused_for_a_minute() {
    let fails = |kind: &str, since: &str| {
        let member = member("main-a", "2026-11-16T10:00:00Z", told(kind, "True", since));
        seen(&stock(vec![member], vec![], vec![]), &EtcdProbe::none()).members[0].failing
    };
    assert!(fails("PodRejected", "2026-11-16T11:58:30Z"));
    assert!(!fails("PodRejected", "2026-11-16T11:59:30Z"), "too early");
    assert!(!fails("Isolated", "2026-11-16T11:58:30Z"), "its pod is about to be made");
}
